//! What the tests of this crate share: a target with a volume, and connections of a host to it, on
//! one simulated core.
//!
//! Invariant: no threads, no real time; a test that can't go on is a deadlock of its world.

use front::ConnectionMemory;
use io::{Buf, BufMut, DriveInfo, Env as _, Pool, Priority};
use nvme::fabrics::ANY_CONTROLLER;
use nvme::nqn::Nqn;
use nvme::pdu::Digests;
use nvme_target::access::{Export, Group, Hosts, Port, PortId};
use nvme_target::{Health, Product, Server, Target, Volumes, Way};
use palisade_nvme_host::requests::Association;
use palisade_nvme_host::{Admin, Begin, End, Info, NotBegun, Queue, RemoteDrive, Requests, begin};
use palisade_nvme_host::{Begun, Can, limits};
use sim::net::{self, End as Line, Weather};
use sim::volume::MemoryVolume;
use sim::{SimEnv, World, WorldConfig};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};

pub const SUBSYSTEM: &str = "nqn.2026-11.example:s";
pub const HOST: &str = "nqn.2026-11.example:h";
/// Ports of the target.
pub const PORTS: [PortId; 2] = [PortId(1), PortId(2)];
pub const BLOCK: u32 = 512;
/// The volume that has no cache.
const OTHER: u8 = 2;
pub const BYTES: usize = 4 << 20;

pub type Env = SimEnv<()>;
pub type Transport = Line<()>;

/// One volume, on every core the same.
#[derive(Clone)]
struct Shelf(MemoryVolume);

impl Volumes for Shelf {
    type Key = u8;
    type Volume = MemoryVolume;
    const CACHES_STAY: bool = true;

    fn open(&self, number: &u8, _: PortId) -> Option<MemoryVolume> {
        // Another one that has no cache.
        let other = || MemoryVolume::new(BYTES, BLOCK);
        Some(if *number == OTHER { other() } else { self.0.clone() })
    }

    fn health(&self, _: &u8) -> Health {
        Health::default()
    }
}

/// A target with a server, and what connects to it.
pub struct Rig {
    pub world: World<()>,
    pub volume: MemoryVolume,
    server: Rc<Server<Env, Transport, Shelf>>,
    pub target: Arc<Target<u8>>,
}

pub fn nqn(name: &str) -> Nqn {
    Nqn::new(name).unwrap()
}

/// What to begin for a queue.
pub fn how(queue: u16, controller: u16, digests: Digests) -> Begin {
    Begin {
        queue,
        entries: 32,
        controller,
        keep_alive_ms: 0,
        digests,
        host: nqn(HOST),
        host_id: [5; 16],
        subsystem: nqn(SUBSYSTEM),
    }
}

/// What is left of a queue that runs.
pub struct Running {
    pub queue: Rc<Queue<Transport>>,
    pub end: Rc<Cell<Option<End>>>,
    pub line: Transport,
}

impl Running {
    /// Ends the connection, and waits until it has ended.
    pub async fn leave(&self, env: &Env) {
        self.queue.close();
        let begun = env.now();
        while self.end.get().is_none() {
            assert!(env.now().since(begun) < Nanos::from_millis(10_000), "it does not end");
            env.sleep(Nanos::from_millis(1)).await;
        }
        assert_eq!(self.queue.under_way(), 0);
    }
}

/// A host that is connected: a controller of its own, with one I/O queue.
pub struct Host {
    pub admin: Admin,
    pub info: Info,
    pub controller: u16,
    pub requests: Rc<Requests>,
    pub queues: Vec<Running>,
}

impl Rig {
    pub fn new(seed: u64) -> Self {
        Self::with_cores(seed, 1)
    }

    /// The target is on the first of so many cores.
    pub fn with_cores(seed: u64, cores: u16) -> Self {
        Self::with(seed, cores, true)
    }

    /// As that; whether the target does cross-controller resets.
    pub fn with(seed: u64, cores: u16, resets: bool) -> Self {
        let world = World::new(WorldConfig::new(seed).with_cores(cores));
        let (model, version) = ("Palisade".into(), "0.1.0".into());
        let product = Product { model, version, quiesce_ms: 0, resets };
        let target = Target::new(product);
        for port in PORTS {
            target.set_port(port, Port { address: None, service: 4420 });
        }
        let volume = MemoryVolume::new(BYTES, BLOCK);
        let memory = ConnectionMemory::new(nvme_target::limits::MEMORY);
        let env = world.env(CoreId(0));
        let server = Server::start_with(env, target.clone(), Shelf(volume.clone()), memory);
        let rig = Self { world, volume, server, target };
        rig.serve_again();
        rig.target.settle();
        rig
    }

    /// Has the namespace be there, which may have been suspended.
    pub fn serve_again(&self) {
        self.serve("one", 3, 1);
    }

    /// Has another namespace, which has no cache.
    pub fn serve_other(&self) {
        self.serve("other", 4, OTHER);
    }

    fn serve(&self, name: &str, nsid: u32, volume: u8) {
        let export = Export {
            subsystem: nqn(SUBSYSTEM),
            nsid,
            volume,
            nguid: [volume + 6; 16],
            uuid: [volume + 8; 16],
            ports: BTreeSet::from(PORTS),
            hosts: Hosts::Only(BTreeSet::from([nqn(HOST)])),
            group: Group::FIRST,
        };
        self.target.add(name, export).unwrap();
    }

    pub fn env(&self) -> Env {
        self.world.env(CoreId(0))
    }

    /// What connects to the target.
    pub fn dialer(&self) -> Dialer {
        Dialer { env: self.env(), server: self.server.clone() }
    }

    pub fn run<F: Future<Output = ()> + 'static>(&self, script: F) {
        self.world.block_on(CoreId(0), script);
    }

    /// Lets everything end, and looks that nothing is left.
    pub fn finish(&self) {
        self.server.close_all();
        self.world.run_for(Nanos::from_millis(2000));
        assert!(self.server.is_idle(), "the target has lost something");
        self.server.stop();
        self.world.settle();
        assert_eq!(self.world.waiting(), Vec::<String>::new(), "tasks are left");
    }
}

/// Makes connections.
#[derive(Clone)]
pub struct Dialer {
    pub env: Env,
    server: Rc<Server<Env, Transport, Shelf>>,
}

impl Dialer {
    pub fn dial(&self, weather: Weather) -> Transport {
        self.dial_from(&self.env, weather, 0)
    }

    /// From another core, by a port.
    pub fn dial_from(&self, env: &Env, weather: Weather, port: usize) -> Transport {
        let (own, other) = net::connect(env, &self.env, weather);
        let server = self.server.clone();
        self.env.spawn(Priority::First, async move {
            let way = Way { host: "192.0.2.9".to_owned(), local: "192.0.2.1".to_owned() };
            server.serve(Rc::new(other), PORTS[port], &way).await;
        });
        own
    }

    pub async fn begin(
        &self,
        weather: Weather,
        how: &Begin,
    ) -> Result<(Begun<Transport>, Transport), NotBegun> {
        let line = self.dial(weather);
        Ok((begin(Rc::new(line.clone()), how).await?, line))
    }

    /// Has a queue carry requests.
    pub fn start(&self, queue: Rc<Queue<Transport>>, line: Transport) -> Running {
        let end = Rc::new(Cell::new(None));
        let (env, running, told) = (self.env.clone(), queue.clone(), end.clone());
        self.env.spawn(Priority::First, async move {
            told.set(Some(running.run(&env).await));
        });
        Running { queue, end, line }
    }

    /// Connects a controller: its admin queue, in fine weather.
    async fn associate(&self, digests: Digests) -> (Admin, Info, u16, Running) {
        let how = how(0, ANY_CONTROLLER, digests);
        let (begun, line) = self.begin(Weather::default(), &how).await.unwrap();
        let (admin, controller) = (Admin::default(), begun.controller);
        let running = self.start(begun.admin_queue(&admin), line);
        let info = admin.enable(&self.env).await.unwrap();
        assert_eq!(admin.queues(1).await, Ok(1));
        (admin, info, controller, running)
    }

    /// Connects a controller, and an I/O queue in such a weather.
    pub async fn host(&self, weather: Weather, digests: Digests) -> Host {
        let (admin, info, controller, running) = self.associate(digests).await;
        let requests = Rc::new(Requests::default());
        let mut host = Host { admin, info, controller, requests, queues: vec![running] };
        self.join(&mut host, weather, digests).await;
        host
    }

    /// The same anew, for what the host still asks. The target may not have heard that the
    /// connections before are lost.
    pub async fn again(&self, host: &mut Host, weather: Weather, digests: Digests) {
        let (admin, info, controller, running) = self.associate(digests).await;
        (host.admin, host.info, host.controller) = (admin, info, controller);
        host.queues.push(running);
        self.join(host, weather, digests).await;
    }

    async fn join(&self, host: &mut Host, weather: Weather, digests: Digests) {
        let (begun, line) = self.begin(weather, &how(1, host.controller, digests)).await.unwrap();
        let queue = begun.queue(host.info.shape(32), host.requests.clone(), Association::default());
        host.queues.push(self.start(queue, line));
    }
}

impl Host {
    /// The namespace as a drive.
    pub async fn drive(&self) -> RemoteDrive {
        let all = self.admin.namespaces().await.unwrap();
        assert_eq!(all, [3]);
        let (namespace, known) = self.admin.namespace(3).await.unwrap();
        assert_eq!((known.nguid, known.uuid), ([7; 16], [9; 16]));
        let block_bytes = namespace.block_bytes().unwrap();
        let info = DriveInfo {
            bytes: namespace.blocks * u64::from(block_bytes),
            block_bytes,
            volatile_cache: self.info.controller.write_cache,
            inline: false,
        };
        let can = Can { write_zeroes: true, discard: true };
        RemoteDrive::new(self.requests.clone(), 3, info, can)
    }

    /// Ends its connections, and waits until they have ended.
    pub async fn leave(&self, env: &Env) {
        for running in &self.queues {
            running.leave(env).await;
        }
    }
}

/// So many bytes that differ from those of another seed.
pub fn bytes(seed: u8, count: usize) -> Vec<u8> {
    (0..count).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

/// What a volume holds in a range that nobody wrote.
pub fn fresh(at: usize, count: usize) -> Vec<u8> {
    (at..at + count).map(|at| (at % 251) as u8).collect()
}

/// The same as a buffer.
pub fn buffer(seed: u8, count: usize) -> Buf {
    let mut buffer = Pool::single(count);
    buffer.copy_from_slice(&bytes(seed, count));
    buffer.freeze()
}

pub fn empty(count: usize) -> BufMut {
    Pool::single(count)
}

/// All four ways to use digests.
pub fn digests() -> [Digests; 4] {
    [(false, false), (true, false), (false, true), (true, true)]
        .map(|(header, data)| Digests { header, data })
}

const _: () = assert!(limits::ENTRIES >= 32);
