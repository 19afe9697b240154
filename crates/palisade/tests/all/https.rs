//! The management interface over the network: who is let in, and what they may do there.

use crate::account::{PASSWORD, create, create_with, place};
use crate::common::place::{Daemon, Place};
use crate::common::tls::{PROTOCOLS, Tls, basic};
use crate::common::until;
use crate::redfish::{Answer, POOLS, get, pool};
use control::certificate::{self, For, Identity};
use redfish::access::Role;
use redfish::routes::{Match, Method, Privilege, ROUTES, Route};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SYSTEMS: &str = "/redfish/v1/Systems";
const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// A place whose daemon has a state directory, and serves HTTPS once there is an account.
fn listening(what: &str) -> Place {
    let mut place = place(what);
    place.more.push_str("https = [\"127.0.0.1:0\"]\n");
    place
}

/// Makes an account of each role: `root`, `ops` and `eye`.
fn with_all(place: &Place) -> Tls {
    for (name, role) in [("root", "administrator"), ("ops", "operator"), ("eye", "readonly")] {
        assert!(create(place, name, role).status.success());
    }
    Tls::of(place)
}

fn login(tls: &Tls, name: &str, password: &str) -> Answer {
    let body = json!({"UserName": name, "Password": password});
    tls.ask(("POST", SESSIONS), &[], &body)
}

/// What somebody is answered who sends name and password along.
fn by(tls: &Tls, name: &str, password: &str, asked: (&str, &str), body: &Value) -> Answer {
    tls.ask(asked, &[("authorization", &basic(name, password))], body)
}

/// The lines of the audit log of this account's name, in words.
fn lines(daemon: &Daemon, who: &str) -> Vec<String> {
    let entries = daemon.call(&["audit", "list"])["entries"].clone();
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let own = entries.as_array().expect("a list").iter().filter(|line| line["who"] == who);
    own.map(|line| ["from", "request", "what", "result"].map(|key| text(line, key)).join(" | "))
        .collect()
}

#[track_caller]
fn is(answer: &Answer, status: u16, message: &str) {
    assert_eq!((answer.status, answer.message().as_str()), (status, message), "{answer:?}");
}

#[test]
fn https_comes_with_the_first_account_and_speaks_tls_1_3_only() {
    let place = listening("https: first account");
    let daemon = Daemon::start(&place, 1);
    let off = until("the reason", Duration::from_secs(30), || {
        let next = daemon.call(&["status"])["next"].to_string();
        next.contains("HTTPS").then_some(next)
    });
    assert!(off.contains("there is no account") && off.contains("palisade account create"));
    assert_eq!(get(&place, PROTOCOLS)["HTTPS"]["ProtocolEnabled"], false);
    assert!(!place.file("state/https.pem").exists());
    assert!(create(&place, "root", "administrator").status.success());
    // Who is answered may go on at once.
    assert_eq!(get(&place, PROTOCOLS)["HTTPS"]["ProtocolEnabled"], true);
    let tls = Tls::of(&place);
    assert!(!daemon.call(&["status"])["next"].to_string().contains("HTTPS"));
    let said = format!("palisade: HTTPS on 127.0.0.1:{}, SHA-256 ", tls.port);
    assert!(daemon.said().contains(&said), "{}", daemon.said());

    let root = tls.ask(("GET", "/redfish/v1"), &[], &Value::Null);
    assert_eq!((root.status, root.header("odata-version")), (200, "4.0"));
    let nobody = tls.ask(("GET", SYSTEMS), &[], &Value::Null);
    is(&nobody, 401, "ResourceAtUriUnauthorized");
    assert_eq!(nobody.header("www-authenticate"), "Basic realm=\"Palisade\", charset=\"UTF-8\"");
    // A greeting of TLS 1.2, and none at all.
    let mut hello = vec![0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2b, 1, 0]);
    for bytes in [&hello[..], b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\n\r\n"] {
        let mut stream = tls.connect();
        stream.write_all(bytes).expect("sent");
        let mut answer = Vec::new();
        // The end may come as a reset; before it comes an alert, or nothing.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.first().is_none_or(|first| *first == 0x15), "{answer:?}");
    }
    daemon.stop();
    // Another daemon shows the same certificate, and who could log in still can.
    let before = std::fs::read(place.file("state/https.pem")).expect("kept");
    let daemon = Daemon::start(&place, 1);
    let tls = Tls::of(&place);
    assert_eq!(std::fs::read(place.file("state/https.pem")).expect("kept"), before);
    assert_eq!(by(&tls, "root", PASSWORD, ("GET", SYSTEMS), &Value::Null).status, 200);
    daemon.stop();
}

#[test]
fn sessions_and_basic_let_in_who_has_an_account_and_the_log_says_so() {
    let place = listening("https: logins");
    let daemon = Daemon::start(&place, 1);
    let tls = with_all(&place);
    is(
        &by(&tls, "eye", "wrong password", ("GET", SYSTEMS), &Value::Null),
        401,
        "ResourceAtUriUnauthorized",
    );
    assert_eq!(by(&tls, "eye", PASSWORD, ("GET", SYSTEMS), &Value::Null).status, 200);

    is(&login(&tls, "eye", "wrong password"), 401, "ResourceAtUriUnauthorized");
    let begun = login(&tls, "eye", PASSWORD);
    assert_eq!(begun.status, 201, "{begun:?}");
    let (token, session) = (begun.header("x-auth-token"), begun.header("location"));
    assert!(token.len() >= 32 && session.starts_with(SESSIONS), "{begun:?}");
    assert!(!begun.body.contains(token), "{begun:?}");
    let own = [("x-auth-token", token)];
    // One connection, one after the other.
    let mut client = tls.client();
    let mut ask = |asked| client.ask(asked, &own, &Value::Null).expect("an answer");
    assert_eq!(ask(("GET", SYSTEMS)).status, 200);
    assert_eq!(ask(("GET", session)).json()["UserName"], "eye");
    let shown = ask(("GET", "/redfish/v1/Managers/palisade/LogServices/Audit/Entries"));
    assert!(!shown.body.contains(token) && !shown.body.contains(PASSWORD));
    assert_eq!(ask(("DELETE", session)).status, 204);
    is(&ask(("GET", SYSTEMS)), 401, "NoValidSession");

    let last = by(&tls, "root", PASSWORD, ("DELETE", &format!("{ACCOUNTS}/root")), &Value::Null);
    is(&last, 403, "LastAdministrator");
    let told = lines(&daemon, "eye");
    let get = format!("127.0.0.1 | GET {SYSTEMS} | log in");
    let post = format!("127.0.0.1 | POST {SESSIONS} | log in");
    let delete = format!("127.0.0.1 | DELETE {session} | ");
    let expected = [
        (&get, "refused"),
        (&get, "ok"),
        (&post, "refused"),
        (&post, "intent"),
        (&post, "ok"),
        (&delete, "intent"),
        (&delete, "ok"),
    ];
    let is_so = |(line, (begin, end)): (&String, &(&String, &str))| {
        line.starts_with(begin.as_str()) && line.ends_with(&format!("| {end}"))
    };
    assert!(told.len() == expected.len() && told.iter().zip(&expected).all(is_so), "{told:#?}");
    assert_eq!(daemon.call(&["audit", "verify"])["breaks"], json!([]));
    daemon.stop();
    let said = std::fs::read_to_string(place.file("daemon.log")).expect("a log");
    assert!(!said.contains(PASSWORD), "{said}");
}

#[test]
fn a_new_password_ends_what_the_old_one_opened() {
    let place = listening("https: passwords");
    let daemon = Daemon::start(&place, 1);
    let tls = with_all(&place);
    let begun = login(&tls, "ops", PASSWORD);
    let own = [("x-auth-token", begun.header("x-auth-token"))];
    let mut client = tls.client();
    let mut ask = |asked| client.ask(asked, &own, &Value::Null).expect("an answer");
    assert_eq!(ask(("GET", SYSTEMS)).status, 200);
    // It is known now, and counts a minute.
    assert_eq!(by(&tls, "ops", PASSWORD, ("GET", SYSTEMS), &Value::Null).status, 200);
    let account = format!("{ACCOUNTS}/ops");
    let new = json!({"Password": "another one"});
    let told = by(&tls, "ops", PASSWORD, ("PATCH", &account), &new);
    assert_eq!(told.status, 200, "{told:?}");
    is(&ask(("GET", SYSTEMS)), 401, "NoValidSession");
    let old = by(&tls, "ops", PASSWORD, ("GET", SYSTEMS), &Value::Null);
    is(&old, 401, "ResourceAtUriUnauthorized");
    assert_eq!(by(&tls, "ops", "another one", ("GET", SYSTEMS), &Value::Null).status, 200);

    // Whom an administrator made has to choose its own first.
    let more = ["--password-change-required"];
    assert!(create_with(&place, "new", "operator", &more).status.success());
    let first = login(&tls, "new", PASSWORD);
    assert_eq!(first.status, 201, "{first:?}");
    let told = first.json()["@Message.ExtendedInfo"][0]["MessageId"].to_string();
    assert!(told.contains("PasswordChangeRequired"), "{first:?}");
    let own = [("x-auth-token", first.header("x-auth-token"))];
    let mut client = tls.client();
    let mut ask = |asked, body: Value| client.ask(asked, &own, &body).expect("an answer");
    is(&ask(("GET", SYSTEMS), Value::Null), 403, "PasswordChangeRequired");
    let account = format!("{ACCOUNTS}/new");
    is(&ask(("PATCH", &account), json!({"Password": PASSWORD})), 400, "SamePassword");
    assert_eq!(ask(("PATCH", &account), json!({"Password": "my own one"})).status, 200);
    is(&ask(("GET", SYSTEMS), Value::Null), 401, "NoValidSession");
    assert_eq!(by(&tls, "new", "my own one", ("GET", SYSTEMS), &Value::Null).status, 200);
    daemon.stop();
}

#[test]
fn an_operator_changes_what_a_reader_may_only_see() {
    let mut place = listening("https: roles");
    let drives = place.drives(2);
    let daemon = Daemon::start(&place, 1);
    let tls = with_all(&place);
    let body = pool(&place, "tank", "RAID1", &drives);
    let told = by(&tls, "eye", PASSWORD, ("POST", POOLS), &body);
    is(&told, 403, "InsufficientPrivilege");
    assert_eq!(daemon.call(&["array", "list"])["arrays"], json!([]));
    let made = by(&tls, "ops", PASSWORD, ("POST", POOLS), &body);
    assert_eq!(made.status, 201, "{made:?}");
    let seen = by(&tls, "eye", PASSWORD, ("GET", made.header("location")), &Value::Null);
    assert_eq!((seen.status, &seen.json()["Name"]), (200, &json!("tank")));
    is(&by(&tls, "ops", PASSWORD, ("POST", ACCOUNTS), &json!({})), 403, "InsufficientPrivilege");
    let post = format!("127.0.0.1 | POST {POOLS} | ");
    let of = |who, result: &str| {
        let is_it = |line: &String| line.starts_with(&post) && line.ends_with(result);
        lines(&daemon, who).iter().filter(|line| is_it(line)).count()
    };
    assert_eq!((of("eye", "| refused"), of("eye", "| intent")), (1, 0));
    // One `ok` is that of the login.
    assert_eq!((of("ops", "| intent"), of("ops", "| ok")), (1, 2));
    daemon.stop();
}

/// Whether somebody of this role, or nobody, may do this with what is not its own; none where the
/// resource has no such method.
fn may(role: Option<Role>, route: &Route, method: Method) -> Option<bool> {
    let privilege = match route.privilege(method)? {
        Privilege::ConfigureSelf => Privilege::ConfigureUsers,
        privilege => privilege,
    };
    Some(privilege == Privilege::Nobody || role.is_some_and(|role| role.may(privilege)))
}

/// What has no end.
const STREAM: &str = "/redfish/v1/EventService/SSE";

#[test]
fn every_role_may_over_https_what_the_table_of_routes_says() {
    let place = listening("https: every route");
    let daemon = Daemon::start(&place, 1);
    let tls = with_all(&place);
    let methods = [
        ("GET", Some(Method::Get)),
        ("HEAD", Some(Method::Get)),
        ("POST", Some(Method::Post)),
        ("PATCH", Some(Method::Patch)),
        ("DELETE", Some(Method::Delete)),
        ("PUT", None),
        ("OPTIONS", None),
    ];
    let callers = [
        (None, ""),
        (Some(Role::ReadOnly), "eye"),
        (Some(Role::Operator), "ops"),
        (Some(Role::Administrator), "root"),
    ];
    let mut tried = 0;
    for (role, name) in callers {
        let login = role.map(|_| login(&tls, name, PASSWORD));
        let token = login.as_ref().map(|login| ("x-auth-token", login.header("x-auth-token")));
        let mut client = tls.client();
        for route in ROUTES {
            // Identifiers that nothing has: who may do it is refused for another reason.
            let ids = vec!["x-1".to_owned(); 4];
            let uri = Match { route, ids }.uri();
            for (word, method) in methods {
                let may = method.and_then(|method| may(role, route, method));
                if word == "GET" && may == Some(true) && route.uri == STREAM {
                    // It does not end; HEAD tells who may have it.
                    tried += 1;
                    continue;
                }
                let told = client.ask((word, &uri), token.as_slice(), &json!({}));
                let told = told.unwrap_or_else(|| panic!("{name} {word} {uri}: no answer"));
                let what = format!("{name} {word} {uri}: {told:?}");
                let is_denied = told.status == 401
                    || (told.status == 403
                        && (word == "HEAD" || told.message() == "InsufficientPrivilege"));
                match may {
                    Some(true) => assert!(!is_denied && told.status != 405, "{what}"),
                    Some(false) => {
                        assert_eq!(told.status, if role.is_some() { 403 } else { 401 }, "{what}");
                    }
                    None if role.is_none() => assert!([401, 405].contains(&told.status), "{what}"),
                    None => assert_eq!(told.status, 405, "{what}"),
                }
                assert_eq!(told.header("allow"), route.allow(), "{what}");
                let asks = told.headers.contains_key("www-authenticate");
                assert_eq!(asks, told.status == 401, "{what}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, ROUTES.len() * methods.len() * callers.len());
    let accounts = daemon.call(&["account", "list"])["accounts"].clone();
    assert_eq!(accounts.as_array().map(Vec::len), Some(3), "nothing was changed");
    daemon.stop();
}

const CERTIFICATES: &str = "/redfish/v1/Managers/palisade/NetworkProtocol/HTTPS/Certificates";
const REPLACE: &str =
    "/redfish/v1/CertificateService/Actions/CertificateService.ReplaceCertificate";

/// The fingerprint of the certificate that HTTPS shows, as the socket tells it.
fn fingerprint(place: &Place) -> String {
    get(place, &format!("{CERTIFICATES}/1"))["Fingerprint"].as_str().expect("text").to_owned()
}

/// What is wrong with HTTPS, as the socket tells it.
fn problems(place: &Place) -> Vec<String> {
    let all = get(place, PROTOCOLS)["Status"]["Conditions"].clone();
    let all = all.as_array().cloned().unwrap_or_default();
    all.iter().map(|one| one["MessageId"].as_str().expect("text").to_owned()).collect()
}

/// A certificate for clients of `localhost`, and another machine's name.
fn made() -> Identity {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let wanted = For { host: "nas".to_owned(), ..For::default() };
    certificate::make(&wanted, now, None).expect("made")
}

/// Has the daemon take certificates from files, good and bad ones; the PEM of the last.
fn from_files(place: &Place, daemon: &Daemon) -> String {
    let (file, key) = (place.file("nas.pem"), place.file("nas.key"));
    let write = |pem: &str, key_of: &str| {
        std::fs::write(&file, pem).expect("written");
        let key_of = certificate::key_of(key_of).expect("a key");
        std::fs::write(&key, key_of).expect("written");
    };
    let (good, other) = (made(), made());
    write(&good.shown.pem, &good.pem);
    let config = place.file("palisade.toml");
    let names = |path: &Path| Value::from(path.to_string_lossy());
    let text = std::fs::read_to_string(&config).expect("text");
    let text = format!("certificate = {}\nkey = {}\n{text}", names(&file), names(&key));
    std::fs::write(&config, text).expect("written");
    let hang_up = || {
        let process = Pid::from_raw(daemon.id() as i32).expect("a process");
        kill_process(process, Signal::HUP).expect("told");
    };
    let shows = |own: &Identity| fingerprint(place) == own.shown.fingerprint;
    let limit = Duration::from_secs(30);
    hang_up();
    until("the files", limit, || shows(&good).then_some(()));
    write(&good.shown.pem, &other.pem);
    hang_up();
    let told = until("the problem", limit, || problems(place).pop());
    assert_eq!(told, "Palisade.1.0.CertificateUnusable");
    assert!(shows(&good));
    write(&other.shown.pem, &other.pem);
    hang_up();
    until("the files", limit, || (shows(&other) && problems(place).is_empty()).then_some(()));
    other.shown.pem
}

#[test]
fn certificates_are_replaced_while_clients_are_there_and_a_stop_waits_for_none() {
    let place = listening("https: certificates");
    let daemon = Daemon::start(&place, 1);
    assert!(create(&place, "root", "administrator").status.success());
    let tls = Tls::of(&place);
    // By a client over HTTPS, whose connection goes on.
    let mut early = tls.client();
    let mut go_on = || early.ask(("GET", "/redfish/v1"), &[], &Value::Null).expect("an answer");
    assert_eq!(go_on().status, 200);
    let before = fingerprint(&place);
    let brought = made();
    let body = json!({
        "CertificateString": brought.pem,
        "CertificateType": "PEM",
        "CertificateUri": {"@odata.id": format!("{CERTIFICATES}/1")},
    });
    let told = by(&tls, "root", PASSWORD, ("POST", REPLACE), &body);
    assert!([200, 204].contains(&told.status), "{told:?}");
    assert_eq!(fingerprint(&place), brought.shown.fingerprint);
    assert_eq!(go_on().status, 200);
    let mut stale = tls.client();
    assert!(stale.ask(("GET", "/redfish/v1"), &[], &Value::Null).is_none(), "it trusts another");
    let tls = Tls::of(&place);
    assert_eq!(tls.ask(("GET", "/redfish/v1"), &[], &Value::Null).status, 200);
    let trail = lines(&daemon, "daemon");
    let line = format!("with another key: SHA-256 {}", brought.shown.fingerprint);
    let is_said = |line: &String| line.contains(&before);
    assert!(trail.iter().any(|own| own.contains(&line) && is_said(own)), "{trail:#?}");

    let last = from_files(&place, &daemon);
    assert_eq!(go_on().status, 200);

    // A stop, beside a client that is there, half a handshake and half a request.
    let mut half = tls.connect();
    half.write_all(&[0x16, 3, 1]).expect("sent");
    let mut asking = Tls::trusting(tls.port.into(), &last).client();
    asking.0.write_all(b"GET /redfish/v1 HTTP/1.1\r\nhost: p\r\n").expect("sent");
    asking.0.flush().expect("sent");
    assert_eq!(go_on().status, 200);
    let begun = Instant::now();
    daemon.stop();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let mut rest = Vec::new();
    // The end may come as a reset.
    let _ = half.read_to_end(&mut rest);
    assert!(early.ask(("GET", "/redfish/v1"), &[], &Value::Null).is_none());
}
