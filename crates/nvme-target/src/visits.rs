//! Who came: counts of exports and of hosts, beyond the controllers that they are counted of.
//!
//! Invariants
//! - What an export or a host was counted never falls while it is known: a controller that goes
//!   leaves its counts with its host.
//! - Hosts that have no controller are known up to [`HOSTS`]: who left first is forgotten first,
//!   and begins anew.

use crate::access::Export;
use crate::controller::{Controller, Counts};
use crate::limits::HOSTS;
use nvme::nqn::Nqn;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Commands that were done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Done {
    fn of(counts: &Counts) -> Self {
        Self {
            reads: counts.reads.load(Ordering::Relaxed),
            writes: counts.writes.load(Ordering::Relaxed),
            read_bytes: counts.read_bytes.load(Ordering::Relaxed),
            written_bytes: counts.written_bytes.load(Ordering::Relaxed),
        }
    }

    fn add(&mut self, other: &Self) {
        let Self { reads, writes, read_bytes, written_bytes } = self;
        *reads += other.reads;
        *writes += other.writes;
        *read_bytes += other.read_bytes;
        *written_bytes += other.written_bytes;
    }
}

/// A controller that a host has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Present {
    /// Its subsystem.
    pub subsystem: String,
    /// Its number.
    pub controller: u16,
    /// Its queues, the admin queue included.
    pub queues: usize,
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// What it did.
    pub done: Done,
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visitor {
    /// Its name; empty: all that gave none.
    pub host: String,
    /// Controllers that it had, those that it has included.
    pub connected: u64,
    /// Controllers that it has, by subsystem and number.
    pub present: Vec<Present>,
    /// What all of them did.
    pub done: Done,
}

/// An export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visited {
    /// Its name.
    pub export: String,
    /// Controllers that have it.
    pub connections: u64,
    /// Controllers that were made while it was there for them.
    pub connected: u64,
}

/// Who came, and who is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Visits {
    /// Exports that are there or may come back, by name.
    pub exports: Vec<Visited>,
    /// Hosts, by name.
    pub hosts: Vec<Visitor>,
    /// Hosts that asked for a subsystem and got no controller.
    pub turned_away: u64,
}

#[derive(Clone, Default, Debug)]
struct Host {
    connected: u64,
    /// What controllers did that are gone.
    gone: Done,
    /// Controllers that it has.
    present: usize,
    /// When it left, counted in hosts that have.
    left: u64,
}

/// What is kept of who came.
#[derive(Default, Debug)]
pub(crate) struct Book {
    /// Controllers that were made, by export.
    exports: BTreeMap<String, u64>,
    hosts: BTreeMap<String, Host>,
    /// Hosts without a controller, by when they left.
    absent: BTreeMap<u64, String>,
    turned_away: u64,
    lefts: u64,
}

/// A host's name, as it is counted.
fn name(host: Option<&Nqn>) -> String {
    host.map_or_else(String::new, Nqn::to_string)
}

impl Book {
    /// A controller was made, which has these exports.
    pub fn arrived<'a>(&mut self, host: Option<&Nqn>, exports: impl Iterator<Item = &'a String>) {
        for export in exports {
            match self.exports.get_mut(export) {
                Some(connected) => *connected += 1,
                None => drop(self.exports.insert(export.clone(), 1)),
            }
        }
        let host = self.hosts.entry(name(host)).or_default();
        self.absent.remove(&host.left);
        host.connected += 1;
        host.present += 1;
    }

    /// A host got no controller of a subsystem; that of the discovery service is none that counts.
    pub const fn turned_away(&mut self, counts: bool) {
        self.turned_away += counts as u64;
    }

    /// A controller is gone.
    pub fn left(&mut self, controller: &Controller) {
        let key = name(controller.association.host.as_ref());
        let Some(host) = self.hosts.get_mut(&key) else { return };
        host.gone.add(&Done::of(&controller.counts));
        host.present = host.present.saturating_sub(1);
        if host.present > 0 {
            return;
        }
        self.lefts += 1;
        host.left = self.lefts;
        self.absent.insert(self.lefts, key);
        if self.absent.len() > HOSTS
            && let Some((_, first)) = self.absent.pop_first()
        {
            self.hosts.remove(&first);
        }
    }

    /// Exports are gone for good.
    pub fn forget(&mut self, are_gone: impl Fn(&str) -> bool) {
        self.exports.retain(|export, _| !are_gone(export));
    }

    /// All that is known, while these controllers are there and these exports: in each list, those
    /// that the same of them find.
    pub fn read<'a, K: 'a>(
        &self,
        groups: &[Vec<(&'a String, &'a Export<K>)>],
        controllers: &[&Controller],
    ) -> Visits {
        let mut all: BTreeMap<&String, Visited> = BTreeMap::new();
        let of = |export: &String, connected: u64| Visited {
            export: export.clone(),
            connections: 0,
            connected,
        };
        all.extend(self.exports.iter().map(|(export, came)| (export, of(export, *came))));
        for group in groups {
            let finds = |c: &&&Controller| {
                group.first().is_some_and(|(_, export)| c.association.finds(export))
            };
            let connections = controllers.iter().filter(finds).count() as u64;
            for (name, _) in group {
                let visited = all.entry(name).or_insert_with(|| of(name, 0));
                visited.connections = connections;
            }
        }
        let mut hosts: BTreeMap<&str, Visitor> = BTreeMap::new();
        for (name, host) in &self.hosts {
            let Host { connected, gone: done, .. } = *host;
            let visitor = Visitor { host: name.clone(), connected, present: Vec::new(), done };
            hosts.insert(name, visitor);
        }
        for controller in controllers {
            let key = controller.association.host.as_ref().map_or("", Nqn::as_str);
            let Some(visitor) = hosts.get_mut(key) else { continue };
            let done = Done::of(&controller.counts);
            visitor.done.add(&done);
            visitor.present.push(Present {
                subsystem: controller.association.subsystem.to_string(),
                controller: controller.id,
                queues: controller.queues(),
                since: controller.since,
                done,
            });
        }
        for host in hosts.values_mut() {
            host.present
                .sort_by(|a, b| (&a.subsystem, a.controller).cmp(&(&b.subsystem, b.controller)));
        }
        Visits {
            exports: all.into_values().collect(),
            hosts: hosts.into_values().collect(),
            turned_away: self.turned_away,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::PortId;
    use crate::controller::{Association, Way};
    use nvme::identify::ControllerKind;

    fn controller(host: &str) -> Controller {
        let name = |name: &str| Nqn::new(&format!("nqn.2026-11.example:{name}")).unwrap();
        let association = Association {
            subsystem: name("s"),
            host: Some(name(host)),
            host_id: [1; 16],
            port: PortId(1),
            way: Way::default(),
            kind: ControllerKind::Io,
        };
        let instance = nvme::reset::Instance { controller: 1, uniquifier: 1, random: 1 };
        Controller::new(instance, association, 0, 77)
    }

    fn come(book: &mut Book, host: &str) -> Controller {
        let controller = controller(host);
        book.arrived(controller.association.host.as_ref(), core::iter::empty());
        controller
    }

    fn read(book: &Book, controllers: &[&Controller]) -> Vec<Visitor> {
        book.read::<u8>(&[], controllers).hosts
    }

    #[test]
    fn counts_of_a_controller_stay_when_it_goes() {
        let mut book = Book::default();
        let first = come(&mut book, "h");
        first.counts.reads.store(3, Ordering::Relaxed);
        first.counts.read_bytes.store(512, Ordering::Relaxed);
        let before = read(&book, &[&first]);
        assert_eq!((before[0].connected, before[0].present[0].since), (1, 77));
        assert_eq!((before[0].done.reads, before[0].done.read_bytes), (3, 512));
        book.left(&first);
        let after = read(&book, &[]);
        assert_eq!((after[0].done, after[0].present.len()), (before[0].done, 0));
        let second = come(&mut book, "h");
        second.counts.writes.store(2, Ordering::Relaxed);
        let again = read(&book, &[&second]);
        assert_eq!((again[0].connected, again[0].done.reads, again[0].done.writes), (2, 3, 2));
    }

    #[test]
    fn hosts_that_left_are_known_up_to_a_number_and_the_first_goes_first() {
        let mut book = Book::default();
        let stays = come(&mut book, "stays");
        for n in 0..HOSTS + 2 {
            let controller = come(&mut book, &format!("h{n:04}"));
            book.left(&controller);
        }
        let known: Vec<_> = read(&book, &[&stays]).into_iter().map(|host| host.host).collect();
        assert_eq!(known.len(), HOSTS + 1);
        let is_known = |name: &str| known.contains(&format!("nqn.2026-11.example:{name}"));
        assert!(is_known("stays") && is_known("h0002") && !is_known("h0001"));
    }
}
