//! Network ports: links, speeds and addresses.
//!
//! Purpose: one [`Port`] for each interface that carries traffic of other machines. The files are
//! described by the kernel's `Documentation/ABI/testing/sysfs-class-net`.
//!
//! The kernel's tree has no addresses: those of this machine come from getifaddrs(3). A recorded
//! tree may have them in a file of ours, `addresses`, for each interface.

use super::read::Dir;
use super::{ROOT, Sysfs};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use std::collections::BTreeMap;
use std::path::Path;

/// An interface that is switched on (`IFF_UP`).
const UP: u32 = 1;
/// The interface with which a machine speaks to itself (`IFF_LOOPBACK`).
const LOOPBACK: u32 = 8;

/// What sort of port it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PortKind {
    /// A device.
    Physical,
    /// Several ports as one.
    Bond,
    /// A VLAN of another port.
    Vlan,
    /// Something else that has an address: a bridge, a tunnel.
    Other,
}

/// A network port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// The interface's name.
    pub name: String,
    /// What sort it is.
    pub kind: PortKind,
    /// Its hardware address.
    pub mac: Option<String>,
    /// Whether it is switched on.
    pub is_enabled: bool,
    /// Whether it has a link.
    pub has_link: bool,
    /// Its speed in megabits per second.
    pub megabits: Option<u32>,
    /// Whether it sends and receives at once.
    pub full_duplex: Option<bool>,
    /// The most bytes of a packet.
    pub mtu: Option<u32>,
    /// Its addresses, with the lengths of their networks' prefixes: `192.0.2.1/24`. IPv6 addresses
    /// of the link alone are not among them.
    pub addresses: Vec<String>,
}

/// An address with the length of its network's prefix.
fn address(address: &SockaddrStorage, mask: Option<&SockaddrStorage>) -> Option<String> {
    if let Some(own) = address.as_sockaddr_in() {
        let mask = mask.and_then(SockaddrStorage::as_sockaddr_in);
        let length = mask.map_or(32, |mask| mask.ip().to_bits().count_ones());
        return Some(format!("{}/{length}", own.ip()));
    }
    let own = address.as_sockaddr_in6()?.ip();
    let mask = mask.and_then(SockaddrStorage::as_sockaddr_in6);
    let length = mask.map_or(128, |mask| mask.ip().to_bits().count_ones());
    (!own.is_unicast_link_local()).then(|| format!("{own}/{length}"))
}

/// The addresses of this machine's interfaces, by name.
fn addresses() -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for found in getifaddrs().into_iter().flatten() {
        let own = found.address.as_ref();
        if let Some(own) = own.and_then(|own| address(own, found.netmask.as_ref())) {
            all.entry(found.interface_name).or_default().push(own);
        }
    }
    all
}

/// The kernel's word for the sort of an interface (`DEVTYPE` of its `uevent`).
fn word(dir: &Dir<'_>) -> Option<String> {
    let text = dir.text("uevent")?;
    text.split(' ').find_map(|line| line.strip_prefix("DEVTYPE=")).map(str::to_owned)
}

fn kind(dir: &Dir<'_>) -> PortKind {
    match word(dir).as_deref() {
        Some("vlan") => PortKind::Vlan,
        Some("bond") => PortKind::Bond,
        _ if dir.has("bonding") => PortKind::Bond,
        // A function that a port lends to virtual machines is no port.
        _ if dir.has("device") && !dir.has("device/physfn") => PortKind::Physical,
        _ => PortKind::Other,
    }
}

/// A hexadecimal number: `0x1003`.
fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The port in this directory; `None` if it carries no traffic of other machines.
fn port(dir: &Dir<'_>, addresses: &BTreeMap<String, Vec<String>>) -> Option<Port> {
    let flags = dir.text("flags").and_then(|text| hexadecimal(&text)).unwrap_or(0);
    let recorded = dir.text("addresses");
    let recorded = recorded.map(|text| text.split(' ').map(str::to_owned).collect());
    let addresses: Vec<String> =
        recorded.or_else(|| addresses.get(dir.name()).cloned()).unwrap_or_default();
    let kind = kind(dir);
    if flags & LOOPBACK != 0 || (kind == PortKind::Other && addresses.is_empty()) {
        return None;
    }
    // Without a link the kernel has no speed, or says -1.
    let megabits = dir.number("speed").filter(|speed| *speed > 0);
    Some(Port {
        name: dir.name().to_owned(),
        kind,
        mac: dir.text("address").filter(|mac| mac.contains(|c| !matches!(c, '0' | ':'))),
        is_enabled: flags & UP != 0,
        has_link: dir.number("carrier") == Some(1u32),
        megabits: megabits.and_then(|speed: i64| u32::try_from(speed).ok()),
        full_duplex: match dir.text("duplex").as_deref() {
            Some("full") => Some(true),
            Some("half") => Some(false),
            _ => None,
        },
        mtu: dir.number("mtu"),
        addresses,
    })
}

impl Sysfs {
    /// The network ports, by name.
    pub fn ports(&self) -> Vec<Port> {
        let is_kernels = self.root() == Path::new(ROOT);
        let addresses = if is_kernels { addresses() } else { BTreeMap::new() };
        let Some(class) = self.dir().at("class/net") else { return Vec::new() };
        class.children().iter().filter_map(|(_, dir)| port(dir, &addresses)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

    #[test]
    fn addresses_have_the_lengths_of_their_prefixes() {
        let four = |text: &str| {
            SockaddrStorage::from(SocketAddrV4::new(text.parse::<Ipv4Addr>().expect(text), 0))
        };
        let six = |text: &str| {
            let own = text.parse::<Ipv6Addr>().expect(text);
            SockaddrStorage::from(SocketAddrV6::new(own, 0, 0, 0))
        };
        for (own, mask, expected) in [
            (four("192.0.2.1"), Some(four("255.255.255.0")), Some("192.0.2.1/24")),
            (four("192.0.2.1"), None, Some("192.0.2.1/32")),
            (six("2001:db8::1"), Some(six("ffff:ffff:ffff:ffff::")), Some("2001:db8::1/64")),
            (six("2001:db8::1"), None, Some("2001:db8::1/128")),
            (six("fe80::1"), Some(six("ffff:ffff:ffff:ffff::")), None),
        ] {
            assert_eq!(address(&own, mask.as_ref()).as_deref(), expected);
        }
    }

    #[test]
    fn this_machine_has_an_address_of_its_own() {
        let all = addresses();
        assert!(all.values().flatten().all(|address| address.contains('/')), "{all:?}");
        if let Some(lo) = all.get("lo") {
            assert!(lo.iter().any(|address| address.starts_with("127.")), "{lo:?}");
        }
    }
}
