//! Zones: which hosts have which namespaces, at which ports. No I/O but that of the folder's file.
//!
//! Where there is no zone, any host has all. As soon as there is one, a host has what zones grant
//! it, and nothing else; what several grant adds up.
//!
//! Invariants
//! - No two zones have one name.
//! - A zone grants nothing that a shelf does not have: its drives, namespaces and ports were there
//!   when it was made, or when it was read.

use crate::core::Shared;
use crate::error::ShelfError;
use crate::plan::Plan;
use nvme::nqn::Nqn;
use nvme_target::Hosts;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// Most zones of a shelf.
const ZONES: usize = 64;
/// The file of a shelf's folder.
const FILE: &str = "zones.json";

/// A zone in words: as it is asked for, shown, and kept in the folder.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneWords {
    /// What it is called.
    pub name: String,
    /// Names (NQN) of its hosts.
    pub hosts: Vec<String>,
    /// Numbers of drives, from 1.
    pub drives: Vec<usize>,
    /// Numbers of namespaces, of each of these; asked for without any: all.
    #[serde(default)]
    pub namespaces: Vec<usize>,
    /// Names of ports; asked for without any: all at which these drives are.
    #[serde(default)]
    pub ports: Vec<String>,
}

/// A zone, checked. Drives and ports are counted from 0, namespaces from 1.
#[derive(Clone, Debug)]
struct Zone {
    name: String,
    hosts: BTreeSet<Nqn>,
    drives: BTreeSet<usize>,
    namespaces: BTreeSet<usize>,
    ports: BTreeSet<usize>,
}

/// All zones of a shelf, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zones(Vec<Zone>);

fn usage<T>(text: String) -> Result<T, ShelfError> {
    Err(ShelfError::Usage(text))
}

impl Zone {
    fn read(words: &ZoneWords, plan: &Plan) -> Result<Self, ShelfError> {
        let name = &words.name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 32 || !name.chars().all(is_plain) {
            return usage("a zone's name has 1 to 32 letters, digits, '-', '_' or '.'".to_owned());
        }
        let host = |text: &String| {
            let told =
                || format!("{text:?} is no NQN of a host, such as nqn.2014-08.org.example:h");
            Nqn::new(text).map_or_else(|_| usage(told()), Ok)
        };
        let hosts: BTreeSet<_> = words.hosts.iter().map(host).collect::<Result<_, _>>()?;
        let drive = |number: &usize| plan.drive(&number.to_string());
        let drives: BTreeSet<_> = words.drives.iter().map(drive).collect::<Result<_, _>>()?;
        if hosts.is_empty() || drives.is_empty() {
            return usage("a zone has at least one host and one drive".to_owned());
        }
        let all = 1..=plan.namespaces;
        if let Some(number) = words.namespaces.iter().find(|number| !all.contains(number)) {
            let last = plan.namespaces;
            return usage(format!("there is no namespace {number}: drives have 1 to {last}"));
        }
        let namespaces = match words.namespaces.is_empty() {
            true => all.collect(),
            false => words.namespaces.iter().copied().collect(),
        };
        Ok(Self {
            name: name.clone(),
            hosts,
            ports: ports(words, &drives, plan)?,
            drives,
            namespaces,
        })
    }

    fn words(&self, plan: &Plan) -> ZoneWords {
        ZoneWords {
            name: self.name.clone(),
            hosts: self.hosts.iter().map(Nqn::to_string).collect(),
            drives: self.drives.iter().map(|drive| drive + 1).collect(),
            namespaces: self.namespaces.iter().copied().collect(),
            ports: self.ports.iter().map(|port| plan.port_name(*port).to_string()).collect(),
        }
    }
}

/// The ports of a zone: those that are named, each of which comes to one of its drives.
fn ports(
    words: &ZoneWords,
    drives: &BTreeSet<usize>,
    plan: &Plan,
) -> Result<BTreeSet<usize>, ShelfError> {
    let there: BTreeSet<_> = drives.iter().flat_map(|drive| plan.ports_of(*drive)).collect();
    if words.ports.is_empty() {
        return Ok(there);
    }
    let port = |name: &String| {
        let port = plan.port(name)?;
        if there.contains(&port) {
            return Ok(port);
        }
        let names: Vec<_> = there.iter().map(|own| plan.port_name(*own).to_string()).collect();
        usage(format!(
            "port {name} comes to none of these drives: they are at {}",
            names.join(", ")
        ))
    };
    let named: BTreeSet<_> = words.ports.iter().map(port).collect::<Result<_, _>>()?;
    let is_out = |drive: &&usize| plan.ports_of(**drive).iter().all(|own| !named.contains(own));
    if let Some(drive) = drives.iter().find(is_out) {
        return usage(format!("drive {} is at none of these ports", drive + 1));
    }
    Ok(named)
}

impl Zones {
    /// Adds a zone.
    ///
    /// # Errors
    /// It can't be, or there is one of that name.
    pub fn add(&mut self, words: &ZoneWords, plan: &Plan) -> Result<(), ShelfError> {
        let zone = Zone::read(words, plan)?;
        if self.0.iter().any(|own| own.name == zone.name) {
            let name = &zone.name;
            return usage(format!(
                "there is a zone {name} already: remove it, or use another name"
            ));
        }
        if self.0.len() == ZONES {
            return usage(format!("a shelf has at most {ZONES} zones"));
        }
        self.0.push(zone);
        Ok(())
    }

    /// Removes a zone.
    ///
    /// # Errors
    /// Which there are.
    pub fn remove(&mut self, name: &str) -> Result<(), ShelfError> {
        let Some(at) = self.0.iter().position(|own| own.name == name) else {
            let names: Vec<&str> = self.0.iter().map(|own| own.name.as_str()).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return usage(format!("there is no zone {name}: there are {there}"));
        };
        self.0.remove(at);
        Ok(())
    }

    /// All of them.
    pub fn words(&self, plan: &Plan) -> Vec<ZoneWords> {
        self.0.iter().map(|zone| zone.words(plan)).collect()
    }

    /// Who has a namespace (number from 1).
    pub fn hosts(&self, drive: usize, namespace: usize) -> Hosts {
        if self.0.is_empty() {
            return Hosts::Any;
        }
        let mut at: BTreeMap<_, BTreeSet<Nqn>> = BTreeMap::new();
        let has =
            |zone: &&Zone| zone.drives.contains(&drive) && zone.namespaces.contains(&namespace);
        for zone in self.0.iter().filter(has) {
            for port in &zone.ports {
                at.entry(Shared::port_id(*port)).or_default().extend(zone.hosts.iter().cloned());
            }
        }
        Hosts::At(at)
    }

    /// Those that a folder has.
    ///
    /// # Errors
    /// They can't be read, or are of another shelf: then hosts would have what nobody granted.
    pub fn load(folder: &Path, plan: &Plan) -> Result<Self, ShelfError> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(|error| ShelfError::of(path.display(), &error))?,
        };
        let wrong = |why: &dyn core::fmt::Display| {
            let told = "the zones that it says can't be: mend it, or remove it to grant all to all";
            ShelfError::Failed(format!("{}: {told} ({why})", path.display()))
        };
        let all: Vec<ZoneWords> = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let mut zones = Self::default();
        all.iter().try_for_each(|words| zones.add(words, plan)).map_err(|error| wrong(&error))?;
        Ok(zones)
    }

    /// Keeps them in a folder, whole or not at all.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn save(&self, folder: &Path, plan: &Plan) -> Result<(), ShelfError> {
        let (path, new) = (folder.join(FILE), folder.join("zones.json.new"));
        let text = serde_json::to_string_pretty(&self.words(plan)).map_err(std::io::Error::other);
        let written = text.and_then(|text| {
            let mut file = std::fs::File::create(&new)?;
            file.write_all(format!("{text}\n").as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            std::fs::File::open(folder)?.sync_all()
        });
        written.map_err(|error| ShelfError::of(path.display(), &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme_target::PortId;

    fn words(name: &str, drives: &[usize]) -> ZoneWords {
        ZoneWords {
            name: name.to_owned(),
            hosts: vec!["nqn.2026-11.example:one".to_owned()],
            drives: drives.to_vec(),
            ..ZoneWords::default()
        }
    }

    fn at(hosts: &Hosts) -> Vec<(u16, usize)> {
        let Hosts::At(all) = hosts else { panic!("{hosts:?}") };
        all.iter().map(|(PortId(port), hosts)| (*port, hosts.len())).collect()
    }

    #[test]
    fn zones_grant_what_they_name_and_add_up() {
        let (plan, mut zones) = (Plan::small(4, 8), Zones::default());
        assert_eq!(zones.hosts(0, 1), Hosts::Any);
        zones.add(&words("a", &[1, 2]), &plan).unwrap();
        // Drives 1 to 4 are at A1 and B1, the ports 1 and 3 of the target.
        assert_eq!(at(&zones.hosts(1, 2)), [(1, 1), (3, 1)]);
        assert_eq!(at(&zones.hosts(2, 1)), []);
        let other = ZoneWords {
            hosts: vec!["nqn.2026-11.example:two".to_owned()],
            namespaces: vec![2],
            ports: vec!["b1".to_owned()],
            ..words("b", &[2])
        };
        zones.add(&other, &plan).unwrap();
        assert_eq!(at(&zones.hosts(1, 2)), [(1, 1), (3, 2)]);
        assert_eq!(at(&zones.hosts(1, 1)), [(1, 1), (3, 1)]);
        let told = zones.words(&plan);
        assert_eq!(
            (told[0].namespaces.as_slice(), &*told[0].ports),
            (&[1, 2][..], &["A1", "B1"].map(String::from)[..])
        );
        assert_eq!((&*told[1].ports[0], told[1].drives[0]), ("B1", 2));
        zones.remove("a").unwrap();
        assert_eq!(at(&zones.hosts(1, 1)), []);
        zones.remove("b").unwrap();
        assert_eq!(zones.hosts(1, 1), Hosts::Any);
    }

    #[test]
    fn what_no_zone_can_be_is_told_with_what_can() {
        let (plan, mut zones) = (Plan::small(4, 8), Zones::default());
        zones.add(&words("a", &[1]), &plan).unwrap();
        let mut wrong = |change: fn(&mut ZoneWords), told: &str| {
            let mut words = words("b", &[1]);
            change(&mut words);
            let error = zones.add(&words, &plan).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        };
        wrong(|own| own.name = "a".to_owned(), "there is a zone a already");
        wrong(|own| own.name = "a b".to_owned(), "1 to 32 letters");
        wrong(|own| own.hosts = vec!["me".to_owned()], "no NQN of a host");
        wrong(|own| own.hosts.clear(), "at least one host");
        wrong(|own| own.drives.clear(), "one drive");
        wrong(|own| own.drives.push(9), "there are 1 to 8");
        wrong(|own| own.namespaces.push(3), "drives have 1 to 2");
        wrong(|own| own.ports = vec!["C1".to_owned()], "there are A1, A2, B1, B2");
        wrong(|own| own.ports = vec!["A2".to_owned()], "they are at A1, B1");
        wrong(
            |own| (own.drives, own.ports) = (vec![1, 5], vec!["A1".to_owned()]),
            "drive 5 is at none of these ports",
        );
        assert!(zones.remove("c").unwrap_err().to_string().contains("there are a"));
    }

    #[test]
    fn a_folder_keeps_them_and_no_shelf_starts_with_others() {
        let (plan, mut zones) = (Plan::small(4, 8), Zones::default());
        let folder = tempfile::tempdir().unwrap();
        assert!(Zones::load(folder.path(), &plan).unwrap().words(&plan).is_empty());
        zones.add(&words("a", &[1, 8]), &plan).unwrap();
        zones.save(folder.path(), &plan).unwrap();
        let again = Zones::load(folder.path(), &plan).unwrap();
        assert_eq!(again.words(&plan), zones.words(&plan));
        let error = Zones::load(folder.path(), &Plan::small(4, 7)).unwrap_err().to_string();
        assert!(error.contains("there are 1 to 7") && error.contains("remove it"), "{error}");
        std::fs::write(folder.path().join(FILE), "[{").unwrap();
        assert!(Zones::load(folder.path(), &plan).is_err());
    }
}
