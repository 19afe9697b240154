//! Cores with an engine, and the drives of a shelf as these cores reach them: by the initiator that
//! servers use, with its default settings.

use crate::error::BenchError;
use crate::rig::{Aim, Rig, references};
use drives::SharedDrive;
use drives::remote::host::{HostIdentity, PathState, Settings};
use drives::remote::{Fabric, Name, Place, Wishes};
use engine::manage::command::{ArrayStatus, Identity, NewArray, Request};
use layout::Level;
use nvme::log::PlaceKind;
use nvme::nqn::Nqn;
use std::collections::BTreeSet;
use std::path::PathBuf;
use units::{CoreId, MIB, Nanos, Uuid};

/// How often a server says that it has its array, as servers do by default.
const HEARTBEAT: Nanos = Nanos::from_millis(1_000);
const STRIP: u32 = 64 << 10;

/// A host of a shelf.
pub struct Host {
    /// Its cores. In front of the fabric, so that nothing is asked of that once it has ended.
    pub rig: Rig,
    /// What it reaches.
    pub fabric: Fabric,
    /// Who it is to arrays.
    id: Uuid,
}

/// A name of a host that is no other's.
pub fn name(number: usize) -> String {
    format!("nqn.2026-11.org.example:bench-{}-{number:02}", std::process::id())
}

impl Host {
    /// A host of that name on these cores.
    pub fn start(rig: Rig, name: &str) -> Result<Self, BenchError> {
        let nqn = Nqn::new(name).map_err(|error| BenchError::Usage(error.to_string()))?;
        // The end of the name tells hosts apart.
        let mut id = [b'-'; 16];
        id.iter_mut().rev().zip(name.bytes().rev()).for_each(|(own, byte)| *own = byte);
        let host = HostIdentity { nqn, id };
        let system = |error| BenchError::System { path: "the fabric's core".into(), error };
        let fabric = Fabric::start(host, Settings::default(), rig.cores()).map_err(system)?;
        for core in 0..rig.cores() {
            let fabric = fabric.clone();
            rig.on_core(CoreId(core), move |env, _| fabric.serve(env));
        }
        Ok(Self { rig, fabric, id: Uuid(id) })
    }

    /// Connects all that is found at these places; the namespaces of that number, each once.
    pub fn connect(
        &self,
        places: &[Place],
        namespaces: &[u32],
    ) -> Result<Vec<SharedDrive>, BenchError> {
        let (mut names, usual): (BTreeSet<PathBuf>, _) = (BTreeSet::new(), Wishes::default());
        for place in places {
            // What it tells of other ports is not there.
            let at = (&place.host, place.port.to_string());
            let found = self.fabric.discover(place, &usual)?.1.into_iter();
            let here = found.filter(|own| (&own.address, &own.service) == (at.0, &at.1));
            for own in here.filter(|own| own.kind == PlaceKind::Subsystem) {
                let (place, subsystem) = (Some(place.clone()), Some(own.subsystem));
                names
                    .extend(self.fabric.find(&Name { place, subsystem, namespace: None }, &usual)?);
            }
        }
        let mut drives = Vec::new();
        for name in names.iter().filter_map(|path| Name::of(path)?.ok()) {
            if let Name { subsystem: Some(subsystem), namespace: Some(namespace), .. } = name
                && namespaces.contains(&namespace)
            {
                drives.push(self.fabric.open(&subsystem, namespace)?);
            }
        }
        Ok(drives)
    }

    /// Makes an array of drives, RAID 5, and in it a volume of somewhat more than `bytes`; where to
    /// aim at that. The array is shared, as all are whose drives other servers may reach.
    pub fn make_array(&self, drives: &[SharedDrive], bytes: u64) -> Result<Aim, BenchError> {
        let (name, host) = ("bench".to_owned(), self.id);
        let identity = Identity { host, boot: host, name: name.clone(), heartbeat: HEARTBEAT };
        self.rig.ask(|reply| Request::Identify(identity, reply))?;
        let new = NewArray {
            shared: true,
            name: name.clone(),
            level: Level::Raid5,
            strip_bytes: STRIP,
            block_bytes: None,
        };
        let references = references(drives);
        let made: ArrayStatus = self.rig.ask(|reply| Request::Create(new, references, reply))?;
        let volume = self
            .rig
            .ask(|reply| Request::VolumeCreate(name, "all".to_owned(), bytes + 4 * MIB, reply))?;
        Ok(Aim::Volume { array: made.id, volume: volume.uuid })
    }

    /// Paths that are live, and all.
    pub fn paths(&self) -> (usize, usize) {
        let all = self.fabric.status();
        let paths = || all.iter().flat_map(|own| &own.paths);
        (paths().filter(|path| path.state == PathState::Live).count(), paths().count())
    }
}
