//! A server's paths to the shelf of a trial: the product's own initiator, over two cables, and what
//! befalls those.
//!
//! | a cable is | becomes | when                                                                |
//! |------------|---------|---------------------------------------------------------------------|
//! | up         | held    | its network stands still: what is under way arrives late            |
//! | up         | left    | the server gives its connections up; what it had sent arrives late  |
//! | up         | silent  | what is under way is lost, and nobody hears of it                   |
//! | up         | reset   | its connections break; a drive may carry out late what came by them |
//! | any        | up      | its time is over                                                    |
//!
//! Invariants
//! - While one cable is not up the other is left alone: no drive is out for longer than requests
//!   wait for a path. Both are down for less than that when the shelf loses its power.
//! - A drive that lost with its power what it had in a cache is gone to the server, until the end
//!   of the session: nobody opens it anew.
//! - What is held arrives before the target gives that connection up: later it would be dropped, as
//!   any target does it.

use crate::machine::Message;
use crate::owner::Server;
use crate::shelf::{HOSTS, Line, SUBSYSTEM, Shelf, nqn};
use core::net::SocketAddr;
use core::ops::Range;
use io::{Env, Priority, Transport};
use nvme::log::Access;
use nvme_host::{
    Dial, HostIdentity, NoLine, PathState, RemoteDrive, Requests, Settings, Subsystem, carry, keep,
    oversee,
};
use sim::net::{self, Cut, Weather};
use sim::{Rng, SharedSimDrive, SimEnv};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};

/// The keep-alive timeout.
pub const KEEP_ALIVE: Nanos = Nanos::from_millis(1_000);
/// When a fence ends by time.
const FENCE: Nanos = Nanos(3 * KEEP_ALIVE.0);
/// How long a request may take that waits for a fence, at most: until its path is given up, that
/// time, and what another connection takes.
pub const FENCED: Nanos = Nanos(2 * FENCE.0);

/// How many ports a server has.
pub const PORTS: usize = 2;

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

impl Trouble {
    /// The ports of which connections break, where it befalls one.
    fn breaks(self, port: usize) -> Range<usize> {
        match self {
            Self::Left | Self::Reset | Self::Late => port..port + 1,
            Self::Power => 0..PORTS,
            Self::Held | Self::Silent | Self::Access => 0..0,
        }
    }
}

/// The network to a port.
#[derive(Default)]
struct Cable {
    /// Nobody connects.
    is_down: Cell<bool>,
    lines: RefCell<Vec<Line>>,
}

/// A server's networks, of a core.
#[derive(Clone)]
struct Net {
    env: SimEnv<Message>,
    shelf: Rc<Shelf>,
    by: Server,
    cables: Rc<[Cable; PORTS]>,
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
        let (own, other) = net::connect(&self.env, &self.shelf.env, self.weather);
        let (shelf, port) = (self.shelf.clone(), (self.by, number));
        self.shelf.env.spawn(Priority::First, async move { shelf.serve(other, port).await });
        let mut lines = cable.lines.borrow_mut();
        lines.retain(|line| !line.is_over());
        lines.push(own.clone());
        Ok(own)
    }
}

fn address(port: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + port as u8], 4420))
}

/// A server's paths.
pub struct Paths {
    /// What they lead to.
    pub shelf: Rc<Shelf>,
    by: Server,
    subsystem: Arc<Subsystem>,
    requests: Vec<Rc<Requests>>,
    cables: Rc<[Cable; PORTS]>,
    /// The lapse behind which drives are opened: that of the first connections.
    opened: Cell<u64>,
    /// When each trouble began, and ended.
    troubles: RefCell<Vec<(Nanos, Option<Nanos>)>>,
}

impl Paths {
    /// Connects the cores of a server, which is some host's, to a shelf.
    pub fn new(
        shelf: &Rc<Shelf>,
        cores: &[SimEnv<Message>],
        (by, host): (Server, u8),
        mut rng: Rng,
    ) -> Rc<Self> {
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
        let name = HOSTS[usize::from(host) - 1];
        let identity = HostIdentity { nqn: nqn(name), id: [4 + host; 16] };
        let subsystem = Subsystem::new(nqn(SUBSYSTEM), identity, settings);
        let cables = Rc::<[Cable; PORTS]>::default();
        let net = |env: &SimEnv<Message>| Net {
            env: env.clone(),
            shelf: shelf.clone(),
            by,
            cables: cables.clone(),
            weather,
        };
        let queue = |(at, core): (usize, &SimEnv<Message>)| {
            carry(core, &net(core), &subsystem, at as u16 + 1)
        };
        let requests = cores.iter().enumerate().map(queue).collect();
        let first = &cores[0];
        first.spawn(Priority::First, oversee(first.clone(), subsystem.clone()));
        for port in 0..PORTS {
            let (path, _) = subsystem.add(address(port)).expect("there is room");
            let keep = keep(first.clone(), net(first), subsystem.clone(), path);
            first.spawn(Priority::First, keep);
        }
        let (shelf, opened, troubles) = (shelf.clone(), Cell::new(0), RefCell::default());
        Rc::new(Self { shelf, by, subsystem, requests, cables, opened, troubles })
    }

    /// Drives are opened from now on.
    pub fn opens(&self) {
        self.opened.set(self.subsystem.lapse());
    }

    fn env(&self) -> &SimEnv<Message> {
        &self.shelf.env
    }

    /// Whether all paths are live.
    pub fn is_connected(&self) -> bool {
        let paths = self.subsystem.paths(self.env().now());
        paths.iter().all(|path| path.state == PathState::Live)
    }

    /// How often each path had another association than its first.
    fn reconnects(&self) -> Vec<u64> {
        let paths = self.subsystem.paths(self.env().now());
        paths.iter().map(|path| path.reconnects).collect()
    }

    /// A core's handle to a drive.
    pub fn drive(&self, core: CoreId, shared: &SharedSimDrive) -> RemoteDrive {
        let number = self.shelf.drives.iter().position(|own| own.is_same(shared));
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

    /// Whether a port is in trouble.
    pub fn is_in_trouble(&self) -> bool {
        self.troubles.borrow().iter().any(|(_, end)| end.is_none())
    }

    /// Has a trouble befall a port, unless there is one; whether it does.
    pub fn befall(self: &Rc<Self>, trouble: Trouble, rng: &mut Rng) -> bool {
        if self.is_in_trouble() || !self.is_connected() {
            return false;
        }
        self.troubles.borrow_mut().push((self.env().now(), None));
        let port = rng.index(PORTS);
        let cable = &self.cables[port];
        let lines = || cable.lines.borrow().clone();
        let mut span = Nanos(rng.between(1, 2 * KEEP_ALIVE.0));
        let (mut worse, mut silent) = (None, Vec::new());
        let were = self.reconnects();
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
            Trouble::Access => worse = Some(self.have_worse_access(port, rng)),
        }
        let broken = trouble.breaks(port);
        let own = self.clone();
        self.env().spawn(Priority::First, async move {
            own.env().sleep(span).await;
            let cable = &own.cables[port];
            cable.is_down.set(false);
            cable.lines.borrow().iter().for_each(Line::let_go);
            worse.inspect(|drive| {
                own.shelf.set_access((own.by, port), *drive, Access::Optimized);
            });
            // The server may not have noticed yet that it hears nothing any more, or that its
            // connections are over.
            let has_noticed = || {
                let mut all = own.reconnects().into_iter().zip(&were).enumerate();
                let is_back =
                    |(at, (now, was)): (usize, (u64, &u64))| now > *was || !broken.contains(&at);
                all.all(is_back) && silent.iter().all(Line::is_over)
            };
            while !own.is_connected() || !has_noticed() {
                own.env().sleep(Nanos::from_millis(50)).await;
            }
            // What waits for the fence holds others up.
            let end = own.env().now().after(FENCE);
            own.troubles.borrow_mut().iter_mut().for_each(|own| own.1 = own.1.or(Some(end)));
        });
        true
    }

    /// A port has no way, or not the best one, to a drive: which.
    fn have_worse_access(&self, port: usize, rng: &mut Rng) -> u32 {
        let worse =
            [Access::NonOptimized, Access::Inaccessible, Access::PersistentLoss, Access::Change];
        let drive = rng.below(self.shelf.drives.len() as u64) as u32 + 1;
        self.shelf.set_access((self.by, port), drive, worse[rng.index(worse.len())]);
        drive
    }

    /// Has a drive carry some requests out so much later, and the connections of a port break
    /// meanwhile.
    fn be_late(&self, port: usize, span: Nanos, rng: &mut Rng) {
        let drive = self.hold_some(rng);
        let (env, cables) = (self.env().clone(), self.cables.clone());
        let soon = Nanos(rng.below(500_000));
        self.env().spawn(Priority::First, async move {
            env.sleep(soon).await;
            let lines = cables[port].lines.borrow().clone();
            lines.iter().for_each(Transport::close);
            env.sleep(span).await;
            release(&drive);
        });
    }

    /// Some requests to a drive are not carried out from now on.
    fn hold_some(&self, rng: &mut Rng) -> SharedSimDrive {
        let drive = self.shelf.drives[rng.index(self.shelf.drives.len())].clone();
        drive.hold(rng.below(2), 1 + rng.below(3));
        drive
    }

    /// The shelf loses its power, and nobody connects for so long.
    fn lose_power(&self, span: Nanos, rng: &mut Rng) {
        for cable in &*self.cables {
            cable.is_down.set(true);
            cable.lines.borrow().iter().for_each(Transport::close);
        }
        self.shelf.lose_power(rng);
        let (env, cables) = (self.env().clone(), self.cables.clone());
        self.env().spawn(Priority::First, async move {
            env.sleep(span).await;
            cables.iter().for_each(|cable| cable.is_down.set(false));
        });
    }

    /// The server is no more, and what it had sent may arrive, or be carried out, late. With
    /// `is_told` the shelf hears of it, as connections of a process are closed that ends.
    pub fn die(&self, is_told: bool, rng: &mut Rng) {
        let lines: Vec<Line> =
            self.cables.iter().flat_map(|cable| cable.lines.borrow().clone()).collect();
        let late = Nanos(rng.below(KEEP_ALIVE.0 * 5 / 4));
        let is_held = rng.coin();
        if is_held {
            lines.iter().for_each(Line::hold);
        }
        if is_told {
            lines.iter().for_each(Transport::close);
        }
        let env = self.env().clone();
        self.env().spawn(Priority::First, async move {
            env.sleep(late).await;
            lines.iter().for_each(Line::let_go);
        });
        if rng.coin() {
            let (drive, span) = (self.hold_some(rng), Nanos(rng.between(1, KEEP_ALIVE.0)));
            let env = self.env().clone();
            self.env().spawn(Priority::First, async move {
                env.sleep(span).await;
                release(&drive);
            });
        }
    }

    /// The world ends.
    pub fn abandon(&self) {
        self.cables.iter().for_each(|cable| drop(cable.lines.take()));
    }
}

/// What a drive has not carried out yet it does now.
fn release(drive: &SharedSimDrive) {
    drive.hold(0, 0);
    drive.release();
}
