//! What happens, as it happens: `event`, `status --watch` and `task list --watch`; and what
//! `status` shows.

use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, end, program, text, until, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A command that goes on, whose lines are read as they come.
struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn start(place: &Place, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.args(words).env("PALISADE_SOCKET", place.file("socket")).stdin(Stdio::null());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (tell, lines) = channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { child, lines }
    }

    /// The next line for which this is so.
    fn line(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) if is_it(&line) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("{what}: {error}; there were {seen:#?}"),
            }
        }
    }

    /// Ctrl-C.
    fn interrupt(mut self) {
        let status = end(&mut self.child, Signal::INT, LIMIT);
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until so many streams are open.
fn streams(daemon: &Daemon, count: u64) {
    until("streams", LIMIT, || {
        let all = daemon.text(&["api", "GET", "EventService/Subscriptions"]);
        let all: Value = serde_json::from_str(&all).expect("JSON");
        (all["Members@odata.count"] == count).then_some(())
    });
}

#[test]
fn events_are_listed_and_watched_over_a_restart() {
    let mut place = Place::new("events", 16);
    let state = Value::from(place.file("state").to_string_lossy());
    place.more = format!("state = {state}\n");
    let drives = place.drives(4);
    let daemon = Daemon::start(&place, 1);
    daemon.create("tank", "5", &drives[..3], &[]);
    let all = Watch::start(&place, &["event", "watch"]);
    let json = Watch::start(&place, &["event", "watch", "--json"]);
    let bad = ["event", "watch", "--filter", "MessageId eq 'Palisade.1.0.ArrayDegraded'", "--json"];
    let degraded = Watch::start(&place, &bad);
    streams(&daemon, 3);
    daemon.call(&["array", "fail", "tank", "--drive", "slot:1"]);
    let line =
        all.line("it is degraded", |line| line.contains("tank") && line.contains("degraded"));
    assert!(line.contains("Z  warning   "), "{line}");
    let event: Value = serde_json::from_str(&degraded.line("an object", |_| true)).expect("JSON");
    assert_eq!(event["message_id"], "Palisade.1.0.ArrayDegraded", "{event}");
    assert!(event["schema"] == 1 && event["severity"] == "warning", "{event}");
    let same = json.line("the same", |line| line.contains("Palisade.1.0.ArrayDegraded"));
    assert_eq!(serde_json::from_str::<Value>(&same).expect("JSON"), event);
    daemon.stop();

    // Each watch waits for the daemon, and goes on where it was.
    let daemon = Daemon::start(&place, 1);
    streams(&daemon, 3);
    daemon.call(&["array", "replace", "tank", "--slot", "1", "--with", &drives[3]]);
    daemon.settle("tank");
    all.line("it is optimal again", |line| line.contains("tank") && line.contains("optimal"));
    let listed = daemon.call(&["event", "list"])["events"].clone();
    let listed = listed.as_array().expect("a list");
    let ids: Vec<u64> = listed
        .iter()
        .map(|event| event["id"].as_str().expect("an id").parse().expect("n"))
        .collect();
    assert!(
        ids.is_sorted()
            && listed.contains(&{
                let mut event = event.clone();
                event.as_object_mut().expect("an object").remove("schema");
                event
            })
    );
    let bad = daemon.call(&["event", "list", "--severity", "warning", "--severity", "critical"]);
    let bad = bad["events"].as_array().expect("a list");
    assert!(!bad.is_empty() && bad.iter().all(|event| event["severity"] != "ok"), "{bad:?}");
    assert_eq!(
        daemon.call(&["event", "list", "--since", "2999-01-01"])["events"],
        Value::Array(vec![])
    );
    let recent = daemon.call(&["event", "list", "--since", "1h"]);
    assert_eq!(recent["events"].as_array().map(Vec::len), Some(listed.len()));
    let shown = daemon.text(&["event", "list"]);
    assert!(shown.starts_with("ID") && shown.contains("warning"), "{shown}");
    let status = daemon.call(&["status"]);
    assert!(status["warnings"].to_string().contains("ArrayDegraded"), "{status}");
    assert!(daemon.text(&["status"]).contains("LAST WARNINGS\n"));
    for watch in [all, json, degraded] {
        watch.interrupt();
    }
    streams(&daemon, 0);
    daemon.stop();
}

#[test]
fn status_is_shown_again_when_something_changes() {
    let mut place = Place::new("watch", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let status = Watch::start(&place, &["status", "--watch"]);
    let json = Watch::start(&place, &["status", "--watch", "--json"]);
    status.line("the first", |line| line.starts_with("no arrays"));
    json.line("the first", |line| line == "}");
    streams(&daemon, 2);
    daemon.create("tank", "5", &drives, &[]);
    status.line("an array", |line| line.starts_with("tank ") && line.contains("optimal"));
    json.line("an array", |line| line.contains("\"name\": \"tank\""));
    daemon.call(&["array", "fail", "tank", "--drive", "slot:1"]);
    status.line("what to do", |line| line.contains("palisade array replace tank --slot 1"));
    daemon.stop();
    let daemon = Daemon::start(&place, 1);
    streams(&daemon, 2);
    daemon.call(&["array", "delete", "tank", "--yes"]);
    status.line("nothing again", |line| line.starts_with("no arrays"));
    status.interrupt();
    json.interrupt();
    let tasks = Watch::start(&place, &["task", "list", "--watch"]);
    tasks.line("none", |line| line == "no tasks");
    tasks.interrupt();
    daemon.stop();
    // There is nothing to wait for where there was nothing.
    let mut none = Command::new(env!("CARGO_BIN_EXE_palisade"));
    none.args(["status", "--watch"]).env("PALISADE_SOCKET", place.file("socket"));
    assert_eq!(none.output().expect("ran").status.code(), Some(4));
}

/// Runs a command on a terminal of 12 lines, and types Ctrl-C once this is shown.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 90, 0, 0))
shown, ended = b"", False
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    shown += more
    if not ended and sys.argv[1].encode() in shown:
        ended = True
        os.write(terminal, b"\x03")
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn a_terminal_is_drawn_in_place_until_ctrl_c() {
    let mut place = Place::new("watch: a terminal", 16);
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let seen = |words: &[&str], what: &str| {
        let mut python = program("python3");
        python.args(["-c", TERMINAL, what, env!("CARGO_BIN_EXE_palisade")]).args(words);
        python.env("PALISADE_SOCKET", place.file("socket")).env_remove("NO_COLOR");
        let child = python.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        let output = wait(child, LIMIT, "python3");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        text(&output)
    };
    let shown = seen(&["status", "--watch"], "no arrays");
    assert!(shown.contains("\x1b[H") && shown.contains("\x1b[J"), "{shown:?}");
    daemon.create("tank", "5", &drives, &[]);
    let shown = seen(&["status", "--watch"], "\x1b[J");
    assert!(shown.contains("\x1b[32moptimal\x1b[0m"), "{shown:?}");
    daemon.call(&["array", "fail", "tank", "--drive", "slot:1"]);
    let shown = seen(&["status"], "never");
    let what =
        shown.lines().position(|line| line.starts_with("WHAT TO DO NEXT")).expect("is there");
    let mut next = shown.lines().skip(what + 1);
    assert!(next.next().is_some_and(|line| line.starts_with("  ")), "{shown}");
    assert!(
        shown.replace("\r\n    ", " ").contains("palisade array replace tank --slot 1 --with PATH")
    );
    daemon.stop();
}

#[test]
fn drives_are_named_by_path_serial_number_id_or_slot() {
    let mut place = Place::new("names of drives", 16);
    let drives = place.drives(6);
    let daemon = Daemon::start(&place, 1);
    let listed = daemon.call(&["drive", "list"])["drives"].clone();
    let of = |at: usize, key: &str| listed[at][key].as_str().expect("text").to_owned();
    // What is made of a path begins with a hyphen.
    let (serial, id) = (of(1, "serial"), format!("--drives={}", of(2, "id")));
    let words = ["array", "create", "tank", "--level", "5", "--drives", &drives[0], &serial, &id];
    let made = daemon.call(&words);
    let slots = made["slots"].as_array().expect("a list").iter();
    assert!(slots.map(|slot| &slot["drive"]).eq(drives[..3].iter()), "{made}");
    assert_eq!(
        daemon.call(&["array", "fail", "tank", "--drive", "tank:2"])["slots"][2]["state"],
        "failed"
    );
    let (id, serial) = (of(3, "id"), of(4, "serial"));
    daemon.call(&["array", "replace", "tank", "--slot", "2", &format!("--with={id}")]);
    assert_eq!(daemon.settle("tank")["slots"][2]["drive"], *drives[3]);
    let failed = daemon.call(&["array", "fail", "tank", &format!("--drive={id}")]);
    assert_eq!(failed["slots"][2]["state"], "failed");
    daemon.call(&["drive", "wipe", &serial, "--yes"]);
    let twice = ["array", "create", "other", "--level", "1", "--drives", &serial, &drives[4]];
    assert!(daemon.refused(&twice).contains("(palisade explain DriveTwice)"));
    // A file here is called as another drive is.
    std::fs::write(place.file(&serial), [0; 4096]).expect("written");
    let mut create = Command::new(env!("CARGO_BIN_EXE_palisade"));
    create.args(["array", "create", "other", "--level", "1", "--drives", &serial, &drives[5]]);
    create.env("PALISADE_SOCKET", place.file("socket")).current_dir(place.file(""));
    let output = create.output().expect("ran");
    let told = text(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("(palisade explain DriveAmbiguous)"), "{told}");
    assert!(told.contains(&drives[4]) && told.contains(&of(4, "id")), "{told}");
    daemon.stop();
}

#[test]
fn a_host_is_told_how_to_connect() {
    let mut place = Place::new("connect", 16);
    let drives = place.drives(2);
    let daemon = Daemon::start(&place, 1);
    daemon.create("tank", "1", &drives, &[]);
    daemon.call(&["volume", "create", "tank/a", "--size", "1M"]);
    daemon.call(&["volume", "create", "tank/b", "--size", "1M"]);
    let create = ["export", "create", "tank/a", "--nvme-tcp", "127.0.0.1:0", "--any-host"];
    let made = daemon.text(&create);
    let line = made.lines().last().expect("a line").trim();
    assert!(line.starts_with("nvme connect -t tcp -a 127.0.0.1 -s "), "{made}");
    let host = "nqn.2014-08.org.nvmexpress:uuid:4c4c4544-0042-3510-8053-b6c04f4e3432";
    let create = ["export", "create", "tank/b", "--nvme-tcp", "127.0.0.1:0", "--host", host];
    let made = daemon.call(&create);
    let (subsystem, listener) =
        (made["subsystem"].as_str().expect("an NQN"), made["listeners"][0].as_str().expect("one"));
    let port = listener.rsplit(':').next().expect("a port");
    let whole = format!("nvme connect -t tcp -a 127.0.0.1 -s {port} -n {subsystem} -q {host}");
    assert_eq!(made["connect"], serde_json::json!([whole]));
    daemon.stop();
}
