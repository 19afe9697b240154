//! Interfaces, where the daemon listens, and who listens there.
//!
//! Invariant: addresses that are names are passed over; nobody is asked for them.

use super::{DAEMON, Proc};
use crate::facts::{Daemon, Listener, ListenerOf, Network, Owner, Socket};
use control::config::Config;
use drives::sysfs::Sysfs;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The state of a socket that is listened on, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The network; `seen` are listeners that the records on drives tell of.
pub fn network(
    proc: &Proc<'_>,
    config: &Config,
    daemon: &Daemon,
    (sysfs, seen): (&Path, Vec<Listener>),
) -> Network {
    let https = config.https.iter();
    let mut listeners: Vec<Listener> =
        https.map(|address| Listener { address: *address, of: ListenerOf::Https }).collect();
    listeners.extend(match daemon.told() {
        Some(told) => told.exports.iter().flat_map(of_export).collect(),
        None => seen,
    });
    let first = proc.text("sys/net/ipv4/ip_unprivileged_port_start");
    Network {
        ports: Sysfs::new(sysfs).ports(),
        sockets: sockets(proc, &listeners, daemon),
        first_free_port: first.and_then(|first| first.parse().ok()),
        listeners,
    }
}

/// Where an export listens.
fn of_export(export: &redfish::view::Export) -> Vec<Listener> {
    let of = |is_nvme| ListenerOf::Export { id: export.id.clone(), is_nvme };
    let nvme = export.nvme.iter().flat_map(|nvme| &nvme.listeners);
    let nvme = nvme.filter_map(|text| listener(text, of(true)));
    nvme.chain(export.nbd.iter().filter_map(|text| listener(text, of(false)))).collect()
}

/// A listener at `ADDR:PORT`; none if that is a name, or no port is chosen yet.
pub fn listener(text: &str, of: ListenerOf) -> Option<Listener> {
    let address: SocketAddr = text.parse().ok()?;
    (address.port() != 0).then_some(Listener { address, of })
}

/// Sockets with the ports of these listeners.
fn sockets(proc: &Proc<'_>, listeners: &[Listener], daemon: &Daemon) -> Vec<Socket> {
    let mut found: Vec<(SocketAddr, u64)> = Vec::new();
    for name in ["net/tcp", "net/tcp6"] {
        let text = proc.text(name).unwrap_or_default();
        found.extend(text.lines().filter_map(socket));
    }
    found.retain(|(own, _)| listeners.iter().any(|other| other.address.port() == own.port()));
    if found.is_empty() {
        return Vec::new();
    }
    let owners = owners(proc, daemon);
    let told = |(address, inode)| Socket { address, owner: owners.get(&inode).cloned() };
    found.into_iter().map(told).collect()
}

/// A line of proc_net_tcp(5): where it is listened, and the socket's number.
fn socket(line: &str) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_whitespace();
    let (local, state) = (words.nth(1)?, words.nth(1)?);
    let inode = words.nth(5)?.parse().ok()?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    (state == LISTENS).then_some((SocketAddr::new(ip(address)?, port), inode))
}

/// An address as the kernel writes it: words of 32 bits that are in the network's order in its
/// memory, as numbers of its own.
fn ip(text: &str) -> Option<IpAddr> {
    let word =
        |at: usize| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::from_be);
    match text.len() {
        8 => Some(Ipv4Addr::from_bits(word(0)?).into()),
        32 => {
            let bits = (0..4).try_fold(0_u128, |bits, at| Some(bits << 32 | u128::from(word(at)?)));
            Some(Ipv6Addr::from_bits(bits?).into())
        }
        _ => None,
    }
}

/// Who has which socket, by its number, as far as that may be seen. A daemon that did not tell its
/// number, or one of another namespace of processes, is known by its name.
fn owners(proc: &Proc<'_>, daemon: &Daemon) -> BTreeMap<u64, Owner> {
    let named = |pid: u32| proc.text(&format!("{pid}/comm")).is_some_and(|name| name == DAEMON);
    let told = daemon.told().map(|told| told.pid).filter(|pid| named(*pid));
    let is_daemon = |pid: u32, name: &str| match told {
        Some(own) => own == pid,
        None => *daemon != Daemon::Absent && name == DAEMON,
    };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(proc.at("")).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        for file in std::fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten() {
            let target = std::fs::read_link(file.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|text| text.strip_prefix("socket:["));
            let Some(inode) = inode.and_then(|text| text.strip_suffix(']')?.parse().ok()) else {
                continue;
            };
            let name = proc.text(&format!("{pid}/comm")).unwrap_or_default();
            let is_daemon = is_daemon(pid, &name);
            found.insert(inode, Owner { pid, name, is_daemon });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Told;

    const TCP: &str = "\
        sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
        0: 0100007F:20FB 00000000:0000 0A 00000000:00000000 00:00000000 0 0 0 4711 1 0 100\n\
        1: 0100007F:20FB 0100007F:ABCD 01 00000000:00000000 00:00000000 0 0 0 4712 1 0 100\n\
        2: 00000000:1144 00000000:0000 0A 00000000:00000000 00:00000000 0 0 0 4713 1 0 100\n";
    const TCP6: &str = "head\n 0: 00000000000000000000000001000000:20FB \
        00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4714 1 0 100\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn who_listens_is_found_by_port_with_its_process() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("net/tcp", TCP);
        write("net/tcp6", TCP6);
        write("55/comm", "palisade\n");
        std::fs::create_dir_all(dir.path().join("55/fd")).expect("made");
        let link = |name: &str, to: &str| {
            std::os::unix::fs::symlink(to, dir.path().join("55/fd").join(name)).expect("linked");
        };
        link("3", "socket:[4711]");
        link("4", "/dev/null");
        let https = listener("127.0.0.1:8443", ListenerOf::Https).expect("an address");
        let told = |pid| Daemon::Running(Box::new(Told { pid, ..Told::default() }));
        let silent = Daemon::Silent { why: String::new(), is_refusal: true };
        // One that tells no number, or one that is not a process here, is known by its name.
        let daemons = [(told(55), true), (silent, true), (told(7), true), (Daemon::Absent, false)];
        for (daemon, is_daemon) in daemons {
            let found = sockets(&Proc(dir.path()), core::slice::from_ref(&https), &daemon);
            let owner = Owner { pid: 55, name: "palisade".to_owned(), is_daemon };
            assert_eq!(
                found,
                [
                    Socket { address: "127.0.0.1:8443".parse().expect("one"), owner: Some(owner) },
                    Socket { address: "[::1]:8443".parse().expect("one"), owner: None },
                ]
            );
        }
        assert_eq!(sockets(&Proc(dir.path()), &[], &Daemon::Absent), []);
    }

    #[test]
    fn names_and_ports_that_are_chosen_later_are_no_listeners() {
        for text in ["host:4420", "127.0.0.1:0", "unix:/run/x", ""] {
            assert_eq!(listener(text, ListenerOf::Https), None, "{text}");
        }
    }
}
