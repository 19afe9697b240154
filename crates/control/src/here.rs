//! What a core has for volumes that this machine itself uses: as files ([`crate::files`]) and as
//! devices ([`crate::devices`]).

use crate::connection::Fences;
use crate::cores::{Core, CoreEnv};
use crate::counters::OnCore;
use crate::nvme::VolumeKey;
use ::io::Reach;
use core::cell::OnceCell;
use engine::Volume;
use front::{ConnectionMemory, Counted, Fence, MemorySize};
use std::rc::Rc;
use std::sync::Arc;

/// A volume of an array that runs.
pub type Running = Counted<Volume<CoreEnv>, CoreEnv>;

/// What all of a front end has on a core.
pub struct Here {
    core: Core,
    counters: Rc<OnCore>,
    fences: Arc<Fences>,
    reach: Option<Arc<dyn Reach>>,
    size: MemorySize,
    /// Allocated with the first that is served.
    memory: OnceCell<Rc<ConnectionMemory>>,
}

impl Here {
    /// For a front end whose memory has this size; nothing is allocated yet.
    pub fn new(
        (core, counters): (Core, Rc<OnCore>),
        fences: Arc<Fences>,
        reach: Option<Arc<dyn Reach>>,
        size: MemorySize,
    ) -> Rc<Self> {
        Rc::new(Self { core, counters, fences, reach, size, memory: OnceCell::new() })
    }

    /// A volume, whose requests are counted, if its array runs here.
    pub fn volume(&self, env: &CoreEnv, key: VolumeKey) -> Option<Running> {
        let bound = self.core.array(key.array)?;
        let writer = self.counters.writer(key.volume);
        Some(Counted::new(Volume::new(bound, key.volume), env, writer))
    }

    /// The fence of a volume.
    pub fn fence(&self, key: VolumeKey) -> Arc<Fence> {
        self.fences.of(key)
    }

    /// The front end's memory.
    pub fn memory(&self) -> Rc<ConnectionMemory> {
        let reached = || ConnectionMemory::reached(self.size, self.reach.as_ref());
        self.memory.get_or_init(reached).clone()
    }
}
