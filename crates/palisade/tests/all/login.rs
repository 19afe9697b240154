//! The command line as a client over the network: logins, certificates, and requests of any kind.

use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, program, text, until, wait};
use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

const PASSWORD: &str = "correct horse";

/// A place whose daemons serve HTTPS at one port.
fn place(what: &str) -> Place {
    let mut place = Place::new(what, 16);
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("is known");
    let state = Value::from(place.file("state").to_string_lossy());
    place.more = format!("state = {state}\nhttps = [\"{address}\"]\n");
    place
}

/// A command of a user whose logins are in the place.
fn command(place: &Place, words: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_palisade"));
    command.args(words).env("XDG_STATE_HOME", place.file("home"));
    command.env_remove("PALISADE_SOCKET").env_remove("PALISADE_URL");
    command
}

/// Runs a command that reads this.
fn with(place: &Place, words: &[&str], input: &str) -> Output {
    let mut command = command(place, words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    // A command that needs nothing may have ended.
    let _ = writeln!(child.stdin.take().expect("piped"), "{input}");
    wait(child, LIMIT, &format!("{words:?}"))
}

fn run(place: &Place, words: &[&str]) -> Output {
    with(place, words, "")
}

/// The answer of a command that must succeed.
#[track_caller]
fn call(place: &Place, words: &[&str]) -> Value {
    let output = run(place, &[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[track_caller]
fn refused(output: &Output, exit: i32, name: &str) {
    let told = text(output);
    assert_eq!(output.status.code(), Some(exit), "{told}");
    assert!(told.contains(&format!("(palisade explain {name})")), "{name}: {told}");
}

/// A daemon with an account, where it listens, and the fingerprint that its log names.
fn serve(place: &Place) -> (Daemon, String, String) {
    let daemon = Daemon::start(place, 1);
    if daemon.call(&["account", "list"])["accounts"] == Value::Array(Vec::new()) {
        let mut words = vec!["account", "create", "root", "--role", "administrator"];
        let socket = place.file("socket");
        words.extend(["--password-stdin", "--socket", socket.to_str().expect("text")]);
        let made = with(place, &words, PASSWORD);
        assert!(made.status.success(), "{}", text(&made));
    }
    let (url, print) = until("HTTPS", LIMIT, || {
        let said = daemon.said();
        let line = said.lines().rfind(|line| line.starts_with("palisade: HTTPS on "))?;
        let (address, print) = line["palisade: HTTPS on ".len()..].split_once(", SHA-256 ")?;
        Some((format!("https://{address}"), print.to_owned()))
    });
    (daemon, url, print)
}

fn log_in(place: &Place, url: &str, print: &str) {
    let login = ["login", url, "--user", "root", "--fingerprint", print];
    let done = with(place, &login, PASSWORD);
    assert!(done.status.success(), "{}", text(&done));
}

/// A resource, by a request on the socket.
fn asked(daemon: &Daemon, path: &str) -> Value {
    serde_json::from_str(&daemon.text(&["api", "GET", path])).expect("JSON")
}

fn logins(place: &Place) -> String {
    let file = place.file("home/palisade/logins.json");
    std::fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn a_login_is_pinned_and_works_as_the_socket_does() {
    let mut place = place("login");
    let drives = place.drives(3);
    let (daemon, url, print) = serve(&place);
    refused(&run(&place, &["status", "--url", &url]), 1, "NotLoggedIn");
    let unknown = with(&place, &["login", &url, "--user", "root"], PASSWORD);
    refused(&unknown, 3, "CertificateNotTrusted");
    assert!(text(&unknown).contains(&print), "{}", text(&unknown));
    let other = "00".repeat(32);
    let login = ["login", &url, "--user", "root", "--fingerprint"];
    let told = with(&place, &[&login[..], &[&other]].concat(), PASSWORD);
    refused(&told, 3, "CertificateChanged");
    refused(&run(&place, &["login", &url, "--fingerprint", &print]), 2, "UserNotGiven");
    let wrong = with(&place, &[&login[..], &[&print]].concat(), "incorrect horse");
    refused(&wrong, 3, "ResourceAtUriUnauthorized");
    assert_eq!(logins(&place), "", "nothing is kept of what failed");

    let plain = print.replace(':', "").to_lowercase();
    let done = with(&place, &[&login[..], &[&plain]].concat(), PASSWORD);
    assert_eq!(text(&done), format!("logged in at {url} as root\n"));
    let file = place.file("home/palisade/logins.json");
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    let mut create = vec!["array", "create", "tank", "--level", "5", "--url", &url, "--drives"];
    create.extend(drives.iter().map(String::as_str));
    assert_eq!(call(&place, &create)["state"], "optimal");
    call(&place, &["--url", &url, "volume", "create", "tank/v", "--size", "1M"]);
    let by_variable = command(&place, &["status", "--json"]).env("PALISADE_URL", &url).output();
    let shown: Value = serde_json::from_slice(&by_variable.expect("ran").stdout).expect("JSON");
    assert_eq!(shown["arrays"][0]["volumes"][0]["name"], "v");
    assert_eq!(call(&place, &["array", "delete", "tank", "--yes", "--url", &url])["done"], true);
    // What it has is wiped where it is, not here.
    let wipe = ["drive", "wipe", &drives[0], "--yes", "--url", &url];
    assert_eq!(call(&place, &wipe)["done"], true);

    refused(&run(&place, &["status", "--url", "http://h"]), 2, "BadUrl");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("set");
    refused(&run(&place, &["status", "--url", &url]), 1, "LoginsFailed");
    // A login makes room for another file; nothing of the one that is there is used.
    let again = with(&place, &["login", &url, "--user", "root"], PASSWORD);
    refused(&again, 3, "CertificateNotTrusted");
    assert!(text(&again).contains("logins.json.damaged"), "{}", text(&again));
    let aside = place.file("home/palisade/logins.json.damaged");
    std::fs::rename(aside, &file).expect("put back");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("set");
    let sessions = asked(&daemon, "SessionService/Sessions");
    let own = sessions["Members"][0]["@odata.id"].as_str().expect("a session").to_owned();
    daemon.text(&["api", "DELETE", &own]);
    refused(&run(&place, &["status", "--url", &url]), 1, "SessionEnded");
    // The certificate is known by now.
    let again = with(&place, &["login", &url, "--user", "root"], PASSWORD);
    assert!(again.status.success(), "{}", text(&again));
    let token = serde_json::from_str::<Value>(&logins(&place)).expect("JSON");
    let token = token["logins"][0]["session"]["token"].as_str().expect("a token").to_owned();
    assert_eq!(call(&place, &["logout"])["urls"][0], *url);
    assert!(!logins(&place).contains(&token) && logins(&place).contains(&print));
    let sessions = asked(&daemon, "SessionService/Sessions");
    assert_eq!(sessions["Members@odata.count"], 0, "the session is ended, not only forgotten");
    refused(&run(&place, &["logout", &url]), 1, "NotLoggedIn");
    assert_eq!(text(&run(&place, &["logout"])), "nobody was logged in\n");
    log_in(&place, &url, &print);
    daemon.stop();
    refused(&run(&place, &["status", "--url", &url]), 4, "NotReached");
    // It is not wiped from here because its daemon does not answer.
    refused(&run(&place, &wipe), 4, "NotReached");
    let gone = run(&place, &["logout", &url]);
    refused(&gone, 4, "NotReached");
    assert!(logins(&place).contains("token"), "who could end the session else?");
    assert_eq!(call(&place, &["logout", &url, "--force"])["urls"][0], *url);
    assert!(!logins(&place).contains("token"), "{}", logins(&place));
}

#[test]
fn a_certificate_with_another_key_is_refused() {
    let mut place = place("login: certificates");
    let (daemon, url, print) = serve(&place);
    log_in(&place, &url, &print);
    daemon.stop();
    std::fs::remove_file(place.file("daemon.log")).expect("removed");
    // For another address the daemon makes another, with the key that is known.
    place.more = place.more.replace("https = [", "https = [\"127.0.0.2:0\", ");
    let (daemon, _, renewed) = serve(&place);
    assert_ne!(renewed, print);
    assert_eq!(call(&place, &["status", "--url", &url])["ready"], true);
    daemon.stop();
    std::fs::remove_file(place.file("state/https.pem")).expect("removed");
    std::fs::remove_file(place.file("daemon.log")).expect("removed");
    place.more = place.more.replace("\"127.0.0.2:0\", ", "");
    let (daemon, again, new) = serve(&place);
    assert_eq!(again, url);
    assert_ne!(new, print);
    for words in [&["status", "--url", &url][..], &["login", &url, "--user", "root"]] {
        let told = with(&place, words, PASSWORD);
        refused(&told, 3, "CertificateChanged");
        let told = text(&told);
        assert!(told.contains(&new) && told.contains(&print), "{told}");
    }
    log_in(&place, &url, &new);
    assert_eq!(call(&place, &["status", "--url", &url])["ready"], true);
    daemon.stop();
}

#[test]
fn an_account_that_has_to_change_its_password_does_so_over_the_network() {
    let place = place("login: passwords");
    let (daemon, url, print) = serve(&place);
    log_in(&place, &url, &print);
    let mut create = vec!["account", "create", "ana", "--role", "readonly", "--password-stdin"];
    create.extend(["--password-change-required", "--url", &url]);
    assert!(with(&place, &create, PASSWORD).status.success());
    let login = ["login", &url, "--user", "ana"];
    let told = text(&with(&place, &login, PASSWORD));
    assert!(told.contains("has to change its password"), "{told}");
    assert!(!run(&place, &["status", "--url", &url]).status.success());
    let passwd = ["account", "passwd", "ana", "--password-stdin", "--url", &url];
    let told = with(&place, &passwd, "another horse");
    assert!(told.status.success(), "{}", text(&told));
    let told = text(&with(&place, &login, "another horse"));
    assert_eq!(told, format!("logged in at {url} as ana\n"));
    assert_eq!(call(&place, &["status", "--url", &url])["ready"], true);
    daemon.stop();
}

/// Runs a command on a terminal, and types a line at each of these prompts, once.
const TERMINAL: &str = r#"
import os, pty, sys
count = int(sys.argv[1])
answers = [sys.argv[2 + 2 * n:4 + 2 * n] for n in range(count)]
words = sys.argv[2 + 2 * count:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(words[0], words)
shown, seen = b"", 0
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    shown += more
    if answers and shown[seen:].endswith(answers[0][0].encode()):
        seen = len(shown)
        os.write(terminal, answers.pop(0)[1].encode() + b"\n")
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn a_person_sees_the_certificate_and_trusts_it() {
    let place = place("login: a terminal");
    let (daemon, url, print) = serve(&place);
    let types = |answers: &[(&str, &str)]| {
        let mut python = program("python3");
        python.args(["-c", TERMINAL, &answers.len().to_string()]);
        for (prompt, line) in answers {
            python.args([prompt, line]);
        }
        python.arg(env!("CARGO_BIN_EXE_palisade")).args(["login", &url]);
        python.env("XDG_STATE_HOME", place.file("home")).env_remove("PALISADE_SOCKET");
        python.output().expect("ran")
    };
    refused(&types(&[("trust it: ", "y")]), 3, "CertificateNotTrusted");
    assert_eq!(logins(&place), "");
    let password = "password of root: ";
    let whole = [("trust it: ", "yes"), ("account: ", "root"), (password, PASSWORD)];
    let done = types(&whole);
    let shown = text(&done);
    assert!(done.status.success(), "{shown}");
    for part in [&print, "subject", "Palisade", "127.0.0.1", "localhost", "ends"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains(PASSWORD), "{shown}");
    assert_eq!(call(&place, &["status", "--url", &url])["ready"], true);
    // It is known by now.
    assert!(types(&whole[1..]).status.success());
    daemon.stop();
}

#[test]
fn any_request_is_sent_and_its_answer_printed() {
    let mut place = Place::new("api", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    daemon.create("tank", "5", &drives, &[]);
    daemon.call(&["volume", "create", "tank/v", "--size", "4M"]);
    let socket = place.file("socket");
    let api = |words: &[&str], input: &str| {
        let socket = ["--socket", socket.to_str().expect("text")];
        with(&place, &[&["api"][..], words, &socket].concat(), input)
    };
    let json = |output: &Output| -> Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)))
    };
    for path in ["", "/", "/redfish/v1", "?$select=Id"] {
        assert_eq!(json(&api(&["GET", path], ""))["Id"], "RootService", "{path}");
    }
    let volumes = json(&api(&["get", "Systems/local/Storage/palisade/Volumes?$expand=."], ""));
    let volume = &volumes["Members"][0];
    let (uri, tag) = (volume["@odata.id"].as_str().expect("a URI"), &volume["@odata.etag"]);
    let shown = api(&["GET", uri, "--include"], "");
    let shown = text(&shown);
    assert!(shown.starts_with("HTTP/1.1 200 OK\n") && shown.contains("\netag: "), "{shown}");
    assert!(text(&api(&["GET", "$metadata"], "")).starts_with("<?xml"));
    let grow = "{\"CapacityBytes\": 8388608}";
    let old = api(&["PATCH", uri, grow, "--if-match", "\"none\""], "");
    assert_eq!(old.status.code(), Some(1), "{}", text(&old));
    assert!(json(&old)["error"].is_object() && text(&old).contains("PreconditionFailed"));
    let tag = tag.as_str().expect("an ETag");
    let grown = api(&["PATCH", uri, "-", "--if-match", tag], grow);
    assert_eq!(json(&grown)["CapacityBytes"], 8 << 20);
    let file = place.file("body.json");
    std::fs::write(&file, "{\"CapacityBytes\": 4194304}").expect("written");
    let body = format!("@{}", file.display());
    let refused = api(&["PATCH", uri, &body], "");
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    let plan = json(&api(&["PATCH", uri, &body, "--plan"], ""));
    assert!(plan["Plan"]["Lost"].is_array(), "{plan}");
    assert_eq!(json(&api(&["PATCH", uri, &body, "--dry-run"], ""))["Plan"], plan["Plan"]);
    let token = plan["Token"].as_str().expect("a token");
    let shrunk = api(&["PATCH", uri, &body, "--confirm", token], "");
    assert_eq!(json(&shrunk)["CapacityBytes"], 4 << 20);
    let less = api(&["PATCH", uri, "{\"CapacityBytes\": 2097152}", "--yes"], "");
    assert_eq!(json(&less)["CapacityBytes"], 2 << 20);
    assert!(json(&api(&["DELETE", "None", "--yes"], ""))["error"].is_object());
    assert!(api(&["DELETE", "None"], "").status.code() == Some(1));
    daemon.stop();
}
