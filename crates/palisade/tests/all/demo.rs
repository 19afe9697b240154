//! The demo as a user starts it: small, at every level, with real clients.
//!
//! Where a client is missing a test skips itself and says so, but fails where the environment
//! says `PALISADE_REQUIRE_TOOLS=1` or `CI=true`.

use crate::common::{self, loops, succeeded, text, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Programs that the demo or this test calls.
const TOOLS: &[&str] = &["nbdinfo", "nbdcopy", "qemu-img", "mke2fs", "e2fsck", "python3"];

/// Steps of every demo of an array that has redundancy, in order.
const STEPS: &[&str] = &[
    "fill",
    "create",
    "export",
    "image",
    "copy-in",
    "read-back",
    "pull",
    "read-degraded",
    "rebuild",
    "pull-again",
    "read-degraded-again",
    "rebuild-again",
    "scrub",
    "e2fsck",
    "qemu-compare",
    "stop",
    "outside-check",
    "outside-read",
];

fn tools_are_there() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let absent: Vec<&&str> =
        TOOLS.iter().filter(|tool| !dirs.iter().any(|dir| dir.join(tool).is_file())).collect();
    if absent.is_empty() {
        return true;
    }
    let says = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let required = says("PALISADE_REQUIRE_TOOLS", "1") || says("CI", "true");
    assert!(!required, "missing: {absent:?}; script/test installs them");
    println!("skipped: missing {absent:?}");
    false
}

/// `palisade demo` whose temporary files go to `temporary`.
fn demo(temporary: &Path) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../script/read-array");
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.arg("demo").env("TMPDIR", temporary).env("PALISADE_READ_ARRAY", script);
    command.stdin(Stdio::null());
    command
}

fn small(temporary: &Path, level: &str) -> Command {
    let mut command = demo(temporary);
    command.args(["--level", level, "--drives", "4", "--drive-size", "32M", "--json"]);
    command
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).expect("listed").next().is_none()
}

/// Runs a small demo; returns its object after looking at what all have.
fn play(level: &str, steps: &[&str]) {
    if !tools_are_there() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let output = small(temporary.path(), level).output().expect("started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["schema"], 1);
    assert_eq!(report["ok"], true);
    assert_eq!(report["level"], level);
    assert_eq!(report["drives"], 4);
    let found = report["steps"].as_array().expect("steps");
    let names: Vec<&str> = found.iter().map(|step| step["step"].as_str().expect("text")).collect();
    assert_eq!(names, steps);
    for step in found {
        assert!(step["bytes"].is_u64() && step["verified"] == true, "{step}");
        assert!(step["seconds"].is_f64() && step["mb_per_s"].is_f64(), "{step}");
    }
    assert!(is_empty(temporary.path()), "temporary files are left");
}

#[test]
fn level_0() {
    let pulls = ["pull", "read-degraded", "rebuild", "scrub"];
    let kept = |step: &&str| !pulls.contains(&step.trim_end_matches("-again"));
    play("0", &STEPS.iter().copied().filter(kept).collect::<Vec<_>>());
}

#[test]
fn level_1() {
    play("1", STEPS);
}

#[test]
fn level_5() {
    play("5", STEPS);
}

#[test]
fn level_6() {
    play("6", STEPS);
}

#[test]
fn level_10() {
    play("10", STEPS);
}

#[test]
fn a_folder_keeps_drives_and_image_and_can_be_used_again() {
    if !tools_are_there() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let kept = tempfile::tempdir().expect("a directory");
    for _ in 0..2 {
        let mut command = small(temporary.path(), "0");
        let output = command.arg("--dir").arg(kept.path()).output().expect("started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(is_empty(temporary.path()), "temporary files are left");
        for name in ["drive-00.img", "drive-03.img", "image.ext4", "palisade.toml"] {
            assert!(kept.path().join(name).exists(), "{name}");
        }
        assert!(!kept.path().join("read-back.img").exists());
    }
}

#[test]
fn a_step_that_fails_is_told_and_ends_the_demo() {
    if !tools_are_there() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let script = elsewhere.path().join("read-array");
    std::fs::write(&script, "import sys\nsys.exit('stripe 7 differs')\n").expect("written");
    let mut command = small(temporary.path(), "5");
    let output = command.env("PALISADE_READ_ARRAY", &script).output().expect("started");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stripe 7 differs"));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["ok"], false);
    let last = report["steps"].as_array().expect("steps").last().expect("one");
    assert_eq!((&last["step"], &last["verified"]), (&"outside-check".into(), &false.into()));
    assert!(is_empty(temporary.path()), "temporary files are left");
}

/// Lines of a child's standard output.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok)
}

#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    if !tools_are_there() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let mut command = demo(temporary.path());
    command.args(["--drives", "4", "--drive-size", "32M"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let mut lines = lines(&mut child);
    assert!(lines.any(|line| line.contains("nbdcopy")), "it never copied");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("signalled");
    for _ in lines {}
    assert_eq!(child.wait().expect("ended").code(), Some(1));
    assert!(is_empty(temporary.path()), "temporary files are left");
}

/// A demo that serves, and the ways to it that it tells.
fn serving(dir: &Path, how: &[&str]) -> (Child, Vec<String>) {
    let mut command = demo(dir);
    command.args(["--serve", "--level", "0", "--drives", "2"]).args(how);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
    let mut lines = lines(&mut child);
    let mut ways: Vec<String> = Vec::new();
    while !ways.last().is_some_and(|line| line.starts_with("until")) {
        ways.push(lines.next().expect("another line"));
    }
    (child, ways)
}

/// Ends it as a user would; it ends well.
fn stop(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::TERM).expect("signalled");
    assert!(child.wait().expect("ended").success());
}

#[test]
fn served_over_nvme_to_any_host() {
    if !tools_are_there() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let (child, ways) = serving(temporary.path(), &["--nvme-tcp", "127.0.0.1:0"]);
    assert!(ways[0].contains("to any host"), "{ways:?}");
    let found: Vec<_> = ways.iter().filter(|line| line.contains("nvme connect")).collect();
    let words: Vec<&str> = found[0].split(' ').collect();
    assert_eq!((found.len(), words.len()), (1, 10), "{ways:?}");
    assert_eq!(words[..6], ["nvme", "connect", "-t", "tcp", "-a", "127.0.0.1"]);
    let (port, name) = (words[7], words[9]);
    assert_eq!((words[6], words[8]), ("-s", "-n"));
    assert!(name.starts_with("nqn.") && port.parse::<u16>().is_ok_and(|port| port > 0));
    std::net::TcpStream::connect(format!("127.0.0.1:{port}")).expect("somebody listens");
    stop(child);
    assert!(is_empty(temporary.path()), "temporary files are left");
}

#[test]
fn served_until_sigterm() {
    if !tools_are_there() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let (child, ways) = serving(temporary.path(), &["--nbd", "127.0.0.1:0"]);
    let way = |program: &str| {
        let found = ways.iter().find(|line| line.trim_start().starts_with(program));
        found.unwrap_or_else(|| panic!("no way by {program}: {ways:?}")).trim().to_owned()
    };
    let words = way("nbdinfo");
    let uri = words.split_whitespace().nth(1).expect("a URI");
    let size = Command::new("nbdinfo").args(["--size", uri]).output().expect("started");
    let size: u64 = String::from_utf8_lossy(&size.stdout).trim().parse().expect("a number");
    assert!(size >= 512 << 20, "{size}");
    for program in ["nbdcopy", "qemu-img", "nbd-client"] {
        way(program);
    }
    stop(child);
    assert!(is_empty(temporary.path()), "temporary files are left");
}

/// Steps of a demo of a share, in order.
const SHARE_STEPS: &[&str] = &[
    "fill",
    "create",
    "share",
    "copy-in",
    "read-back",
    "pull",
    "read-degraded",
    "write-degraded",
    "rebuild",
    "read-rebuilt",
    "scrub",
    "unshare",
    "stop",
];

/// A small demo of a share, if there can be one here.
fn sharing(temporary: &Path) -> Option<Command> {
    let can = common::tools_are_there(crate::shares::TOOLS) && loops::are_to_be_had();
    let mut command = demo(temporary);
    command.args(["--share", "--drives", "4", "--drive-size", "32M"]);
    can.then_some(command)
}

/// What a demo of a share has mounted, which this process has started.
fn mounted(demo: u32) -> Vec<String> {
    let all = std::fs::read_to_string("/proc/mounts").expect("read");
    let own = format!("/tmp/palisade-demo-{demo}-");
    all.lines().filter(|line| line.contains(&own)).map(str::to_owned).collect()
}

#[test]
fn a_share_outlives_a_drive() {
    let temporary = tempfile::tempdir().expect("a directory");
    let Some(mut command) = sharing(temporary.path()) else { return };
    // Whatever its folder is called.
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("a b'c");
    let output = command.arg("--json").arg("--dir").arg(&dir).output().expect("started");
    assert!(output.status.success(), "{}", text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let found = report["steps"].as_array().expect("steps");
    let names: Vec<&str> = found.iter().map(|step| step["step"].as_str().expect("text")).collect();
    assert_eq!((names, &report["ok"]), (SHARE_STEPS.to_vec(), &true.into()));
    assert!(found.iter().all(|step| step["verified"] == true), "{report}");
    assert!(is_empty(temporary.path()), "temporary files are left");
    let config = std::fs::read_to_string(dir.join("palisade.toml")).expect("kept");
    assert!(!config.contains("services"), "it can be served again: {config}");
    assert!(!dir.join("source.bin").exists() && !dir.join("smb.login").exists());
}

#[test]
fn a_share_is_there_until_sigterm() {
    let temporary = tempfile::tempdir().expect("a directory");
    let Some(mut command) = sharing(temporary.path()) else { return };
    command.args(["--serve", "--json"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let told = lines(&mut child).next().expect("a line");
    let told: Value = serde_json::from_str(&told).expect("one JSON object");
    assert_eq!((&told["share"], &told["user"]), (&"demo".into(), &"demo".into()));
    let (urls, password) = (&told["urls"], told["password"].as_str().expect("text"));
    let port = urls[0].as_str().and_then(|url| url.split([':', '/']).nth(4)).expect("a port");
    let mut client = Command::new("smbclient");
    client.args(["//127.0.0.1/demo", "-p", port, "-s", "/dev/null", "-c", "ls"]);
    client.arg("-U").arg(format!("demo%{password}"));
    succeeded("smbclient", &client.output().expect("started"));
    assert!(urls[1].as_str().is_some_and(|url| url.starts_with("nfs://127.0.0.1")), "{told}");
    let pid = child.id();
    assert!(!mounted(pid).is_empty());
    stop(child);
    assert_eq!(mounted(pid), Vec::<String>::new());
    assert!(is_empty(temporary.path()), "temporary files are left");
}

#[test]
fn nothing_of_a_share_is_left_where_what_serves_it_dies() {
    for (word, what) in [("serve", "palisade serve"), ("services", "palisade services")] {
        let temporary = tempfile::tempdir().expect("a directory");
        let Some(mut command) = sharing(temporary.path()) else { return };
        command.args(["--serve", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        // Its standard output stays open: nothing else is printed there.
        let _told = lines(&mut child).next().expect("a line");
        let pid = child.id();
        let own = children(pid).into_iter().find(|(_, line)| {
            line.split(|own: char| own.is_whitespace() || own == '\0').any(|own| own == word)
        });
        let own = Pid::from_raw(own.expect("it runs").0).expect("a process");
        kill_process(own, Signal::KILL).expect("killed");
        let ended = child.wait_with_output().expect("ended");
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains(what) && said.contains("killed by signal 9"), "{said}");
        assert_eq!(mounted(pid), Vec::<String>::new());
        assert!(is_empty(temporary.path()), "temporary files are left");
        let place = PathBuf::from(format!("/tmp/palisade-demo-{pid}-0"));
        assert_eq!(common::services::share_servers(&place), Vec::<i32>::new());
    }
}

#[test]
fn what_a_share_can_not_have_is_told() {
    let temporary = tempfile::tempdir().expect("a directory");
    for other in ["--nbd", "--nvme-tcp", "--console"] {
        let mut command = demo(temporary.path());
        let ended = command.args(["--serve", "--share", other, "127.0.0.1:0"]).output();
        assert_eq!(ended.expect("started").status.code(), Some(2), "{other}");
    }
    let nowhere = tempfile::tempdir().expect("a directory");
    let mut command = demo(temporary.path());
    let ended = command.arg("--share").env("PATH", nowhere.path()).output().expect("started");
    let said = String::from_utf8_lossy(&ended.stderr);
    let is_root = rustix::process::geteuid().is_root();
    let why = if is_root { "apt-get install samba" } else { "only root" };
    assert!(ended.status.code() == Some(1) && said.contains(why), "{said}");
    assert!(is_empty(temporary.path()), "temporary files are left");
}

/// Processes that a process has started, and how they were called.
fn children(parent: u32) -> Vec<(i32, String)> {
    let all = std::fs::read_dir("/proc").expect("listed").flatten().map(|own| own.path());
    let is_of = |path: &PathBuf| {
        // "pid (name) state parent …"
        let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        let told = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        told == Some(parent)
    };
    let named = |path: PathBuf| {
        let line = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
        Some((path.file_name()?.to_str()?.parse().ok()?, line.replace('\0', " ")))
    };
    all.filter(is_of).filter_map(named).collect()
}

/// Longest that something may take that takes a moment, on the busiest machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A demo with a page: its child, its page's URL without the last slash, and the password.
struct Console {
    child: Child,
    url: String,
    password: String,
    dir: tempfile::TempDir,
    /// What it prints after that.
    more: Receiver<String>,
}

/// The lines that a child prints, as they come: until its standard output ends.
fn printed(child: &mut Child) -> Receiver<String> {
    let lines = lines(child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || lines.map(|line| sender.send(line)).all(|sent| sent.is_ok()));
    receiver
}

impl Console {
    fn start(temporary: &Path, how: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = demo(temporary);
        command.args(["--serve", "--console", "127.0.0.1:0", "--dir"]).arg(dir.path()).args(how);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
        let more = printed(&mut child);
        let line = more.recv_timeout(LIMIT).expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let [_, url, _, password] = words[..] else { panic!("{line}") };
        assert_eq!((words[0], words[2]), ("console", "admin"), "{line}");
        let url = url.strip_suffix('/').expect("a path").to_owned();
        Self { child, url, password: password.to_owned(), dir, more }
    }

    /// Asserts that it printed no other line, once it has ended.
    fn assert_silent(more: &Receiver<String>) {
        assert_eq!(more.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
    }

    /// A command of the command line on the daemon's socket.
    fn ask(&self, words: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.args(words).arg("--json").stdin(Stdio::null());
        command.env("PALISADE_SOCKET", self.dir.path().join("palisade.sock"));
        let told = succeeded(&words.join(" "), &command.output().expect("started"));
        serde_json::from_str(&told).expect("JSON")
    }

    /// Logs in as the page does, trusting the certificate that the daemon's log names.
    fn log_in(&self, said: &Path) -> Output {
        let print = until("HTTPS", LIMIT, || {
            let said = std::fs::read_to_string(said).expect("a log");
            let address = self.url.strip_prefix("https://").expect("HTTPS");
            let (_, rest) = said.split_once(&format!("HTTPS on {address}, SHA-256 "))?;
            rest.lines().next().filter(|print| print.len() == 95).map(str::to_owned)
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.args(["login", &self.url, "--user", "admin", "--fingerprint", &print]);
        command.env("XDG_STATE_HOME", self.dir.path().join("home"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let mut stdin = child.stdin.take().expect("piped");
        writeln!(stdin, "{}", self.password).expect("written");
        drop(stdin);
        child.wait_with_output().expect("ended")
    }

    /// Waits until more was written to the array's drives.
    fn await_load(&self) {
        let written = || {
            let shown = self.ask(&["array", "show", "demo"]);
            let drives = shown["drive_io"].as_array().expect("drives");
            drives.iter().map(|own| own["write_bytes"].as_u64().expect("bytes")).sum::<u64>()
        };
        let before = written();
        until("load", LIMIT, || (written() > before).then_some(()));
    }
}

/// All bytes of the files below a folder that are not drives.
fn texts(dir: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(dir).expect("listed").flatten() {
        let path = entry.path();
        match path.extension().is_some_and(|end| end == "img") {
            false if path.is_dir() => all += &texts(&path),
            false if path.is_file() => {
                all += &String::from_utf8_lossy(&std::fs::read(&path).expect("read"));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn a_page_shows_an_enclosure_under_load() {
    let temporary = tempfile::tempdir().expect("a directory");
    let console = Console::start(temporary.path(), &["--nbd", "127.0.0.1:0"]);
    let done = console.log_in(&console.dir.path().join("daemon.log"));
    assert!(done.status.success(), "{}", text(&done));
    assert!(!texts(console.dir.path()).contains(&console.password), "the password is kept");
    let drives = console.ask(&["drive", "list"]);
    assert_eq!(drives["drives"].as_array().expect("drives").len(), 24);
    let shown = console.ask(&["array", "show", "demo"]);
    assert_eq!((&shown["level"], &shown["state"]), (&"6".into(), &"optimal".into()));
    assert_eq!(shown["slots"].as_array().expect("slots").len(), 12);
    console.await_load();
    // The load comes back with its volume.
    let exports = shown["exports"].as_array().expect("exports");
    let loaded = exports.iter().find(|export| export["volume"] == "database").expect("an export");
    let (id, socket) = (loaded["id"].as_str().expect("text"), loaded["nbd"].as_str());
    console.ask(&["export", "delete", id]);
    console.ask(&["volume", "delete", "demo/database", "--yes"]);
    console.ask(&["volume", "create", "demo/database", "--size", "128M"]);
    console.ask(&["export", "create", "demo/database", "--nbd", socket.expect("text")]);
    console.await_load();
    let Console { child, dir, more, .. } = console;
    stop(child);
    Console::assert_silent(&more);
    assert!(is_empty(temporary.path()), "temporary files are left");
    assert!(dir.path().join("slot-24.img").exists() && !dir.path().join("load.sock").exists());
}

#[test]
fn a_page_is_back_with_its_daemon() {
    let temporary = tempfile::tempdir().expect("a directory");
    let mut console = Console::start(temporary.path(), &["--level", "1", "--nbd", "127.0.0.1:0"]);
    let (daemon, _) = children(console.child.id()).pop().expect("a daemon");
    kill_process(Pid::from_raw(daemon).expect("a process"), Signal::KILL).expect("killed");
    assert_eq!(console.child.wait().expect("ended").code(), Some(1));
    Console::assert_silent(&console.more);
    let said = console.dir.path().join("again.log");
    let mut again = Command::new(env!("CARGO_BIN_EXE_palisade"));
    again.arg("serve").arg("--config").arg(console.dir.path().join("palisade.toml"));
    again.stdin(Stdio::null()).stdout(Stdio::null());
    let again = again.stderr(std::fs::File::create(&said).expect("a log")).spawn();
    let again = again.expect("started");
    let done = console.log_in(&said);
    stop(again);
    assert!(done.status.success(), "{}", text(&done));
    assert!(is_empty(temporary.path()), "temporary files are left");
}

#[test]
fn a_port_that_others_have_is_refused() {
    let temporary = tempfile::tempdir().expect("a directory");
    let other = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = other.local_addr().expect("an address").to_string();
    let output = demo(temporary.path()).args(["--serve", "--console", &address]).output();
    let output = output.expect("started");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&address) && said.contains("choose another port"), "{said}");
    assert!(is_empty(temporary.path()), "temporary files are left");
}
