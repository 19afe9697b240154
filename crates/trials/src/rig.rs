//! A simulated machine with the engine on it, run step by step under a bound of virtual time.

use crate::aid::{self, Jobs};
use crate::failure::{Failure, Oracle, Outcome};
use crate::machine::{Machine, Message, Place};
use crate::owner::Server;
use crate::paths::Paths;
use crate::shelf::Shelf;
use engine::core::{Core, Settings};
use engine::limits::DRIVE_DEADLINE;
use engine::mail::Mail;
use engine::manage::command::{
    ArrayStatus, DriveRef, Identity, ManageError, Reply, Request, StartOptions, VolumeStatus,
};
use engine::volume::Volume;
use io::Env;
use sim::{Rng, SharedSimDrive, SimEnv, Step, World, WorldConfig};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use units::{CoreId, Nanos, Uuid};

/// The longest that anything may take once faults have stopped.
pub const BOUND: Nanos = Nanos::from_millis(60_000);

/// Scratch memory for two plans at a time: more would only have to be zeroed at each start.
const SETTINGS: Settings = Settings { deadline: DRIVE_DEADLINE, scratch_bytes: 0 };

/// Called after every step of a machine.
pub trait Watch {
    /// A step was made.
    fn look(&mut self, world: &World<Message>);
}

/// Looks at nothing.
pub struct Blind;

impl Watch for Blind {
    fn look(&mut self, _: &World<Message>) {}
}

/// A request under way.
pub struct Answer<T>(Arc<Mutex<Option<Result<T, ManageError>>>>);

impl<T> Answer<T> {
    /// The answer, once it is there.
    pub fn take(&self) -> Option<Result<T, ManageError>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).take()
    }
}

/// The machine.
pub struct Rig {
    /// Its world, which may be another's too.
    pub world: Rc<World<Message>>,
    /// The engine on each core.
    pub cores: Vec<Core<Machine>>,
    /// What its accelerator did, if it has one.
    pub aided: Rc<Jobs>,
    /// How it reaches its drives, if they are behind a shelf.
    pub paths: Option<Rc<Paths>>,
    /// Which cores of the world it has.
    place: Place,
    host: u8,
    boot: u64,
}

/// How often an owner says that it lives.
pub const HEARTBEAT: Nanos = Nanos::from_millis(400);

/// The name of every array of the trials.
pub const ARRAY: &str = "a";

/// A drive as the engine is given it.
pub fn reference(drive: &SharedSimDrive, number: usize) -> DriveRef<SharedSimDrive> {
    let (path, serial) = (format!("/dev/drive{number}"), format!("SERIAL{number}"));
    DriveRef { shared: drive.clone(), path, serial, is_file: true }
}

/// Whether a record of a drive may say that it is of a shared array, by the flags of those at its
/// begin.
fn says_shared(drive: &SharedSimDrive) -> bool {
    let flags = |at: u64| {
        let header = drive.peek(at, 4096);
        header.starts_with(&format::MAGIC) && header[24] & 8 != 0
    };
    flags(0) || flags(format::SLOT_BYTES)
}

/// Drives as the engine is given them, in their order.
pub fn references_in_order(drives: &[SharedSimDrive]) -> Vec<DriveRef<SharedSimDrive>> {
    drives.iter().enumerate().map(|(i, d)| reference(d, i)).collect()
}

impl Drop for Rig {
    fn drop(&mut self) {
        let Some(paths) = self.paths.take() else { return };
        paths.abandon();
        if Rc::strong_count(&self.world) == 1 {
            paths.shelf.abandon();
        }
    }
}

impl Rig {
    /// Switches a machine on.
    pub fn new(config: WorldConfig) -> Self {
        Self::of(config, 1)
    }

    /// The same, as the host of that number.
    pub fn of(config: WorldConfig, host: u8) -> Self {
        let (place, world) = (Place { first: 0, cores: config.cores }, World::new(config));
        let boot = world.seed();
        Self::with(Rc::new(world), place, None, (host, boot))
    }

    /// Switches a machine on that has these drives behind a shelf, and connects them. Whether
    /// controllers of the shelf can end each other. There are so many cores more for the machine
    /// that comes [next](Self::next).
    ///
    /// # Errors
    /// `Stall` if they are never connected.
    pub fn behind(
        config: WorldConfig,
        drives: &[SharedSimDrive],
        (resets, host): (bool, u8),
        more: u16,
    ) -> Outcome<Self> {
        let place = Place { first: 0, cores: config.cores };
        let world = World::new(WorldConfig { cores: config.cores + more + 1, ..config });
        let shelf = Shelf::new(&world, drives, resets);
        let boot = world.seed();
        Self::connected(Rc::new(world), (&shelf, Server::First), place, (host, boot))
    }

    /// Switches another machine on, in the same world and behind the same shelf, and connects it:
    /// that host's, in this boot or in another.
    ///
    /// # Errors
    /// `Stall` if it is never connected.
    ///
    /// # Panics
    /// If there is no shelf, or no core is left.
    pub fn next(&self, host: u8, is_same_boot: bool) -> Outcome<Self> {
        assert_eq!(self.place.first, 0, "there are two at most");
        let first = self.place.cores;
        let place = Place { first, cores: self.world.cores() - first - 1 };
        let shelf = &self.paths.as_ref().expect("a shelf").shelf;
        let boot = if is_same_boot { self.boot } else { !self.boot };
        Self::connected(self.world.clone(), (shelf, Server::Second), place, (host, boot))
    }

    fn connected(
        world: Rc<World<Message>>,
        (shelf, by): (&Rc<Shelf>, Server),
        place: Place,
        (host, boot): (u8, u64),
    ) -> Outcome<Self> {
        let rng = Rng::new(world.seed() ^ 0x0073_6865_6c66 ^ (by as u64) << 32);
        let cores: Vec<SimEnv<Message>> = place.all().map(|core| world.env(core)).collect();
        let paths = Paths::new(shelf, &cores, (by, host), rng);
        let rig = Self::with(world, place, Some(paths.clone()), (host, boot));
        rig.run(&mut Blind, BOUND, "to connect a shelf", || paths.is_connected())?;
        paths.opens();
        Ok(rig)
    }

    fn with(
        world: Rc<World<Message>>,
        place: Place,
        paths: Option<Rc<Paths>>,
        (host, boot): (u8, u64),
    ) -> Self {
        let aided = Rc::<Jobs>::default();
        let start = |core| {
            let env = Machine::new(world.env(core), place, paths.as_ref());
            let accelerator = aid::of(&env, world.seed(), &aided);
            Core::start_with(env, SETTINGS, accelerator)
        };
        let cores = place.all().map(start).collect();
        Self { world, cores, aided, paths, place, host, boot }
    }

    /// Says who this server is, before it has a shared array: the host of its number, and a boot of
    /// its own.
    ///
    /// # Errors
    /// `Stall`.
    pub fn identify(&self, watch: &mut dyn Watch) -> Outcome<()> {
        let host = self.host;
        let mut boot = [0; 16];
        boot[..8].copy_from_slice(&self.boot.to_le_bytes());
        let identity = Identity {
            host: Uuid::from_random([host; 16]),
            boot: Uuid::from_random(boot),
            name: format!("host-{host}"),
            heartbeat: HEARTBEAT,
        };
        self.ask(watch, "an identity", |reply| Request::Identify(identity, reply)).map(drop)
    }

    /// The server stands still, as a whole, or goes on. The shelf does not.
    pub fn halt(&self, is_halted: bool) {
        self.place.all().for_each(|core| self.world.halt(core, is_halted));
    }

    /// A core.
    pub fn env(&self, core: CoreId) -> Machine {
        Machine::new(self.world.env(self.place.of(core)), self.place, self.paths.as_ref())
    }

    /// Switches a machine on whose engine has the daemon's settings, and no accelerator.
    pub fn as_served(config: WorldConfig) -> Self {
        let (place, world) = (Place { first: 0, cores: config.cores }, World::new(config));
        let machine = |core| Machine::new(world.env(core), place, None);
        let start = |core| Core::start_with(machine(core), Settings::default(), None);
        let (cores, boot) = (place.all().map(start).collect(), world.seed());
        let (world, aided) = (Rc::new(world), Rc::default());
        Self { world, cores, aided, paths: None, place, host: 1, boot }
    }

    /// Ends the machine: by a cut of its power, or only the process.
    pub fn end(self, power: bool) {
        if power {
            self.world.crash();
        } else {
            self.world.kill();
        }
    }

    /// Runs until `done`, within `bound` of virtual time.
    ///
    /// # Errors
    /// `Stall` if that passes, or nothing can go on.
    pub fn run(
        &self,
        watch: &mut dyn Watch,
        bound: Nanos,
        what: &str,
        mut done: impl FnMut() -> bool,
    ) -> Outcome<()> {
        let limit = self.world.now().after(bound);
        loop {
            if done() {
                return Ok(());
            }
            let step = self.world.step();
            watch.look(&self.world);
            if step == Step::Idle || self.world.now() > limit {
                let tasks = self.world.waiting();
                let idle = |t: &&String| t.contains("worker<") || t.contains("retry_later");
                let busy: Vec<&str> = tasks.iter().filter(|t| !idle(t)).map(|t| &t[..]).collect();
                let text = format!("{what} does not end ({step:?}); waiting: {}", busy.join("; "));
                return Err(Failure::new(Oracle::Stall, text));
            }
        }
    }

    /// Lets some virtual time pass.
    pub fn pass(&self, watch: &mut dyn Watch, span: Nanos) {
        let until = self.world.now().after(span);
        while self.world.now() < until {
            let step = self.world.step_until(until);
            watch.look(&self.world);
            if step == Step::Idle {
                return self.world.run_for(until.since(self.world.now()));
            }
        }
    }

    /// Sends a request of the control plane.
    pub fn send<T: Send + 'static>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request<SharedSimDrive>,
    ) -> Answer<T> {
        let answer = Arc::new(Mutex::new(None));
        let slot = answer.clone();
        let reply = Box::new(move |result| {
            *slot.lock().unwrap_or_else(|e| e.into_inner()) = Some(result);
        });
        self.env(CoreId(0)).post(CoreId(0), Mail::Request(request(reply)));
        Answer(answer)
    }

    /// Sends a request and runs until it is answered.
    ///
    /// # Errors
    /// `Stall` if it never is.
    pub fn ask<T: Send + 'static>(
        &self,
        watch: &mut dyn Watch,
        what: &str,
        request: impl FnOnce(Reply<T>) -> Request<SharedSimDrive>,
    ) -> Outcome<Result<T, ManageError>> {
        let answer = self.send(request);
        let mut result = None;
        self.run(watch, BOUND, what, || {
            result = answer.take();
            result.is_some()
        })?;
        Ok(result.expect("it was answered"))
    }

    /// Starts the array of these drives.
    ///
    /// # Errors
    /// `Stall`.
    pub fn assemble(
        &self,
        watch: &mut dyn Watch,
        drives: Vec<DriveRef<SharedSimDrive>>,
        options: StartOptions,
    ) -> Outcome<Result<ArrayStatus, ManageError>> {
        if self.paths.is_some() || drives.iter().any(|own| says_shared(&own.shared)) {
            self.identify(watch)?;
        }
        let started =
            self.ask(watch, "a start", |r| Request::Assemble(None, drives, options, r))?;
        Ok(started.map(|mut arrays| arrays.remove(0)))
    }

    /// How the array is, if there is one.
    ///
    /// # Errors
    /// `Stall`.
    pub fn status(&self, watch: &mut dyn Watch) -> Outcome<Option<ArrayStatus>> {
        let all = self.ask(watch, "a status", Request::Status)?;
        Ok(all.ok().and_then(|mut arrays| arrays.pop()))
    }

    /// Waits until no task runs that can go on.
    ///
    /// # Errors
    /// `Stall`.
    pub fn wait(&self, watch: &mut dyn Watch) -> Outcome<Option<ArrayStatus>> {
        let limit = self.world.now().after(BOUND);
        loop {
            let status = self.status(watch)?;
            let idle = |s: &ArrayStatus| s.tasks.iter().all(|task| task.stuck.is_some());
            if status.as_ref().is_none_or(idle) {
                return Ok(status);
            }
            if self.world.now() > limit {
                let tasks = status.map(|s| s.tasks);
                let text = format!("a task never ends: {tasks:?}");
                return Err(Failure::new(Oracle::Stall, text));
            }
            self.pass(watch, Nanos::from_micros(300));
        }
    }

    /// Waits until no region of the map is dirty, and a crash is safe; whether that came.
    ///
    /// # Errors
    /// `Stall`.
    pub fn rest(&self, watch: &mut dyn Watch) -> Outcome<bool> {
        let limit = self.world.now().after(BOUND);
        let mut span = Nanos::from_micros(100);
        loop {
            let Some(status) = self.status(watch)? else { return Ok(true) };
            let clean = status.region_map.dirty_regions == 0;
            if clean && status.crash_safe {
                return Ok(true);
            }
            if self.world.now() > limit {
                return Ok(false);
            }
            self.pass(watch, span);
            span = Nanos(span.0 * 2);
        }
    }

    /// A volume as each core sees it.
    pub fn open(&self, array: &ArrayStatus, volume: &VolumeStatus) -> Vec<Volume<Machine>> {
        let open = |core: &Core<Machine>| {
            core.array(array.id).map(|array| Volume::new(array, volume.uuid))
        };
        self.cores.iter().filter_map(open).collect()
    }
}
