//! What the tests of this crate share: a target on a simulated core, and a host that speaks bytes.
//!
//! Invariant: no threads, no real time; a test that can't go on is a deadlock of its world.
#![allow(dead_code)]

pub mod host;
pub mod raw;
pub mod sequence;

use front::{ConnectionMemory, MemorySize};
use host::Host;
use io::BlockError;
use nvme::nqn::Nqn;
use palisade_nvme_target::access::{Export, Group, Hosts, Port, PortId};
use palisade_nvme_target::limits;
use palisade_nvme_target::{Connected, EndReason, Health, Product, Server, Target, Volumes, Way};
use sim::net::{self, End, Weather};
use sim::volume::MemoryVolume;
use sim::{SimEnv, World, WorldConfig};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};

pub const SUBSYSTEM: &str = "nqn.2026-11.example:s";
pub const HOST: &str = "nqn.2026-11.example:h";
pub const PORT: PortId = PortId(1);
pub const BLOCK: usize = 4096;

/// How hosts come.
pub fn way() -> Way {
    Way { host: "192.0.2.9".to_owned(), local: "192.0.2.1".to_owned() }
}

/// Volumes by number; the same on every core.
#[derive(Clone, Default)]
pub struct Shelf(pub Rc<RefCell<Vec<(u8, MemoryVolume)>>>, pub Rc<Cell<Health>>);

impl Volumes for Shelf {
    type Key = u8;
    type Volume = MemoryVolume;

    fn open(&self, key: &u8, _: PortId) -> Option<MemoryVolume> {
        let all = self.0.borrow();
        all.iter().find(|(known, _)| known == key).map(|(_, volume)| volume.clone())
    }

    fn health(&self, _: &u8) -> Health {
        self.1.get()
    }
}

/// Hosts that have an export.
pub fn connected(target: &Target<u8>, export: &str) -> Vec<Connected> {
    let all = target.connections().into_iter();
    let mut own = all.filter(|(exports, _)| exports.iter().any(|name| name == export));
    own.next().map(|(_, connected)| connected).unwrap_or_default()
}

type Env = SimEnv<()>;
pub type TestServer = Server<Env, End<()>, Shelf>;

/// A target with a server on every core.
pub struct Rig {
    pub world: World<()>,
    pub target: Arc<Target<u8>>,
    pub shelf: Shelf,
    pub servers: Vec<Rc<TestServer>>,
}

pub fn nqn(name: &str) -> Nqn {
    Nqn::new(name).unwrap()
}

pub fn export(nsid: u32, volume: u8) -> Export<u8> {
    Export {
        subsystem: nqn(SUBSYSTEM),
        nsid,
        volume,
        nguid: [nsid as u8; 16],
        uuid: [nsid as u8 | 0x80; 16],
        ports: BTreeSet::from([PORT]),
        hosts: Hosts::Only(BTreeSet::from([nqn(HOST)])),
        group: Group::FIRST,
    }
}

impl Rig {
    /// As [`Rig::new`] on one core with little memory, and blocks of 512 bytes: for tests that make
    /// many of them, or many connections.
    pub fn small(seed: u64) -> Self {
        let size = MemorySize { connections: 16, reserve_bytes: 16 << 10, pieces: [16, 8, 4, 2] };
        Self::made(WorldConfig::new(seed), MemoryVolume::new(64 << 10, 512), size).started()
    }

    /// A target with one volume of 8 MiB for [`HOST`], on two cores.
    pub fn new(seed: u64) -> Self {
        Self::with(WorldConfig::new(seed).with_cores(2), 8 << 20)
    }

    pub fn with(config: WorldConfig, bytes: usize) -> Self {
        Self::made(config, MemoryVolume::new(bytes, BLOCK as u32), limits::MEMORY).started()
    }

    /// As [`Rig::new`], with no export yet, and more may come.
    pub fn starting(seed: u64) -> Self {
        let volume = MemoryVolume::new(8 << 20, BLOCK as u32);
        Self::made(WorldConfig::new(seed), volume, limits::MEMORY)
    }

    fn started(self) -> Self {
        self.target.add("one", export(1, 1)).unwrap();
        self.target.settle();
        self
    }

    fn made(config: WorldConfig, volume: MemoryVolume, size: MemorySize) -> Self {
        let world = World::new(config);
        let (model, version) = ("Palisade".into(), "0.1.0".into());
        let product = Product { model, version, quiesce_ms: 0, resets: true };
        let target = Target::new(product);
        target.set_port(PORT, Port { address: None, service: 4420 });
        let shelf = Shelf::default();
        shelf.0.borrow_mut().push((1, volume));
        let memory = || ConnectionMemory::new(size);
        let start = |env| Server::start_with(env, target.clone(), shelf.clone(), memory());
        let servers = world.envs().into_iter().map(start).collect();
        Self { world, target, shelf, servers }
    }

    pub fn volume(&self) -> MemoryVolume {
        self.shelf.0.borrow()[0].1.clone()
    }

    /// A connection to a core; how it ends is found in the cell.
    pub fn connect(&self, core: u16, weather: Weather) -> (End<()>, Rc<Cell<Option<EndReason>>>) {
        let env = self.world.env(CoreId(core));
        let (own, other) = net::connect(&env, &env, weather);
        let end = Rc::new(Cell::new(None));
        let (told, server) = (end.clone(), self.servers[usize::from(core)].clone());
        io::Env::spawn(&env, io::Priority::First, async move {
            told.set(Some(server.serve(Rc::new(other), PORT, &way()).await));
        });
        (own, end)
    }

    /// A host's connection in fine weather.
    pub fn host(&self) -> Host {
        Host::new(self.connect(0, Weather::default()).0)
    }

    pub fn run<F: Future<Output = ()> + 'static>(&self, script: F) {
        self.world.block_on(CoreId(0), script);
    }

    /// Lets all connections end, and looks that nothing is left.
    pub fn finish(&self) {
        self.servers.iter().for_each(|server| server.close_all());
        self.world.run_for(Nanos::from_millis(1000));
        for server in &self.servers {
            assert_eq!(server.connections(), 0, "connections are left");
            assert!(server.is_idle(), "memory or workers are lost");
            server.stop();
        }
        self.world.settle();
        assert_eq!(self.world.waiting(), Vec::<String>::new(), "tasks are left");
        assert_eq!(self.volume().0.in_flight.get(), 0);
    }
}

pub fn fail(volume: &MemoryVolume, error: BlockError) {
    volume.fail(0..u64::MAX, error);
}
