//! Interfaces, where the daemon listens, and who listens there.
//!
//! Invariant: addresses that are names are passed over; nobody is asked for them.

use super::{DAEMON, Proc};
use crate::facts::{Daemon, Listener, ListenerOf, Network, Owner, Socket};
use control::config::Config;
use drives::sysfs::{Port, Sysfs};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
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
    let https = |address: &SocketAddr| Listener {
        address: *address,
        of: ListenerOf::Https,
        is_local: None,
    };
    let mut listeners: Vec<Listener> = config.https.iter().map(https).collect();
    listeners.extend(match daemon.told() {
        Some(told) => told.exports.iter().flat_map(of_export).collect(),
        None => seen,
    });
    let first = proc.text("sys/net/ipv4/ip_unprivileged_port_start");
    let ports = Sysfs::new(sysfs).ports();
    let is_seen = is_seen(proc, daemon);
    for listener in &mut listeners {
        let address = listener.address.ip().to_canonical();
        listener.is_local = is_seen.then(|| is_local(proc, &ports, address)).flatten();
    }
    Network {
        ports,
        sockets: if is_seen { sockets(proc, &listeners, daemon) } else { Vec::new() },
        first_free_port: first.and_then(|first| first.parse().ok()),
        listeners,
    }
}

/// Whether the network that is seen here is the daemon's: one in a container has its own.
fn is_seen(proc: &Proc<'_>, daemon: &Daemon) -> bool {
    let network = |of: &str| std::fs::read_link(proc.at(of).join("ns/net")).ok();
    if daemon.told().is_none() {
        return true;
    }
    proc.pid_of(daemon).is_some_and(|pid| match (network(&pid.to_string()), network("self")) {
        (Some(one), Some(two)) => one == two,
        _ => true,
    })
}

/// Whether an address can be listened on. The kernel is asked by a socket of ours on a port that it
/// chooses: it knows what no list tells, such as the loopback interface's addresses, whole networks
/// that are local, and `ip_nonlocal_bind`. Of a recorded machine its ports tell.
fn is_local(proc: &Proc<'_>, ports: &[Port], address: IpAddr) -> Option<bool> {
    let is_link_local = matches!(address, IpAddr::V6(own) if own.is_unicast_link_local());
    if address.is_unspecified() || address.is_loopback() || is_link_local {
        return Some(true);
    }
    if proc.is_own() {
        return match UdpSocket::bind((address, 0)) {
            Ok(_) => Some(true),
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => Some(false),
            Err(_) => None,
        };
    }
    let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    if proc.number(&format!("sys/net/{family}/ip_nonlocal_bind")) == Some(1) {
        return Some(true);
    }
    let mut all = ports.iter().flat_map(|port| &port.addresses).peekable();
    all.peek()?;
    Some(all.any(|text| text.split('/').next().is_some_and(|own| own.parse() == Ok(address))))
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
    (address.port() != 0).then_some(Listener { address, of, is_local: None })
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
    let told = proc.pid_of(daemon);
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
    fn an_address_is_local_where_the_kernel_lets_somebody_listen() {
        let own = Proc(Path::new(super::super::PROC));
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for text in ["0.0.0.0", "::", "127.0.0.1", "127.9.9.9", "fe80::1"] {
            assert_eq!(is_local(&own, &[], ip(text)), Some(true), "{text}");
        }
        // An address for documents: nobody has it, but where all addresses may be listened on.
        let is_any = own.number("sys/net/ipv4/ip_nonlocal_bind") == Some(1);
        assert_eq!(is_local(&own, &[], ip("192.0.2.1")), Some(is_any));
    }

    #[test]
    fn of_a_recorded_machine_its_ports_tell_which_addresses_are_local() {
        let dir = tempfile::tempdir().expect("a directory");
        let proc = Proc(dir.path());
        let (tree, ip) =
            (tempfile::tempdir().expect("one"), |text: &str| text.parse().expect(text));
        let text = "class/net/eth0/addresses = 192.0.2.1/24\nclass/net/eth0/flags = 0x1003\n";
        drives::sysfs::tree::unpack(text, tree.path()).expect("unpacked");
        let ports = Sysfs::new(tree.path()).ports();
        assert_eq!(is_local(&proc, &ports, ip("192.0.2.1")), Some(true));
        assert_eq!(is_local(&proc, &ports, ip("192.0.2.2")), Some(false));
        assert_eq!(is_local(&proc, &[], ip("192.0.2.2")), None, "none is told of");
        // An address that moves between machines.
        std::fs::create_dir_all(dir.path().join("sys/net/ipv4")).expect("made");
        std::fs::write(dir.path().join("sys/net/ipv4/ip_nonlocal_bind"), "1\n").expect("written");
        assert_eq!(is_local(&proc, &ports, ip("192.0.2.2")), Some(true));
        assert_eq!(is_local(&proc, &ports, ip("2001:db8::2")), Some(false), "another family");
    }

    #[test]
    fn the_network_of_a_daemon_in_a_container_is_not_this_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let proc = Proc(dir.path());
        for (name, network) in [("self", "net:[1]"), ("5", "net:[1]"), ("6", "net:[2]")] {
            std::fs::create_dir_all(dir.path().join(name).join("ns")).expect("made");
            std::fs::write(dir.path().join(name).join("comm"), "palisade\n").expect("written");
            let link = dir.path().join(name).join("ns/net");
            std::os::unix::fs::symlink(network, link).expect("linked");
        }
        let told = |pid| Daemon::Running(Box::new(Told { pid, ..Told::default() }));
        let seen = [Daemon::Absent, told(5), told(6), told(7)];
        assert_eq!(seen.map(|daemon| is_seen(&proc, &daemon)), [true, true, false, false]);
    }

    #[test]
    fn names_and_ports_that_are_chosen_later_are_no_listeners() {
        for text in ["host:4420", "127.0.0.1:0", "unix:/run/x", ""] {
            assert_eq!(listener(text, ListenerOf::Https), None, "{text}");
        }
    }
}
