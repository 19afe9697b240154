//! A real Linux host on the daemon's NVMe/TCP target, and a daemon that is a host of Linux's own:
//! Debian's kernels in an emulated machine.
//!
//! The checks are those of `script/guest.d/checks`, which run in the guest. What has to happen to
//! the target meanwhile they ask for by events, which are answered here: the daemon is killed and
//! started again, a drive fails and is rebuilt on another, a volume grows, namespaces come and go.
//! When all is over the array is scrubbed, and read from outside by `script/read-array`.
//!
//! `script/test` runs these beside all other tests: their names end with `is_a_host`, and no other
//! test's has that in it.

use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place};
use crate::common::{skip, text, until};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpSocket;

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555";
/// A second subsystem.
const SECOND: &str = "nqn.2026-11.org.example:second";
/// Where the guest finds this machine.
pub const ADDRESS: &str = "10.0.2.2";
/// How long anything may take in a guest where others compute.
const PATIENCE: Duration = Duration::from_secs(1200);
/// `script/guest`: there is no emulator, or no image can be had.
const NOTHING: i32 = 77;
/// A script of `script/guest.d` whose kernel has died of the fault that is known.
const DIED: i32 = 4;
/// How often that may happen in one test.
const DEATHS: usize = 6;

/// A port that only who binds it by its number gets, such as the daemon: the system gives it to
/// nobody else, whether the daemon runs or not.
struct HeldPort {
    /// Bound, and never listening: then others may listen on it.
    held: TcpSocket,
}

impl HeldPort {
    fn new() -> Self {
        let held = TcpSocket::new_v4().expect("a socket");
        held.set_reuseaddr(true).expect("set");
        held.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        Self { held }
    }

    fn number(&self) -> u16 {
        self.held.local_addr().expect("an address").port()
    }
}

#[test]
fn a_held_port_is_had_by_its_number_only() {
    let port = HeldPort::new();
    let here = (Ipv4Addr::LOCALHOST, port.number());
    let stranger = TcpSocket::new_v4().expect("a socket");
    assert!(stranger.bind(here.into()).is_err(), "nothing holds it");
    for _ in 0..2 {
        // As the daemon does, and after a restart again.
        drop(TcpListener::bind(here).expect("it listens"));
    }
}

/// The daemon that the guest is a host of.
struct Target {
    place: Place,
    daemon: Option<Daemon>,
    port: HeldPort,
    /// The array's own subsystem.
    own: String,
    /// Drives by slot.
    slots: Vec<String>,
    /// Namespaces that came on request.
    added: usize,
}

impl Target {
    fn new(what: &str) -> Self {
        let mut place = Place::new(what, 192);
        let daemon = Daemon::start(&place, 2);
        let slots = place.drives(5);
        daemon.create("data", "5", &slots, &[]);
        daemon.call(&["volume", "create", "data/first", "--size", "384M"]);
        daemon.call(&["volume", "create", "data/second", "--size", "64M"]);
        let first = "data/first";
        // Hosts are told the address at which the guest finds this machine.
        let port = HeldPort::new();
        let number = port.number();
        let (address, told) = (format!("127.0.0.1:{number}"), format!("{ADDRESS}:{number}"));
        let how = ["--nvme-tcp", &address, "--advertise", &told];
        let own = ["--host", HOST];
        let made = daemon.call(&[&["export", "create", first][..], &how, &own].concat());
        let own = made["subsystem"].as_str().expect("text").to_owned();
        let second = [&how[..], &["--any-host", "--subsystem", SECOND]].concat();
        daemon.call(&[&["export", "create", "data/second"][..], &second].concat());
        Self { port, own, slots, added: 0, place, daemon: Some(daemon) }
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    /// Does what the guest asks for.
    fn event(&mut self, words: &[&str]) {
        match words {
            ["restart", _] => {
                self.daemon.take().expect("it runs").kill();
                self.daemon = Some(Daemon::start(&self.place, 2));
            }
            ["fail-drive", _] => {
                let spare = self.place.drive();
                let failed = core::mem::replace(&mut self.slots[1], spare.clone());
                self.daemon().call(&["array", "fail", "data", "--drive", &failed]);
                self.place.spoil(&failed);
                let slot = ["--slot", "1", "--with", &spare];
                self.daemon().call(&[&["array", "replace", "data"][..], &slot].concat());
            }
            ["grow", _, more] => {
                let more: u64 = more.parse().expect("a number");
                let shown = self.daemon().show("data");
                let now = shown["volumes"][0]["size_bytes"].as_u64().expect("a number");
                let bytes = (now + more).to_string();
                self.daemon().call(&["volume", "resize", "data/first", "--size", &bytes]);
            }
            ["add", subsystem] => {
                self.added += 1;
                let name = format!("data/more{}", self.added);
                self.daemon().call(&["volume", "create", &name, "--size", "16M"]);
                let address = format!("127.0.0.1:{}", self.port.number());
                let how = ["--nvme-tcp", &address, "--host", HOST, "--subsystem", subsystem];
                self.daemon().call(&[&["export", "create", &name][..], &how].concat());
            }
            ["remove", _] => {
                let name = format!("more{}", self.added);
                let shown = self.daemon().show("data");
                let exports = shown["exports"].as_array().expect("a list");
                let export = exports.iter().find(|export| export["volume"] == *name);
                let id = export.expect("is there")["id"].as_str().expect("text").to_owned();
                self.daemon().call(&["export", "delete", &id]);
            }
            other => panic!("not known: {other:?}"),
        }
    }

    /// Answers a line of the guest, if it asks for something.
    fn answer(&mut self, line: &str, guest: &mut ChildStdin) {
        let Some(event) = line.trim().strip_prefix("@ ") else { return };
        self.event(&event.split_whitespace().collect::<Vec<_>>());
        guest.write_all(b"go\n").expect("the guest listens");
    }

    /// All is right in the end.
    fn finish(mut self) {
        self.daemon().settle("data");
        self.daemon().scrub("data");
        self.daemon.take().expect("it runs").stop();
        let check = Place::read_array(&["--check"], &self.slots);
        assert!(!check.is_empty());
    }
}

/// Runs `script/guest` with these words, of which the one behind `--` is a script beside it; tells
/// each line that comes. What the guest said, which has succeeded, or nothing if there is none.
pub fn guest(words: &[&str], mut line_came: impl FnMut(&str, &mut ChildStdin)) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../script");
    let at = words.iter().position(|word| *word == "--").expect("a script") + 1;
    let mut command = Command::new(script.join("guest"));
    command.args(&words[..at]).arg(script.join("guest.d").join(words[at])).args(&words[at + 1..]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guest = command.spawn().expect("bash starts it");
    let (mut input, output) =
        (guest.stdin.take().expect("piped"), guest.stdout.take().expect("piped"));
    let mut said = String::new();
    for line in BufReader::new(output).lines() {
        let line = line.expect("text");
        said += &format!("{line}\n");
        line_came(&line, &mut input);
    }
    let ended = guest.wait_with_output().expect("waited for");
    if ended.status.code() == Some(NOTHING) {
        skip(text(&ended).trim().lines().next_back().unwrap_or("no guest"));
        return None;
    }
    println!("{said}{}", text(&ended));
    // What failed comes first: who prints a failure may print the begin of it.
    let wrong = said.lines().filter(|line| line.starts_with("FAILED"));
    let wrong: Vec<&str> = wrong.collect();
    let has_died = ended.status.code() == Some(DIED);
    assert!(ended.status.success() || has_died, "{}: {wrong:?}", ended.status);
    assert!(!has_died || said.lines().any(|line| line.starts_with("DIED ")), "{}", ended.status);
    Some(said)
}

/// Runs checks of a script in a machine with the program, each of which does something so many
/// times; all succeed. Where the kernel dies of a fault of its own that is known (`died` of
/// script/guest.d/lib.sh), another machine goes on with the times and checks that are left. What
/// all of them said, or nothing if there is none.
pub fn succeed_in(machine: &[&str], script: &str, times: usize, checks: &[&str]) -> Option<String> {
    let program = ["--memory", "2048", "--palisade", env!("CARGO_BIN_EXE_palisade"), "--", script];
    let (mut all, mut died) = (String::new(), 0);
    let mut left = VecDeque::from([(times, checks)]);
    while let Some((times, checks)) = left.pop_front() {
        let often = times.to_string();
        let words = [machine, &program, &[&*often], checks].concat();
        let said = guest(&words, |_, _| ())?;
        if let Some((at, done)) = where_it_died(&said, checks) {
            died += 1;
            println!("the kernel of the guest has died in {}, {died} times so far", checks[at]);
            assert!(died <= DEATHS, "of another fault than the one that is known?");
            left.push_front((times, &checks[at + 1..]));
            left.push_front((times.saturating_sub(done).max(1), &checks[at..=at]));
            left.retain(|(_, checks)| !checks.is_empty());
        } else {
            assert!(said.lines().any(|line| line == "0 failed"), "{said}");
        }
        assert!(!said.contains("skipped "), "{said}");
        all += &said;
    }
    Some(all)
}

/// Number of the check in which the kernel died, and how often that had done what it does.
fn where_it_died(said: &str, checks: &[&str]) -> Option<(usize, usize)> {
    let name = said.lines().find_map(|line| line.strip_prefix("DIED "))?;
    let at = checks.iter().position(|check| *check == name).expect("it was asked for");
    let own = said.lines().skip_while(|line| at > 0 && !is_over(line, checks[at - 1]));
    Some((at, own.filter(|line| line.starts_with("round ")).count()))
}

/// Whether a line says that a check has succeeded.
fn is_over(line: &str, check: &str) -> bool {
    line.strip_prefix("ok ").and_then(|rest| rest.split(' ').next()) == Some(check)
}

#[test]
fn what_is_left_is_known_where_a_kernel_died() {
    let checks = ["made", "killed", "stopped"];
    let said = "ok made 2.5\nround 1: killed\nround 2: killed\nDIED killed\n";
    assert_eq!(where_it_died(said, &checks), Some((1, 2)));
    let said = "ok made 2.5\nround 1: killed\nok killed 9\nDIED stopped\n";
    assert_eq!(where_it_died(said, &checks), Some((2, 0)));
    assert_eq!(where_it_died("round 1: killed\nDIED made\n", &checks), Some((0, 1)));
    assert_eq!(where_it_died("ok made 2.5\n0 failed\n", &checks), None);
}

/// Runs the checks on a kernel.
fn checks(kernel: &str, options: &[&str]) {
    let mut target = Target::new(&format!("a host with Linux {kernel}"));
    let (port, own) = (target.port.number().to_string(), target.own.clone());
    let run = [&["run", kernel, "--events", "--time-limit", "7200", "--", "checks"], options];
    let of = ["--host", HOST, "--closed", ADDRESS, &port, &own, SECOND];
    let words = [&run.concat()[..], &of].concat();
    let Some(said) = guest(&words, |line, input| target.answer(line, input)) else { return };
    assert!(said.contains("ok restart_in_io ") && !said.contains("skipped "), "{said}");
    target.finish();
}

#[test]
fn linux_6_12_is_a_host() {
    checks("6.12", &[]);
}

#[test]
fn linux_6_1_is_a_host() {
    checks("6.1", &["--short"]);
}

#[test]
fn linux_6_12_with_md_is_a_host() {
    let machine = ["run", "6.12", "--nvme", "4", "--nvme-size", "128", "--time-limit", "3600"];
    let program = ["--palisade", env!("CARGO_BIN_EXE_palisade"), "--", "peer"];
    let Some(said) = guest(&[&machine[..], &program].concat(), |_, _| ()) else { return };
    assert!(said.lines().any(|line| line == "0 failed"), "{said}");
}

/// Drives behind Linux's own target, and what each has.
const FAR: usize = 4;
const FAR_MIB: u64 = 48;
const WRITTEN: usize = 4 << 20;

/// A daemon whose array is on drives behind Linux's target, by two ports.
struct Initiator {
    place: Place,
    daemon: Option<Daemon>,
    /// Where the guest's ports are here.
    ports: Vec<String>,
    /// What a host writes and reads, once it does, and how often it has written all.
    load: Option<JoinHandle<()>>,
    rounds: Arc<AtomicU64>,
    is_enough: Arc<AtomicBool>,
}

/// A drive behind Linux's target.
fn far(number: usize) -> String {
    format!("nqn.2026-11.org.example:linux-{number}")
}

impl Initiator {
    fn new() -> Self {
        let mut place = Place::new("a host of Linux", 8);
        // The guest may be slow for as long as others compute.
        place.drive_deadline_ms = 600_000;
        place.more = "[fabrics]\nkeep_alive_tmo = 10\nfast_io_fail_tmo = 600\n\
                      hdr_digest = true\ndata_digest = true\ncaches_stay = true\n"
            .to_owned();
        let daemon = Some(Daemon::start(&place, 2));
        let (rounds, is_enough) = Default::default();
        Self { place, daemon, ports: Vec::new(), load: None, rounds, is_enough }
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    /// Waits until the path by a port is so to each of these drives (numbers from 1).
    fn until_all(
        &self,
        what: &str,
        port: usize,
        of: impl Fn(usize) -> bool,
        is_so: impl Fn(&Value) -> bool,
    ) {
        until(what, PATIENCE, || {
            let told = self.daemon().call(&["drive", "paths"]);
            let drives = told["drives"].as_array().expect("a list");
            let own = |number: usize| {
                let mark = format!("{}/", far(number));
                let drive = drives.iter().find(|own| own["drive"].to_string().contains(&mark));
                &drive.expect("each is there")["paths"][port]
            };
            (1..=FAR).filter(|number| of(*number)).all(|number| is_so(own(number))).then_some(())
        });
    }

    /// Waits until all was written and read anew.
    fn goes_on(&self) {
        let enough = self.rounds.load(Ordering::Relaxed) + 2;
        let load = self.load.as_ref().expect("it runs");
        let is_so = || self.rounds.load(Ordering::Relaxed) >= enough || load.is_finished();
        until("what the host writes", PATIENCE, || is_so().then_some(()));
        assert!(!load.is_finished(), "a request failed, or came to other data");
    }

    /// All subsystems are there: an array on them, and a host of it.
    fn serve(&mut self) {
        let at = ["-a", "127.0.0.1", "-s", &self.ports[0]];
        let told = self.daemon().call(&[&["drive", "discover"][..], &at].concat());
        let entries = told["entries"].as_array().expect("a list");
        let is_there = |number| entries.iter().any(|own| own["subnqn"] == far(number));
        assert!((1..=FAR).all(is_there), "{told}");
        let name = |number| format!("nvme+tcp://127.0.0.1:{}/{}/1", self.ports[0], far(number));
        let drives: Vec<String> = (1..=FAR).map(name).collect();
        self.daemon().create("far", "5", &drives, &[]);
        for number in 1..=FAR {
            let at = ["-a", "127.0.0.1", "-s", &self.ports[1], "-n", &far(number)];
            self.daemon().call(&[&["drive", "connect"][..], &at].concat());
        }
        // Each group is at home at one port.
        for (port, home) in [(0, 1), (1, 0)] {
            let is = |wanted: &'static str| move |path: &Value| path["ana"] == wanted;
            self.until_all("its home", port, |number| number % 2 == home, is("optimized"));
            self.until_all("the other", port, |number| number % 2 != home, is("non-optimized"));
        }
        let served = self.daemon().volume(&self.place, "far/v", &WRITTEN.to_string());
        let (is_enough, rounds) = (self.is_enough.clone(), self.rounds.clone());
        let mut data = vec![0; WRITTEN];
        self.place.rng.fill(&mut data);
        let mut client = Client::connect(&served.socket, &served.name).expect("connects");
        let step = 256 << 10;
        self.load = Some(std::thread::spawn(move || {
            let mut back = vec![0; step];
            while !is_enough.load(Ordering::Relaxed) {
                let round = rounds.load(Ordering::Relaxed);
                for at in (0..WRITTEN).step_by(step) {
                    let part = &mut data[at..at + step];
                    part[0] = round as u8;
                    client.write(at as u64, part).expect("written");
                    client.read(at as u64, &mut back).expect("read");
                    assert!(back == *part, "other data at {at}");
                }
                rounds.store(round + 1, Ordering::Relaxed);
            }
        }));
        self.goes_on();
    }

    /// The first port has gone: the other carries all, as well as it can.
    fn gone(&self) {
        self.until_all("the loss", 0, |_| true, |path| path["state"] != "live");
        self.goes_on();
    }

    /// It is there again.
    fn back(&self) {
        let is_back = |path: &Value| path["state"] == "live" && path["reconnects"] != 0;
        self.until_all("the return", 0, |_| true, is_back);
        self.goes_on();
    }

    /// It comes to the drives of the first group no more.
    fn access(&self) {
        let is_so = |path: &Value| path["ana"] == "inaccessible";
        self.until_all("the event", 0, |number| number % 2 == 1, is_so);
        self.goes_on();
    }

    /// All connections ended for a moment, and nobody noticed but whoever looks.
    fn bounced(&mut self) {
        for port in [0, 1] {
            let is_back = |path: &Value| {
                let count = path["reconnects"].as_u64();
                path["state"] == "live" && count.is_some_and(|count| count > u64::from(port == 0))
            };
            self.until_all("the paths", port, |_| true, is_back);
        }
        self.goes_on();
        self.is_enough.store(true, Ordering::Relaxed);
        self.load.take().expect("it runs").join().expect("every byte was right");
        let shown = self.daemon().show("far");
        assert_eq!(shown["state"], "optimal", "{shown}");
        self.daemon().scrub("far");
        self.daemon.take().expect("it runs").stop();
    }

    /// Answers a line of the guest.
    fn answer(&mut self, line: &str, guest: &mut ChildStdin) {
        if let Some(forward) = line.strip_prefix("forward 127.0.0.1:") {
            self.ports.push(forward.split(' ').next().expect("a port").to_owned());
        }
        match line.trim() {
            "@ serve" => self.serve(),
            "@ gone" => self.gone(),
            "@ back" => self.back(),
            "@ access" => self.access(),
            "@ bounced" => self.bounced(),
            _ => return,
        }
        guest.write_all(b"go\n").expect("the guest listens");
    }
}

#[test]
fn palisade_is_a_host_of_linux() {
    let mut initiator = Initiator::new();
    let (count, bytes) = (FAR.to_string(), FAR_MIB.to_string());
    let run = ["run", "6.12", "--events", "--time-limit", "3600"];
    let ports = ["--forward", "0:4420", "--forward", "0:4421", "--"];
    let words = [&run[..], &ports, &["shelf", &count, &bytes]].concat();
    let Some(said) = guest(&words, |line, input| initiator.answer(line, input)) else { return };
    assert!(said.lines().any(|line| line == "0 failed"), "{said}");
}
