//! What a service manager is told, by a socket that stands in for it.
//!
//! Such a socket holds few messages, and what finds no room may come late: a thread takes them as
//! they come, so that a busy machine loses none.

use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, program, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::OpenOptions;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Ends the list; no daemon says it.
const END: &str = "END";

/// A manager, and what it was told so far.
struct Manager {
    path: PathBuf,
    messages: Receiver<String>,
    told: Vec<String>,
}

impl Manager {
    /// Listens at a path.
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("bound");
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = [0; 512];
            while let Ok(length) = socket.recv(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                let is_last = text == END;
                if sender.send(text).is_err() || is_last {
                    return;
                }
            }
        });
        Self { path: path.to_owned(), messages, told: Vec::new() }
    }

    /// Takes messages until one begins so; that one.
    fn wait(&mut self, begin: &str) -> &str {
        loop {
            let next = self.messages.recv_timeout(LIMIT);
            let next = next.unwrap_or_else(|_| panic!("no {begin} after {:?}", self.told));
            self.told.push(next);
            if self.told.last().is_some_and(|text| text.starts_with(begin)) {
                return self.told.last().expect("just pushed");
            }
        }
    }

    /// All that it was told, once nobody is left who could say more.
    fn all(mut self) -> Vec<String> {
        let own = UnixDatagram::unbound().expect("a socket");
        own.send_to(END.as_bytes(), &self.path).expect("sent");
        self.wait(END);
        self.told.pop();
        self.told
    }
}

#[test]
fn a_service_manager_is_told_of_each_phase_and_of_each_beat() {
    let place = Place::new("notify", 16);
    let path = place.file("notify");
    let mut manager = Manager::at(&path);
    let by = ["env", &format!("NOTIFY_SOCKET={}", path.display()), "WATCHDOG_USEC=2000000"];
    let daemon = Daemon::start_by(&place, 2, &by, &[]);
    manager.wait("READY=1");
    // The second is the first of many.
    manager.wait("WATCHDOG=1");
    manager.wait("WATCHDOG=1");
    let process = Pid::from_raw(daemon.id() as i32).expect("a process");
    kill_process(process, Signal::HUP).expect("signalled");
    assert!(manager.wait("RELOADING=1").contains("\nMONOTONIC_USEC="));
    manager.wait("READY=1");
    daemon.tell_to_stop();
    manager.wait("STOPPING=1");
    daemon.wait();
    let all = manager.all();
    // A start or a stop that is quicker than the first turn of the cores needs no more time.
    let is_beat = |text: &str| text == "WATCHDOG=1" || text.starts_with("EXTEND_TIMEOUT_USEC=");
    let phases = all.iter().filter(|text| !is_beat(text));
    let first = |text: &String| text.lines().next().unwrap_or_default().to_owned();
    let phases: Vec<String> = phases.map(first).collect();
    assert_eq!(phases, ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"], "{all:?}");
}

#[test]
fn a_stop_asks_for_time_until_all_is_written() {
    let mut place = Place::new("notify-stop", 16);
    let state = place.file("state");
    place.more = format!("state = {}\n", Value::from(state.to_string_lossy()));
    let path = place.file("notify");
    let mut manager = Manager::at(&path);
    // A beat each hour: only the stop itself leads to another.
    let by = ["env", &format!("NOTIFY_SOCKET={}", path.display()), "WATCHDOG_USEC=7200000000"];
    let daemon = Daemon::start_by(&place, 2, &by, &[]);
    manager.wait("READY=1");
    // What is written last waits for a reader.
    let last =
        ["health.json.new", "alerts.json.new", "history.bin.new"].map(|name| state.join(name));
    run(program("mkfifo").args(&last));
    daemon.tell_to_stop();
    manager.wait("STOPPING=1");
    let asked = manager.wait("EXTEND_TIMEOUT_USEC=");
    assert!(asked.ends_with("\nSTATUS=Stopping arrays"), "{asked}");
    let open = |path| OpenOptions::new().read(true).write(true).open(path);
    let _readers = last.map(|path| open(path).ok());
    daemon.wait();
}
