//! Where the daemon listens: whether it can, and how good the way there is.

use crate::Said;
use crate::facts::{Daemon, Facts, Listener, ListenerOf, Socket};
use drives::sysfs::{Port, PortKind};
use std::net::{IpAddr, SocketAddr};

/// From this speed on, in megabits per second, small packets cost more than they should.
const FAST: u32 = 10_000;

/// Packets that are large.
const LARGE: u32 = 9_000;

/// For what it is listened, and what to change.
fn told(facts: &Facts, listener: &Listener) -> (String, String) {
    let address = listener.address;
    match &listener.of {
        ListenerOf::Https => (
            format!("{address} (https)"),
            format!("correct `https` in {}", facts.config.file.display()),
        ),
        ListenerOf::Export { id, .. } => (
            format!("{address} (export {id})"),
            format!(
                "make the export anew where it can be served: palisade export delete {id}, and \
                 palisade export create"
            ),
        ),
    }
}

/// The addresses of a port, without the lengths of their prefixes.
fn addresses(port: &Port) -> impl Iterator<Item = IpAddr> {
    port.addresses.iter().filter_map(|text| text.split('/').next()?.parse().ok())
}

/// The ports through which hosts reach a listener: all that have an address, for one on every
/// address.
fn ports_of(facts: &Facts, address: IpAddr) -> Vec<&Port> {
    let is_it = |port: &&Port| match address.is_unspecified() {
        true => addresses(port).next().is_some(),
        false => addresses(port).any(|own| own == address),
    };
    facts.network.ports.iter().filter(is_it).collect()
}

pub fn address(facts: &Facts) -> Vec<Said> {
    let network = &facts.network;
    let foreign = network.listeners.iter().filter(|own| own.is_local == Some(false));
    let said = foreign.map(|own| {
        let (what, change) = told(facts, own);
        let address = own.address.ip();
        let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
        Said::critical(
            format!("no port of this machine has the address of {what}"),
            "the daemon can't listen there, and hosts don't find it",
            format!(
                "run: ip address add {address}/LENGTH dev PORT; for one that moves between \
                 machines: sysctl -w net.{family}.ip_nonlocal_bind=1; or {change}"
            ),
        )
    });
    let found: Vec<_> = said.collect();
    if network.listeners.iter().any(|own| own.is_local.is_none()) {
        return found;
    }
    match (found.is_empty(), network.listeners.len()) {
        (false, _) => found,
        (_, 0) => Vec::new(),
        (_, 1) => vec![Said::ok("the address to listen on is this machine's")],
        (_, count) => {
            vec![Said::ok(format!("all {count} addresses to listen on are this machine's"))]
        }
    }
}

/// Whether who listens on one leaves no room for the other.
fn clash(one: SocketAddr, two: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), two.ip().to_canonical());
    let is_any = a.is_unspecified() || b.is_unspecified();
    one.port() == two.port() && (a == b || is_any && a.is_ipv4() == b.is_ipv4())
}

pub fn port(facts: &Facts) -> Vec<Said> {
    let is_running = facts.daemon != Daemon::Absent;
    let taken = |own: &Listener, socket: &Socket| {
        let is_anothers = match &socket.owner {
            Some(owner) => !owner.is_daemon,
            // Whose it is can't be seen: the daemon's own, if there is one.
            None => !is_running,
        };
        is_anothers && clash(own.address, socket.address)
    };
    let mut found = Vec::new();
    for own in &facts.network.listeners {
        let Some(socket) = facts.network.sockets.iter().find(|socket| taken(own, socket)) else {
            continue;
        };
        let (what, change) = told(facts, own);
        let (who, end) = match &socket.owner {
            Some(owner) => {
                let (name, pid) = (&owner.name, owner.pid);
                (format!("{name} (process {pid})"), format!("run: systemctl status {pid}"))
            }
            None => {
                let port = own.address.port();
                let look = format!("run: sudo ss --listening --tcp --processes sport = :{port}");
                ("another program".to_owned(), look)
            }
        };
        found.push(Said::critical(
            format!("{who} listens on {}, which is to be {what}", socket.address),
            "the daemon can't listen there",
            format!("see what it is, and stop it ({end}); or {change}"),
        ));
    }
    if found.is_empty() && !facts.network.listeners.is_empty() {
        found.push(Said::ok("no other program listens where the daemon does, or would"));
    }
    found
}

/// Ports with the address of a listener that counts.
fn used(facts: &Facts, counts: impl Fn(&&Listener) -> bool) -> Vec<&Port> {
    let listeners: Vec<IpAddr> = facts
        .network
        .listeners
        .iter()
        .filter(counts)
        .map(|own| own.address.ip().to_canonical())
        .filter(|address| !address.is_loopback())
        .collect();
    let is_reached = |port: &&Port| {
        listeners
            .iter()
            .any(|own| ports_of(facts, *own).iter().any(|other| other.name == port.name))
    };
    facts.network.ports.iter().filter(is_reached).collect()
}

pub fn link(facts: &Facts) -> Vec<Said> {
    let is_real = |port: &&Port| port.kind != PortKind::Other;
    let is_any = |own: &&Listener| own.address.ip().to_canonical().is_unspecified();
    let any: Vec<_> = used(facts, is_any).into_iter().filter(is_real).collect();
    // Which ports hosts take, an address for all of them does not say: it is one that has a link.
    let is_reached = any.iter().any(|port| port.has_link);
    let mut ports = used(facts, |own| !is_reached || !is_any(own));
    ports.retain(|port| is_real(port));
    let said = ports.iter().filter(|port| !port.has_link).map(|port| {
        let name = &port.name;
        let (what, mend) = match port.is_enabled {
            true => ("has no link", format!("plug its cable in, and see: ip link show {name}")),
            false => ("is switched off", format!("run: ip link set {name} up")),
        };
        Said::warning(
            format!("{name}, which has an address to listen on, {what}"),
            "no host gets in that way, and the second way of those that have two is none",
            mend,
        )
    });
    let found: Vec<_> = said.collect();
    match (found.is_empty(), ports.is_empty()) {
        (false, _) => found,
        (_, true) => Vec::new(),
        (_, false) => vec![Said::ok("ports with an address to listen on have a link")],
    }
}

pub fn mtu(facts: &Facts) -> Vec<Said> {
    let is_fast = |port: &&&Port| {
        matches!(port.kind, PortKind::Physical | PortKind::Bond)
            && port.megabits.is_some_and(|speed| speed >= FAST)
    };
    let is_nvme = |own: &&Listener| matches!(own.of, ListenerOf::Export { is_nvme: true, .. });
    let ports = used(facts, is_nvme);
    let fast: Vec<_> = ports.iter().filter(is_fast).filter_map(|p| Some((p, p.mtu?))).collect();
    let said = fast.iter().filter(|(_, mtu)| *mtu < LARGE).map(|(port, mtu)| {
        let (name, speed) = (&port.name, port.megabits.unwrap_or(0) / 1000);
        Said::warning(
            format!("{name} of {speed} Gb/s has an MTU of {mtu} bytes"),
            "NVMe/TCP moves large blocks: packets of 9000 bytes take less CPU on both ends",
            format!(
                "where switch and hosts have it too, run: ip link set {name} mtu {LARGE}; and \
                 write it into the network's configuration"
            ),
        )
    });
    let found: Vec<_> = said.collect();
    match (found.is_empty(), fast.is_empty()) {
        (false, _) => found,
        (_, true) => Vec::new(),
        (_, false) => vec![Said::ok("ports for NVMe/TCP take packets of 9000 bytes")],
    }
}
