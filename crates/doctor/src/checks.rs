//! The checks, in the order in which they are told.
//!
//! Invariant: each is a pure function of the facts. A check says that all is well in one line, or
//! nothing where it does not apply.

mod drives;
mod keeping;
mod network;
mod system;

use crate::{Check, Facts};

/// Where the configuration is, if nobody says another place.
pub const CONFIG: &str = "/etc/palisade/palisade.toml";

const fn check(
    area: &'static str,
    id: &'static str,
    looks_for: &'static str,
    run: fn(&crate::Facts) -> Vec<crate::Said>,
) -> Check {
    Check { id, area, looks_for, run }
}

/// How to look again, as somebody who may see all.
fn as_root(facts: &Facts) -> String {
    let file = &facts.config.file;
    match file.to_str() {
        Some(CONFIG) => "sudo palisade doctor".to_owned(),
        _ => format!("sudo palisade doctor --config {}", file.display()),
    }
}

/// All of them.
pub const CHECKS: [Check; 31] = [
    check("config", "config", "the file can be read and has no mistakes", system::config),
    check("daemon", "daemon", "whether one runs, and can be asked", system::daemon),
    check("kernel", "kernel", "Linux 5.11 or later", system::kernel),
    check("kernel", "io-uring", "io_uring is there, and not switched off", system::io_uring),
    check("limits", "open-files", "as many files may be open as clients may come", system::files),
    check("limits", "memory-lock", "the daemon may lock its memory", system::memory_lock),
    check("limits", "memory", "there is as much memory as is allocated at start", system::memory),
    check("capabilities", "sys-admin", "NVMe drives can be asked how they are", system::sys_admin),
    check(
        "capabilities",
        "sys-resource",
        "a daemon short of memory waits for no I/O",
        system::flusher,
    ),
    check(
        "capabilities",
        "net-bind",
        "ports that need a capability can be bound",
        system::net_bind,
    ),
    check(
        "network",
        "listener-address",
        "addresses to listen on are this machine's",
        network::address,
    ),
    check("network", "listener-port", "no other program listens there", network::port),
    check("network", "port-link", "ports with such an address have a link", network::link),
    check(
        "network",
        "mtu",
        "ports of 10 Gb/s and more for NVMe/TCP take large packets",
        network::mtu,
    ),
    check("drives", "drive-absent", "what `drives` names is there", drives::absent),
    check("drives", "drive-unlisted", "NVMe drives that `drives` leaves out", drives::unlisted),
    check("drives", "drive-twice", "no drive is named twice, in whole or in part", drives::twice),
    check("drives", "drive-in-use", "no other program has a drive", drives::in_use),
    check("drives", "drive-foreign", "drives hold nothing foreign", drives::foreign),
    check("drives", "drive-unusable", "the daemon can use its drives", drives::unusable),
    check(
        "drives",
        "drive-link",
        "links of PCI Express are as wide and fast as they can be",
        drives::link,
    ),
    check("drives", "drive-health", "drives are well", drives::health),
    check("drives", "drive-blocks", "drives have blocks of one size", drives::blocks),
    check(
        "certificate",
        "certificate",
        "it can be used, is good now and for 30 days",
        keeping::certificate,
    ),
    check("certificate", "certificate-names", "it is for this machine", keeping::names),
    check(
        "certificate",
        "certificate-served",
        "HTTPS shows the one that the files have",
        keeping::served,
    ),
    check("certificate", "certificate-key", "nobody else may read its key", keeping::key),
    check("clock", "clock", "something keeps it right, and it did not go back", keeping::clock),
    check(
        "state",
        "state",
        "the state directory is there, its owner's alone, and writable",
        keeping::state,
    ),
    check("state", "state-room", "its file system has room", keeping::room),
    check("state", "socket", "the socket is open to whom it should be", keeping::socket),
];

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
