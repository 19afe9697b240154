//! The drives of a trial behind a shelf: the product's own initiator and target, over a simulated
//! network, by two ports.
//!
//! The server and the shelf are one world, whose power is both's; the shelf has the last core of
//! it. Each drive is a namespace of one subsystem, in an access group of its own.
//!
//! | a port is | becomes | when                                                                 |
//! |-----------|---------|----------------------------------------------------------------------|
//! | up        | held    | its network stands still: what is under way arrives late             |
//! | up        | left    | the server gives its connections up; what it had sent arrives late   |
//! | up        | silent  | what is under way is lost, and nobody hears of it                    |
//! | up        | reset   | its connections break; a drive may carry out late what came by them  |
//! | any       | up      | its time is over                                                     |
//!
//! Invariants
//! - While one port is not up the other is left alone: no drive is out for longer than requests
//!   wait for a path. Both are down for less than that when the shelf loses its power.
//! - A drive that lost with its power what it had in a cache is gone to the server, until the end
//!   of the session: nobody opens it anew.
//! - What is held arrives before the target gives that connection up: later it would be dropped, as
//!   any target does it.

use crate::machine::Message;
use core::net::SocketAddr;
use front::ConnectionMemory;
use front::memory::MemorySize;
use io::blocks::OfDrive;
use io::{BlockError, Env, Priority, Transport};
use nvme::log::Access;
use nvme::nqn::Nqn;
use nvme_host::{
    Dial, HostIdentity, NoLine, PathState, RemoteDrive, Requests, Settings, Subsystem, carry, keep,
    oversee,
};
use nvme_target::access::{Export, Group, Hosts, Port, PortId};
use nvme_target::{Health, Product, Server, Target, Volumes, Way};
use sim::net::{self, Cut, End, Weather};
use sim::{Rng, SharedSimDrive, SimDrive, SimEnv, World};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};

const SUBSYSTEM: &str = "nqn.2026-11.example:shelf";
const HOST: &str = "nqn.2026-11.example:server";
const PORTS: [PortId; 2] = [PortId(1), PortId(2)];

/// The keep-alive timeout.
pub const KEEP_ALIVE: Nanos = Nanos::from_millis(1_000);
/// When a fence ends by time.
const FENCE: Nanos = Nanos(3 * KEEP_ALIVE.0);
/// How long a request may take that waits for a fence, at most: until its path is given up, that
/// time, and what another connection takes.
pub const FENCED: Nanos = Nanos(2 * FENCE.0);

/// Memory of the target.
const MEMORY: MemorySize = MemorySize {
    connections: 64,
    reserve_bytes: nvme_target::limits::MEMORY.reserve_bytes,
    pieces: [64, 32, 16, 8],
};

/// What befalls a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Its network stands still for a while.
    Held,
    /// The server gives its connections up, and the network stands still.
    Left,
    /// Nothing arrives any more.
    Silent,
    /// Its connections break.
    Reset,
    /// The same, while a drive carries out late what came by them.
    Late,
    /// It has no way to a drive any more, or not the best.
    Access,
    /// The whole shelf loses its power, with what its drives have in caches, and has it again soon.
    Power,
}

impl Trouble {
    /// All of them; the last is the whole shelf's.
    pub const ALL: [Self; 7] =
        [Self::Held, Self::Left, Self::Silent, Self::Reset, Self::Late, Self::Access, Self::Power];

    /// What the tally calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "port: held",
            Self::Left => "port: given up",
            Self::Silent => "port: silent",
            Self::Reset => "port: reset",
            Self::Late => "port: reset, then late execution",
            Self::Access => "port: other access",
            Self::Power => "shelf: without power",
        }
    }
}

type Line = End<Message>;

/// The drives as the target serves them.
#[derive(Clone)]
struct Served(Rc<RefCell<Vec<SimDrive>>>);

impl Volumes for Served {
    type Key = usize;
    type Volume = OfDrive<SimDrive>;

    const COMPARES_AND_WRITES: bool = false;
    const CACHES_STAY: bool = true;

    fn open(&self, number: &usize, _: PortId) -> Option<OfDrive<SimDrive>> {
        // A target that has a dead drive says that it can't read it.
        self.0.borrow().get(*number).map(|own| OfDrive::new(own.clone(), BlockError::Unavailable))
    }

    fn health(&self, _: &usize) -> Health {
        Health::default()
    }
}

/// The network to a port.
#[derive(Default)]
struct Cable {
    /// Nobody connects.
    is_down: Cell<bool>,
    lines: RefCell<Vec<Line>>,
}

/// Both networks, of a core.
#[derive(Clone)]
struct Net {
    env: SimEnv<Message>,
    target: SimEnv<Message>,
    server: Rc<Server<SimEnv<Message>, Line, Served>>,
    cables: Rc<[Cable; 2]>,
    weather: Weather,
}

impl Dial for Net {
    type Transport = Line;

    async fn dial(&self, to: SocketAddr, within: Nanos) -> Result<Line, NoLine> {
        let number = usize::from(to == address(1));
        let cable = &self.cables[number];
        if cable.is_down.get() {
            self.env.sleep(within).await;
            return Err(NoLine("nobody answers".to_owned()));
        }
        let (own, other) = net::connect(&self.env, &self.target, self.weather);
        let server = self.server.clone();
        self.target.spawn(Priority::First, async move {
            let way = Way { host: "192.0.2.9".to_owned(), local: "192.0.2.1".to_owned() };
            server.serve(Rc::new(other), PORTS[number], &way).await;
        });
        let mut lines = cable.lines.borrow_mut();
        lines.retain(|line| !line.is_over());
        lines.push(own.clone());
        Ok(own)
    }
}

fn address(port: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + port as u8], 4420))
}

fn nqn(name: &str) -> Nqn {
    Nqn::new(name).expect("a possible name")
}

/// A shelf with the drives of a trial, and a server's paths there.
pub struct Shelf {
    env: SimEnv<Message>,
    drives: Vec<SharedSimDrive>,
    served: Served,
    server: Rc<Server<SimEnv<Message>, Line, Served>>,
    target: Arc<Target<usize>>,
    subsystem: Arc<Subsystem>,
    requests: Vec<Rc<Requests>>,
    cables: Rc<[Cable; 2]>,
    /// The lapse behind which drives are opened: that of the first connections.
    opened: Cell<u64>,
    /// When each trouble began, and ended.
    troubles: RefCell<Vec<(Nanos, Option<Nanos>)>>,
}

impl Shelf {
    /// Has these drives behind a shelf, and connects the cores of a world to it. Whether
    /// controllers can end each other; else fences end by time.
    pub fn new(world: &World<Message>, drives: &[SharedSimDrive], resets: bool) -> Rc<Self> {
        let all = world.envs();
        let (target_env, cores) = all.split_last().expect("it has cores");
        let env = target_env.clone();
        let product = Product { model: "Shelf".into(), version: "1".into(), quiesce_ms: 0, resets };
        let target = Target::new(product);
        for port in PORTS {
            target.set_port(port, Port { address: None, service: 4420 });
        }
        let served = Served(Rc::default());
        let memory = ConnectionMemory::new(MEMORY);
        let server = Server::start_with(env.clone(), target.clone(), served.clone(), memory);
        for number in 0..drives.len() {
            target.add(&number.to_string(), export(number)).expect("another number");
        }
        target.settle();
        let mut rng = Rng::new(world.seed() ^ 0x0073_6865_6c66);
        let weather = Weather {
            delay_most: Nanos([0, 5_000, 50_000][rng.index(3)]),
            piece_most: [0, 64 << 10, 1 << 10][rng.index(3)],
            ..Weather::default()
        };
        let settings = Settings {
            io_queues: cores.len() as u16,
            entries: 32,
            keep_alive: KEEP_ALIVE,
            reconnect_delay: Nanos::from_millis(200),
            ..Settings::default()
        };
        let identity = HostIdentity { nqn: nqn(HOST), id: [5; 16] };
        let subsystem = Subsystem::new(nqn(SUBSYSTEM), identity, settings);
        let cables = Rc::<[Cable; 2]>::default();
        let net = |env: &SimEnv<Message>| Net {
            env: env.clone(),
            target: target_env.clone(),
            server: server.clone(),
            cables: cables.clone(),
            weather,
        };
        let carry = |core: &SimEnv<Message>| carry(core, &net(core), &subsystem, core.core().0 + 1);
        let requests = cores.iter().map(carry).collect();
        let first = &cores[0];
        first.spawn(Priority::First, oversee(first.clone(), subsystem.clone()));
        for port in 0..PORTS.len() {
            let (path, _) = subsystem.add(address(port)).expect("there is room");
            let keep = keep(first.clone(), net(first), subsystem.clone(), path);
            first.spawn(Priority::First, keep);
        }
        let drives = drives.to_vec();
        let shelf = Self {
            env,
            drives,
            served,
            server,
            target,
            subsystem,
            requests,
            cables,
            opened: Cell::new(0),
            troubles: RefCell::default(),
        };
        shelf.open_drives();
        Rc::new(shelf)
    }

    fn open_drives(&self) {
        *self.served.0.borrow_mut() = self.drives.iter().map(|own| self.env.bind(own)).collect();
    }

    /// Drives are opened from now on.
    pub fn opens(&self) {
        self.opened.set(self.subsystem.lapse());
    }

    /// Whether all paths are live.
    pub fn is_connected(&self) -> bool {
        let paths = self.subsystem.paths(self.env.now());
        paths.iter().all(|path| path.state == PathState::Live)
    }

    /// A core's handle to a drive.
    pub fn drive(&self, core: CoreId, shared: &SharedSimDrive) -> RemoteDrive {
        let number = self.drives.iter().position(|own| own.is_same(shared));
        let namespace = number.expect("a drive of the trial") as u32 + 1;
        let is = self.subsystem.namespace(namespace).expect("its paths were live");
        let requests = self.requests[core.index()].clone();
        let drive = RemoteDrive::new(requests, namespace, is.info, is.can);
        drive.behind(self.opened.get()).of(self.subsystem.clone())
    }

    /// How much longer a request may take that began then.
    pub fn waits(&self, begun: Nanos) -> Nanos {
        let troubles = self.troubles.borrow();
        let meanwhile = troubles.iter().filter(|(_, end)| end.is_none_or(|end| end >= begun));
        Nanos(FENCED.0 * meanwhile.count() as u64)
    }

    /// Has a trouble befall a port, unless there is one; whether it does.
    pub fn befall(self: &Rc<Self>, trouble: Trouble, rng: &mut Rng) -> bool {
        if self.is_in_trouble() || !self.is_connected() {
            return false;
        }
        self.troubles.borrow_mut().push((self.env.now(), None));
        let port = rng.index(PORTS.len());
        let cable = &self.cables[port];
        let lines = || cable.lines.borrow().clone();
        let mut span = Nanos(rng.between(1, 2 * KEEP_ALIVE.0));
        let (mut group, mut silent) = (None, Vec::new());
        match trouble {
            Trouble::Held | Trouble::Left => {
                cable.is_down.set(true);
                lines().iter().for_each(Line::hold);
                if trouble == Trouble::Left {
                    lines().iter().for_each(Transport::close);
                    // Before the target's keep-alive timer runs out.
                    span = Nanos(rng.between(1, KEEP_ALIVE.0 * 3 / 4));
                }
            }
            Trouble::Silent => {
                cable.is_down.set(true);
                for line in lines() {
                    let cut = Some((line.sent(), Cut::Silence));
                    line.set_weather(Weather { cut, ..line.weather() });
                    silent.push(line);
                }
            }
            Trouble::Reset => {
                cable.is_down.set(rng.coin());
                lines().iter().for_each(Transport::close);
            }
            Trouble::Late => {
                span = Nanos(rng.between(1, KEEP_ALIVE.0));
                self.be_late(port, span, rng);
            }
            Trouble::Power => self.lose_power(span, rng),
            Trouble::Access => {
                let worse = [
                    Access::NonOptimized,
                    Access::Inaccessible,
                    Access::PersistentLoss,
                    Access::Change,
                ];
                let number = rng.below(self.drives.len() as u64) as u32 + 1;
                group = Group::new(number);
                let access = worse[rng.index(worse.len())];
                group.inspect(|group| self.target.set_access(PORTS[port], *group, access));
            }
        }
        let shelf = self.clone();
        self.env.spawn(Priority::First, async move {
            shelf.env.sleep(span).await;
            let cable = &shelf.cables[port];
            cable.is_down.set(false);
            cable.lines.borrow().iter().for_each(Line::let_go);
            group.inspect(|own| shelf.target.set_access(PORTS[port], *own, Access::Optimized));
            // The server may not have noticed yet that it hears nothing any more.
            while !shelf.is_connected() || !silent.iter().all(Line::is_over) {
                shelf.env.sleep(Nanos::from_millis(50)).await;
            }
            // What waits for the fence holds others up.
            let end = shelf.env.now().after(FENCE);
            shelf.troubles.borrow_mut().iter_mut().for_each(|own| own.1 = own.1.or(Some(end)));
        });
        true
    }

    /// Has a drive carry some requests out so much later, and the connections of a port break
    /// meanwhile.
    fn be_late(&self, port: usize, span: Nanos, rng: &mut Rng) {
        let drive = self.drives[rng.index(self.drives.len())].clone();
        drive.hold(rng.below(2), 1 + rng.below(3));
        let (env, cables) = (self.env.clone(), self.cables.clone());
        let soon = Nanos(rng.below(500_000));
        self.env.spawn(Priority::First, async move {
            env.sleep(soon).await;
            let lines = cables[port].lines.borrow().clone();
            lines.iter().for_each(Transport::close);
            env.sleep(span).await;
            drive.hold(0, 0);
            drive.release();
        });
    }

    /// Drives lose their power, and nobody connects for so long. They answer again once they are
    /// opened anew.
    fn lose_power(&self, span: Nanos, rng: &mut Rng) {
        for cable in &*self.cables {
            cable.is_down.set(true);
            cable.lines.borrow().iter().for_each(Transport::close);
        }
        for drive in self.drives.iter().filter(|drive| !drive.is_gone()) {
            drive.power_cut(rng.bits());
        }
        self.open_drives();
        let (env, cables) = (self.env.clone(), self.cables.clone());
        self.env.spawn(Priority::First, async move {
            env.sleep(span).await;
            cables.iter().for_each(|cable| cable.is_down.set(false));
        });
    }

    /// The world ends: what the target has is given back.
    pub fn abandon(&self) {
        self.server.abandon();
        self.cables.iter().for_each(|cable| drop(cable.lines.take()));
    }

    /// Whether a port is in trouble.
    pub fn is_in_trouble(&self) -> bool {
        self.troubles.borrow().iter().any(|(_, end)| end.is_none())
    }
}

fn export(number: usize) -> Export<usize> {
    let mut uuid = [9; 16];
    uuid[0] = number as u8;
    Export {
        subsystem: nqn(SUBSYSTEM),
        nsid: number as u32 + 1,
        volume: number,
        nguid: uuid,
        uuid,
        ports: BTreeSet::from(PORTS),
        hosts: Hosts::Only(BTreeSet::from([nqn(HOST)])),
        group: Group::new(number as u32 + 1).unwrap_or(Group::FIRST),
    }
}
