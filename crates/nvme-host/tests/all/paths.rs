//! Paths: kept alive, lost and found again, by several cores.

use crate::support::{BLOCK, BYTES, Dialer, Env, HOST, Rig, SUBSYSTEM, buffer, bytes, empty, nqn};
use core::net::SocketAddr;
use io::{Drive, DriveError, Env as _, Priority, Transport};
use nvme::log::Access;
use palisade_nvme_host::{
    Dial, HostIdentity, NoLine, Path, PathState, PathStatus, Problem, RemoteDrive, Requests,
    Settings, Subsystem, carry, keep, oversee,
};
use sim::net::{Cut, Weather};
use sim::volume::Op;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};

pub const CORES: u16 = 3;
pub const KEEP_ALIVE: Nanos = Nanos::from_millis(1_000);
/// Of a target whose keep-alive counts traffic.
pub const FENCE: Nanos = Nanos::from_millis(3_000);

pub fn seconds(count: u64) -> Nanos {
    Nanos::from_millis(1_000 * count)
}

/// The address of a path.
pub fn address(number: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number as u8], 4420))
}

/// The line to the target by a path, as all cores have it.
#[derive(Default)]
pub struct Cable {
    /// Nobody is there.
    pub is_cut: Cell<bool>,
    /// Weathers of the next connections.
    next: RefCell<Vec<Weather>>,
    /// All that were ever made.
    pub lines: RefCell<Vec<crate::support::Transport>>,
}

impl Cable {
    /// From now on nothing arrives by the connections there are.
    pub fn fall_silent(&self) {
        for line in &*self.lines.borrow() {
            let cut = Some((line.sent(), Cut::Silence));
            line.set_weather(Weather { cut, ..Weather::default() });
        }
    }

    /// All connections break.
    pub fn break_all(&self) {
        self.lines.borrow().iter().for_each(Transport::close);
    }
}

#[derive(Clone)]
struct Lines {
    env: Env,
    dialer: Dialer,
    /// By path.
    cables: Vec<Rc<Cable>>,
}

impl Dial for Lines {
    type Transport = crate::support::Transport;

    async fn dial(&self, to: SocketAddr, within: Nanos) -> Result<Self::Transport, NoLine> {
        let number = (0..self.cables.len()).find(|number| address(*number) == to);
        let number = number.expect("an address of the target's");
        let cable = &self.cables[number];
        if cable.is_cut.get() {
            self.env.sleep(within).await;
            return Err(NoLine("nobody answers".to_owned()));
        }
        let weather = cable.next.borrow_mut().pop().unwrap_or_default();
        let line = self.dialer.dial_from(&self.env, weather, number);
        cable.lines.borrow_mut().push(line.clone());
        Ok(line)
    }
}

/// What came of a write, and when.
pub type Ended = (Result<(), DriveError>, Nanos);

/// A host with paths to the target. Their keepers are on the first core, and so is the target.
pub struct Host {
    pub rig: Rc<Rig>,
    /// Of the first path.
    pub cable: Rc<Cable>,
    pub cables: Vec<Rc<Cable>>,
    pub subsystem: Arc<Subsystem>,
    /// The first.
    pub path: Path,
    requests: Vec<Rc<Requests>>,
}

pub fn settings() -> Settings {
    Settings {
        io_queues: CORES,
        entries: 32,
        keep_alive: KEEP_ALIVE,
        controller_loss: seconds(60),
        ..Settings::default()
    }
}

impl Host {
    pub fn new(seed: u64, cable: Cable) -> Self {
        Self::with(seed, cable, settings())
    }

    pub fn with(seed: u64, cable: Cable, settings: Settings) -> Self {
        Self::by(Rig::with_cores(seed, CORES), vec![cable], settings)
    }

    /// To a target that does no cross-controller resets.
    pub fn timed(seed: u64, paths: usize) -> Self {
        let cables = (0..paths).map(|_| Cable::default()).collect();
        Self::by(Rig::with(seed, CORES, false), cables, settings())
    }

    /// By so many paths.
    pub fn several(seed: u64, paths: usize) -> Self {
        let cables = (0..paths).map(|_| Cable::default()).collect();
        Self::by(Rig::with_cores(seed, CORES), cables, settings())
    }

    pub fn by(rig: Rig, cables: Vec<Cable>, settings: Settings) -> Self {
        Self::beside(&Rc::new(rig), cables, settings)
    }

    /// One that may not be the only one there.
    pub fn beside(rig: &Rc<Rig>, cables: Vec<Cable>, settings: Settings) -> Self {
        let rig = rig.clone();
        let cables: Vec<_> = cables.into_iter().map(Rc::new).collect();
        let identity = HostIdentity { nqn: nqn(HOST), id: [5; 16] };
        let subsystem = Subsystem::new(nqn(SUBSYSTEM), identity, settings);
        let lines = |core| {
            let env = rig.world.env(CoreId(core));
            Lines { env, dialer: rig.dialer(), cables: cables.clone() }
        };
        let requests = (0..CORES).map(|core| {
            let lines = lines(core);
            carry(&lines.env.clone(), &lines, &subsystem, core + 1)
        });
        let requests = requests.collect();
        let env = rig.env();
        env.spawn(Priority::First, oversee(env.clone(), subsystem.clone()));
        let add = |number| {
            let (path, is_new) = subsystem.add(address(number)).unwrap();
            assert!(is_new && subsystem.add(address(number)) == Some((path, false)));
            env.spawn(Priority::First, keep(env.clone(), lines(0), subsystem.clone(), path));
            path
        };
        let paths: Vec<_> = (0..cables.len()).map(add).collect();
        Self { rig, cable: cables[0].clone(), cables, subsystem, path: paths[0], requests }
    }

    pub fn run(&self, core: u16, script: impl Future<Output = ()> + 'static) {
        self.rig.world.block_on(CoreId(core), script);
    }

    /// Waits until the first path is live.
    pub fn connect(&self) {
        let (subsystem, path) = (self.subsystem.clone(), self.path);
        self.run(0, async move { assert_eq!(subsystem.tried(path).await, None) });
    }

    pub fn status(&self) -> PathStatus {
        self.subsystem.paths(self.rig.world.now()).remove(0)
    }

    pub fn wait_for(&self, state: PathState) {
        for _ in 0..200_000 {
            if self.status().state == state {
                return;
            }
            self.rig.world.run_for(Nanos::from_millis(1));
        }
        panic!("it is {:?}", self.status());
    }

    /// A core's drive.
    pub fn drive(&self, core: u16) -> RemoteDrive {
        let is = self.subsystem.namespace(3).expect("it is known");
        assert_eq!((is.info.bytes, is.info.block_bytes), (BYTES as u64, BLOCK));
        let requests = self.requests[usize::from(core)].clone();
        RemoteDrive::new(requests, 3, is.info, is.can).behind(self.subsystem.lapse())
    }

    /// The same, as one that others reach too.
    pub fn shared(&self, core: u16) -> RemoteDrive {
        self.drive(core).of(self.subsystem.clone())
    }

    /// Begins a write on a core: what came of it, and when.
    pub fn write(&self, core: u16, at: u64, seed: u8) -> Rc<Cell<Option<Ended>>> {
        let (drive, env) = (self.drive(core), self.rig.world.env(CoreId(core)));
        let told = Rc::new(Cell::new(None));
        let own = told.clone();
        env.clone().spawn(Priority::First, async move {
            let result = drive.write(at, &[buffer(seed, 4096)], false).await;
            own.set(Some((result, env.now())));
        });
        told
    }

    /// Ends all that it has, and looks that nothing is left.
    pub fn end(&self) {
        self.subsystem.close();
        self.rig.world.run_for(seconds(20));
        assert!(self.subsystem.paths(Nanos(0)).is_empty(), "{:?}", self.status());
        assert!(self.requests.iter().all(|own| own.is_idle()));
    }

    /// Ends all, and looks that nothing is left.
    pub fn finish(self) {
        self.end();
        self.rig.finish();
    }
}

#[test]
fn each_core_has_a_queue_of_its_own() {
    let host = Host::new(1, Cable::default());
    host.connect();
    for core in 0..CORES {
        let drive = host.drive(core);
        host.run(core, async move {
            let at = u64::from(core) << 16;
            let write = drive.write(at, &[buffer(core as u8, 8192)], false);
            assert_eq!(write.await, Ok(()));
            let (result, into) = drive.read(at, empty(8192)).await;
            assert_eq!(result, Ok(()));
            assert!(into[..] == bytes(core as u8, 8192)[..]);
        });
    }
    let status = host.status();
    assert_eq!((status.state, status.queues, status.errors), (PathState::Live, CORES, 0));
    assert_eq!((status.reconnects, status.problem.is_none()), (0, true));
    assert_eq!(status.access.get(&3), Some(&Access::Optimized));
    assert!(status.controller.is_some());
    // It stays so, as long as it is asked.
    host.rig.world.run_for(seconds(30));
    assert_eq!((host.status().state, host.status().errors), (PathState::Live, 0));
    assert_eq!(host.cable.lines.borrow().len(), 1 + usize::from(CORES));
    host.finish();
}

/// Wherever a connection breaks, all of what was asked is done, in the end.
#[test]
fn what_is_asked_outlives_connections() {
    for seed in 0..60 {
        let cut = |after: u64| {
            let cut = Some((after, if seed % 3 == 0 { Cut::Silence } else { Cut::Reset }));
            Weather { cut, delay_most: Nanos::from_micros(300), ..Weather::default() }
        };
        // Of the admin queue, of its steps too, and of I/O queues, last first.
        let next = (0..5).map(|n| cut(300 + 700 * seed * (n + 1))).collect();
        let host = Host::with(
            seed,
            Cable { next: RefCell::new(next), ..Cable::default() },
            Settings { fast_io_fail: seconds(100), ..settings() },
        );
        host.wait_for(PathState::Live);
        let writes: Vec<_> =
            (0..60).map(|n| host.write((n % 3) as u16, n << 12, n as u8)).collect();
        for _ in 0..600 {
            host.rig.world.run_for(Nanos::from_millis(100));
            if writes.iter().all(|own| own.get().is_some()) {
                break;
            }
        }
        for (n, own) in writes.iter().enumerate() {
            let result = own.get().map(|(result, _)| result);
            assert_eq!(result, Some(Ok(())), "seed {seed}: write {n}, {:?}", host.status());
            let found = host.rig.volume.bytes_at(n << 12, 4096);
            assert!(found == bytes(n as u8, 4096), "seed {seed}: write {n}");
        }
        host.finish();
    }
}

/// What changes something is not sent again, nor called over, before the one it was sent to can't
/// do it any more; a read is sent again at once.
#[test]
fn only_changes_wait_for_the_fence() {
    let host = Host::timed(3, 1);
    host.connect();
    // One that was lost at once is not tried again at once.
    host.rig.world.run_for(seconds(2));
    // The target takes the write, and takes its time.
    host.rig.volume.hold(Some(4096));
    let write = host.write(1, 4096, 7);
    host.rig.world.run_for(Nanos::from_millis(10));
    assert_eq!(write.get(), None);
    let broken = host.rig.world.now();
    host.cable.break_all();
    host.rig.world.run_for(Nanos::from_millis(10));
    // It does the write nevertheless, and begins with the host anew.
    host.rig.volume.hold(None);
    let drive = host.drive(1);
    host.run(1, async move {
        let (result, _) = drive.read(1 << 20, empty(4096)).await;
        assert_eq!(result, Ok(()));
    });
    // By a new association.
    let status = host.status();
    assert_eq!((status.state, status.reconnects, status.errors), (PathState::Live, 1, 1));
    assert!(host.rig.world.now().since(broken) < seconds(1));
    let times = || host.rig.volume.log().iter().filter(|op| is_write(op, 4096)).count();
    assert_eq!(times(), 1);
    while host.rig.world.now().since(broken) < FENCE {
        assert_eq!((write.get(), times()), (None, 0));
        host.rig.world.run_for(Nanos::from_millis(50));
    }
    host.rig.world.run_for(Nanos::from_millis(500));
    let (result, at) = write.get().expect("it is done");
    assert_eq!((result, times()), (Ok(()), 1));
    assert!(at.since(broken) >= FENCE, "{at:?} {broken:?}");
    host.finish();
}

pub fn is_write(op: &Op, at: u64) -> bool {
    matches!(op, Op::Write(offset, ..) if *offset == at)
}

#[test]
fn a_silent_controller_is_noticed() {
    let host = Host::new(4, Cable::default());
    host.connect();
    let (silent, write) = (host.rig.world.now(), host.write(2, 0, 1));
    host.cable.fall_silent();
    host.cable.is_cut.set(true);
    host.wait_for(PathState::Fencing);
    let noticed = host.rig.world.now();
    assert!(noticed.since(silent) <= KEEP_ALIVE.after(Nanos::from_millis(5)), "{noticed:?}");
    assert!(matches!(host.status().problem, Some(Problem::Silent(_))), "{:?}", host.status());
    host.wait_for(PathState::Connecting);
    assert!(host.rig.world.now().since(noticed) >= FENCE);
    // Whoever waits is told before long; what may have been carried out, not before it can't be.
    assert_eq!(write.get(), None);
    host.rig.world.run_for(seconds(5));
    let (result, at) = write.get().expect("it is told");
    assert_eq!(result, Err(DriveError::Gone));
    assert!(at.since(noticed) >= settings().fast_io_fail, "{at:?}");
    let status = host.status();
    assert!(matches!(status.problem, Some(Problem::NoLine(_))), "{status:?}");
    // It comes back by itself.
    host.cable.is_cut.set(false);
    host.wait_for(PathState::Live);
    let drive = host.drive(2);
    host.run(2, async move {
        assert_eq!(drive.write(0, &[buffer(9, 4096)], false).await, Ok(()));
    });
    host.finish();
}

#[test]
fn a_path_that_is_gone_for_too_long_is_lost() {
    let host = Host::new(5, Cable::default());
    host.connect();
    host.cable.is_cut.set(true);
    host.cable.break_all();
    host.rig.world.run_for(seconds(30));
    let status = host.status();
    assert_eq!(status.state, PathState::Connecting);
    assert!(status.errors > 5, "{status:?}");
    assert!(status.next_try.is_none_or(|next| next <= settings().reconnect_delay), "{status:?}");
    host.wait_for(PathState::Lost);
    let errors = host.status().errors;
    assert_eq!(host.status().next_try, None);
    host.cable.is_cut.set(false);
    host.rig.world.run_for(seconds(30));
    assert_eq!((host.status().state, host.status().errors), (PathState::Lost, errors));
    host.finish();
}

#[test]
fn a_path_that_never_was_says_why() {
    let host = Host::with(6, Cable::default(), Settings { io_queues: 60_000, ..settings() });
    let (subsystem, path) = (host.subsystem.clone(), host.path);
    host.run(0, async move {
        let problem = subsystem.tried(path).await;
        assert!(matches!(problem, Some(Problem::Queues(_, 60_000))), "{problem:?}");
    });
    // Taken away, it is gone at once.
    gone_soon(&host);
    host.finish();
}

fn gone_soon(host: &Host) {
    let (subsystem, path) = (host.subsystem.clone(), host.path);
    subsystem.remove(path);
    assert!(subsystem.is_unreached() && subsystem.paths(Nanos(0)).is_empty());
    let begun = host.rig.world.now();
    host.run(0, async move { subsystem.gone(path).await });
    assert!(host.rig.world.now().since(begun) < Nanos::from_millis(100));
}

#[test]
fn by_a_path_that_is_taken_away_nothing_is_sent() {
    let host = Host::new(7, Cable::default());
    host.connect();
    gone_soon(&host);
    let sent = |host: &Host| host.cable.lines.borrow().iter().map(|line| line.sent()).sum::<u64>();
    let before = (host.cable.lines.borrow().len(), sent(&host));
    host.rig.world.run_for(FENCE.after(seconds(1)));
    assert_eq!((host.cable.lines.borrow().len(), sent(&host)), before);
    host.finish();
}

/// A server has many paths, and holds for as long as each lives what the futures have that keep it.
#[test]
fn a_path_that_lives_holds_little_of_what_connecting_needed() {
    const LITTLE: usize = 2048;
    let host = Host::new(1, Cable::default());
    let (env, cables) = (host.rig.world.env(CoreId(0)), host.cables.clone());
    let lines = Lines { env: env.clone(), dialer: host.rig.dialer(), cables };
    let line = Rc::new(lines.dialer.dial_from(&env, Weather::default(), 0));
    let how = crate::support::how(0, 0, nvme::pdu::Digests::default());
    let begun = palisade_nvme_host::begin(line, &how);
    let kept = keep(env.clone(), lines, host.subsystem.clone(), host.path);
    let sizes = (size_of_val(&begun), size_of_val(&kept));
    assert!(sizes.0 < LITTLE && sizes.1 < LITTLE, "{sizes:?} bytes");
}
