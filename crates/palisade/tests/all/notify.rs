//! What a service manager is told, by a socket that stands in for it.

use crate::common::place::{Daemon, Place};
use crate::common::{LIMIT, until};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::UnixDatagram;

/// Takes messages until one begins so.
fn told(manager: &UnixDatagram, begin: &str) -> String {
    until(begin, LIMIT, || {
        let mut bytes = [0; 512];
        let length = manager.recv(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        text.starts_with(begin).then_some(text)
    })
}

#[test]
fn a_service_manager_is_told_of_each_phase_and_of_each_beat() {
    let place = Place::new("notify", 16);
    let path = place.file("notify");
    let manager = UnixDatagram::bind(&path).expect("bound");
    manager.set_read_timeout(Some(LIMIT)).expect("set");
    let by = ["env", &format!("NOTIFY_SOCKET={}", path.display()), "WATCHDOG_USEC=40000"];
    let daemon = Daemon::start_by(&place, 2, &by, &[]);
    // Both come while it starts; and the second is the first of many.
    told(&manager, "EXTEND_TIMEOUT_USEC=");
    told(&manager, "READY=1");
    told(&manager, "WATCHDOG=1");
    told(&manager, "WATCHDOG=1");
    let process = Pid::from_raw(daemon.id() as i32).expect("a process");
    kill_process(process, Signal::HUP).expect("signalled");
    assert!(told(&manager, "RELOADING=1").contains("\nMONOTONIC_USEC="));
    told(&manager, "READY=1");
    daemon.tell_to_stop();
    told(&manager, "STOPPING=1");
    daemon.wait();
}
