//! Who may have what: exports, the ports they are reached through, the hosts that may have them.
//!
//! An *export* is a namespace of a subsystem. What a host finds at a port follows from the exports
//! alone: it sees the subsystems of those that name the host (or any) and the port, and within a
//! subsystem just these namespaces. So access is denied unless an export grants it.
//!
//! Invariant: within a subsystem every namespace identifier, and every export's name, is there
//! once.

use crate::limits::ACCESS_GROUPS;
use nvme::log::Access;
use nvme::nqn::Nqn;
use std::collections::{BTreeMap, BTreeSet};

/// Which hosts may have an export.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hosts {
    /// Any that finds it.
    Any,
    /// These.
    Only(BTreeSet<Nqn>),
    /// At each port these, and at others none.
    At(BTreeMap<PortId, BTreeSet<Nqn>>),
}

impl Hosts {
    /// Whether a host may, at any port; none: it has no name.
    pub(crate) fn allow(&self, host: Option<&Nqn>) -> bool {
        let has = |hosts: &BTreeSet<Nqn>| host.is_some_and(|host| hosts.contains(host));
        match self {
            Self::Any => true,
            Self::Only(hosts) => has(hosts),
            Self::At(ports) => ports.values().any(has),
        }
    }

    /// Whether a host may at this port.
    fn allow_at(&self, port: PortId, host: Option<&Nqn>) -> bool {
        match self {
            Self::At(ports) => {
                let hosts = ports.get(&port);
                hosts.zip(host).is_some_and(|(hosts, host)| hosts.contains(host))
            }
            Self::Any | Self::Only(_) => self.allow(host),
        }
    }
}

/// A port: where hosts reach the target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortId(pub u16);

/// What hosts are told of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// The address; none: that through which the host that asks has come.
    pub address: Option<String>,
    /// The TCP port.
    pub service: u16,
}

/// A group of namespaces whose access changes as one (Base, section 8.1.2): its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Group(u32);

impl Group {
    /// The first.
    pub const FIRST: Self = Self(1);

    /// The group of this number: 1 to [`ACCESS_GROUPS`].
    pub fn new(number: u32) -> Option<Self> {
        (1..=ACCESS_GROUPS).contains(&number).then_some(Self(number))
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A volume as a namespace of a subsystem; `K` tells cores which volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export<K> {
    /// The subsystem.
    pub subsystem: Nqn,
    /// The namespace's number, 1 or more.
    pub nsid: u32,
    /// The volume.
    pub volume: K,
    /// What the namespace is known by, for ever.
    pub nguid: [u8; 16],
    /// The same, as hosts that want UUIDs see it.
    pub uuid: [u8; 16],
    /// Where it is reached.
    pub ports: BTreeSet<PortId>,
    /// Who may have it.
    pub hosts: Hosts,
    /// Those namespaces whose access changes as one with this one's.
    pub group: Group,
}

impl<K> Export<K> {
    /// Whether a host finds it that looks for a subsystem at a port.
    pub(crate) fn is_found(&self, subsystem: &Nqn, port: PortId, host: Option<&Nqn>) -> bool {
        self.subsystem == *subsystem
            && self.ports.contains(&port)
            && self.hosts.allow_at(port, host)
    }
}

/// An export that is not there, and may come, or come back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    /// The subsystem.
    pub subsystem: Nqn,
    /// The namespace's number.
    pub nsid: u32,
    /// Who may have it.
    pub hosts: Hosts,
}

/// Why an export can't be added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Another has this number within the subsystem.
    NamespaceTaken,
    /// The number is 0 or too large.
    NamespaceNumber,
    /// The name is that of the discovery service.
    DiscoveryName,
}

/// All exports by name.
#[derive(Debug)]
pub(crate) struct Exports<K>(BTreeMap<String, Export<K>>);

impl<K> Default for Exports<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Clone> Exports<K> {
    /// Adds one, or puts it in the place of one with this name.
    pub fn add(&mut self, name: &str, export: Export<K>) -> Result<(), Refused> {
        if export.subsystem.as_str() == nvme::nqn::DISCOVERY {
            return Err(Refused::DiscoveryName);
        }
        if export.nsid == 0 || export.nsid > crate::limits::NAMESPACES {
            return Err(Refused::NamespaceNumber);
        }
        let same = |e: &Export<K>| e.subsystem == export.subsystem && e.nsid == export.nsid;
        if self.0.iter().any(|(other, e)| other != name && same(e)) {
            return Err(Refused::NamespaceTaken);
        }
        self.0.insert(name.to_owned(), export);
        Ok(())
    }

    pub fn remove(&mut self, name: &str) -> Option<Export<K>> {
        self.0.remove(name)
    }

    pub fn get(&self, name: &str) -> Option<&Export<K>> {
        self.0.get(name)
    }

    /// What `host` finds of a subsystem at a port, by number.
    pub fn namespaces(&self, subsystem: &Nqn, port: PortId, host: Option<&Nqn>) -> Vec<Export<K>> {
        let found = |e: &&Export<K>| e.is_found(subsystem, port, host);
        let mut all: Vec<_> = self.0.values().filter(found).cloned().collect();
        all.sort_by_key(|export| export.nsid);
        all
    }

    /// Whether `host` finds any of a subsystem at a port.
    pub fn has(&self, subsystem: &Nqn, port: PortId, host: Option<&Nqn>) -> bool {
        self.0.values().any(|e| e.is_found(subsystem, port, host))
    }

    /// Whether there is a namespace of this number.
    pub fn has_number(&self, subsystem: &Nqn, nsid: u32) -> bool {
        self.0.values().any(|e| e.subsystem == *subsystem && e.nsid == nsid)
    }

    /// Whether a subsystem is reached at a port, by whomever.
    pub fn is_at(&self, subsystem: &Nqn, port: PortId) -> bool {
        self.0.values().any(|e| e.subsystem == *subsystem && e.ports.contains(&port))
    }

    /// All of them, those together that the same hosts find at the same ports, by name.
    pub fn groups(&self) -> Vec<Vec<(&String, &Export<K>)>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (name, export) in &self.0 {
            let key = (&export.subsystem, &export.ports, &export.hosts);
            groups.entry(key).or_default().push((name, export));
        }
        groups.into_values().collect()
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = (&String, &Export<K>)> {
        self.0.iter()
    }

    /// The subsystems that `host` finds, with the port of each.
    pub fn found_by(&self, host: Option<&Nqn>) -> BTreeSet<(Nqn, PortId)> {
        let ports = |e: &Export<K>| {
            let own = e.ports.iter().filter(|port| e.hosts.allow_at(**port, host));
            own.map(|port| (e.subsystem.clone(), *port)).collect::<Vec<_>>()
        };
        self.0.values().flat_map(ports).collect()
    }
}

/// How groups of namespaces are reached at ports: well, unless something else was said.
#[derive(Default, Debug)]
pub(crate) struct Ways {
    /// With what the count of changes was then.
    said: BTreeMap<(PortId, Group), (Access, u64)>,
    changes: u64,
}

impl Ways {
    /// Says how a group is reached at a port; false if it is so already.
    pub fn set(&mut self, port: PortId, group: Group, access: Access) -> bool {
        let is_new = self.get(port, group).0 != access;
        if is_new {
            self.changes += 1;
            self.said.insert((port, group), (access, self.changes));
        }
        is_new
    }

    /// How a group is reached at a port, and what the count of changes was when that changed last.
    pub fn get(&self, port: PortId, group: Group) -> (Access, u64) {
        self.said.get(&(port, group)).copied().unwrap_or((Access::Optimized, 0))
    }

    /// How often anything changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nqn(name: &str) -> Nqn {
        Nqn::new(&format!("nqn.2026-11.example:{name}")).unwrap()
    }

    fn export(subsystem: &str, nsid: u32, ports: &[u16], hosts: Hosts) -> Export<u8> {
        Export {
            subsystem: nqn(subsystem),
            nsid,
            volume: 0,
            nguid: [nsid as u8; 16],
            uuid: [nsid as u8; 16],
            ports: ports.iter().map(|port| PortId(*port)).collect(),
            hosts,
            group: Group::FIRST,
        }
    }

    #[test]
    fn only_what_names_a_host_and_a_port_is_found() {
        let mut exports = Exports::default();
        let one = Hosts::Only([nqn("one")].into());
        exports.add("a", export("s", 1, &[1, 2], one.clone())).unwrap();
        exports.add("b", export("s", 2, &[2], Hosts::Any)).unwrap();
        exports.add("c", export("t", 1, &[1], one)).unwrap();
        let found = |port, host: &str| -> Vec<u32> {
            let all = exports.namespaces(&nqn("s"), PortId(port), Some(&nqn(host)));
            all.iter().map(|export| export.nsid).collect()
        };
        assert_eq!(found(1, "one"), [1]);
        assert_eq!(found(2, "one"), [1, 2]);
        assert_eq!(found(1, "two"), [] as [u32; 0]);
        assert_eq!(found(2, "two"), [2]);
        assert_eq!(found(3, "one"), [] as [u32; 0]);
        let all = |host: &str| exports.found_by(Some(&nqn(host))).len();
        assert_eq!((all("one"), all("two")), (3, 1));
        // Without a name it is nobody that is named.
        assert!(
            exports.has(&nqn("s"), PortId(2), None) && !exports.has(&nqn("t"), PortId(1), None)
        );
        assert_eq!(exports.found_by(None).len(), 1);
        assert!(exports.is_at(&nqn("t"), PortId(1)) && !exports.is_at(&nqn("t"), PortId(2)));
    }

    #[test]
    fn hosts_may_differ_by_port() {
        let mut exports = Exports::default();
        let set = |host: &str| BTreeSet::from([nqn(host)]);
        let at = Hosts::At([(PortId(1), set("one")), (PortId(2), set("two"))].into());
        assert!(at.allow(Some(&nqn("two"))) && !at.allow(Some(&nqn("three"))) && !at.allow(None));
        exports.add("a", export("s", 1, &[1, 2, 3], at)).unwrap();
        let has = |port, host: &str| exports.has(&nqn("s"), PortId(port), Some(&nqn(host)));
        assert_eq!([1, 2, 3].map(|port| has(port, "one")), [true, false, false]);
        assert_eq!([1, 2, 3].map(|port| has(port, "two")), [false, true, false]);
        assert_eq!(exports.found_by(Some(&nqn("one"))), [(nqn("s"), PortId(1))].into());
        assert!(!exports.has(&nqn("s"), PortId(1), None) && exports.found_by(None).is_empty());
    }

    #[test]
    fn numbers_are_given_once() {
        let mut exports = Exports::default();
        exports.add("a", export("s", 1, &[1], Hosts::Any)).unwrap();
        let other = export("s", 1, &[2], Hosts::Any);
        assert_eq!(exports.add("b", other.clone()), Err(Refused::NamespaceTaken));
        assert_eq!(exports.add("a", other), Ok(()));
        let none = export("s", 0, &[2], Hosts::Any);
        assert_eq!(exports.add("b", none), Err(Refused::NamespaceNumber));
        assert!(exports.remove("a").is_some() && exports.remove("a").is_none());
    }

    #[test]
    fn groups_are_reached_well_unless_something_else_was_said() {
        let (mut ways, port) = (Ways::default(), PortId(1));
        let [one, two] = [1, 2].map(|number| Group::new(number).unwrap());
        assert_eq!((ways.get(port, one), ways.changes()), ((Access::Optimized, 0), 0));
        assert!(!ways.set(port, one, Access::Optimized));
        assert!(ways.set(port, one, Access::Inaccessible) && ways.set(port, two, Access::Change));
        assert!(!ways.set(port, two, Access::Change));
        assert_eq!((ways.get(port, one), ways.changes()), ((Access::Inaccessible, 1), 2));
        assert_eq!(ways.get(PortId(2), one), (Access::Optimized, 0));
        assert!(ways.set(port, one, Access::Optimized));
        assert_eq!(ways.get(port, one), (Access::Optimized, 3));
        assert_eq!([0, ACCESS_GROUPS + 1].map(Group::new), [None, None]);
    }
}
