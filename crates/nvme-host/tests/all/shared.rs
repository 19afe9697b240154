//! A drive that other servers reach too: guards of it, and controllers that others have ended.

use crate::failover::{all_live, reconnects, wait_until, writes};
use crate::paths::{CORES, Cable, Ended, FENCE, Host, KEEP_ALIVE, seconds, settings};
use crate::support::{PORTS, Rig, buffer, empty};
use io::{BlockError, Controller, Drive, DriveError, Guard, Reached};
use nvme::log::Access;
use nvme_target::Group;
use palisade_nvme_host::{PathState, RemoteDrive, Settings};
use sim::volume::Op;
use std::cell::Cell;
use std::rc::Rc;
use units::Nanos;

/// Where it is looked.
const PAGE: u64 = 512 << 10;
/// What stands there while the drive is this server's.
const OWN: &[u8] = b"this server's page";

fn guard() -> Guard {
    Guard { offset: PAGE, begins: OWN.to_vec() }
}

fn reached(drive: &RemoteDrive) -> &dyn Reached {
    drive.reached().expect("it is of a subsystem")
}

/// Has something stand in the page.
fn stand(host: &Host, what: &[u8]) {
    let page = PAGE as usize..PAGE as usize + what.len();
    host.rig.volume.0.data.borrow_mut()[page].copy_from_slice(what);
}

/// Has another server's stand there.
fn take(host: &Host) {
    stand(host, &[b'x'; OWN.len()]);
}

/// A host by so many paths, behind its own page and a guard.
fn guarded(seed: u64, paths: usize) -> Host {
    let rig = Rig::with_cores(seed, CORES);
    let cables = (0..paths).map(|_| Cable::default()).collect();
    let host = Host::by(rig, cables, Settings { fast_io_fail: seconds(60), ..settings() });
    all_live(&host);
    host.rig.world.run_for(seconds(2));
    stand(&host, OWN);
    reached(&host.shared(0)).guard(Some(guard()));
    // It names no controllers.
    reached(&host.shared(0)).named(&[]);
    host.rig.world.run_for(Nanos::from_millis(1));
    host.rig.volume.log();
    host
}

/// A path breaks, and nobody is there for a while.
fn cut(host: &Host, path: usize) {
    host.cables[path].is_cut.set(true);
    host.cables[path].break_all();
    wait_until(host, |host| {
        host.subsystem.paths(host.rig.world.now())[path].state != PathState::Live
    });
}

/// It is there again.
fn join(host: &Host, path: usize) {
    let before = reconnects(host, path);
    host.cables[path].is_cut.set(false);
    wait_until(host, |host| reconnects(host, path) > before);
    wait_until(host, |host| host.subsystem.paths(host.rig.world.now())[path].queues == CORES);
    host.rig.world.run_for(Nanos::from_millis(5));
}

fn result(write: &Rc<Cell<Option<Ended>>>) -> Option<Result<(), DriveError>> {
    write.get().map(|(result, _)| result)
}

/// What comes of a write that begins now, soon.
fn write_now(host: &Host, core: u16, at: u64) -> Option<Result<(), DriveError>> {
    let write = host.write(core, at, 3);
    host.rig.world.run_for(Nanos::from_millis(5));
    result(&write)
}

/// Whether a core reads.
fn reads(host: &Host, core: u16) -> bool {
    let (drive, is_read) = (host.drive(core), Rc::new(Cell::new(false)));
    let own = is_read.clone();
    host.run(core, async move { own.set(drive.read(1 << 20, empty(4096)).await.0.is_ok()) });
    is_read.get()
}

fn is_page(op: &Op) -> bool {
    *op == Op::Read(PAGE, 4096)
}

fn is_change(op: &Op) -> bool {
    matches!(op, Op::Write(..) | Op::Zeroes(..) | Op::Discard(..))
}

#[test]
fn what_waits_for_a_path_is_not_changed_once_the_page_is_anothers() {
    let host = guarded(31, 1);
    // One is at the target, and one has not been sent.
    host.rig.volume.hold(Some(4096));
    let sent = host.write(1, 4096, 1);
    host.rig.world.run_for(Nanos::from_millis(10));
    assert_eq!(writes(&host, 4096), 1);
    cut(&host, 0);
    let waiting = host.write(1, 8192, 2);
    let (drive, others) = (host.drive(2), Rc::new(Cell::new(Vec::new())));
    let own = others.clone();
    io::Env::spawn(&host.rig.world.env(units::CoreId(2)), io::Priority::First, async move {
        let (zeroes, discard) = (drive.write_zeroes(1 << 16, 4096), drive.discard(1 << 17, 4096));
        let results = vec![zeroes.await, discard.await];
        own.set(results);
    });
    host.rig.world.run_for(Nanos::from_millis(10));
    take(&host);
    host.rig.volume.hold(None);
    host.rig.volume.log();
    join(&host, 0);
    assert_eq!(result(&waiting), Some(Err(DriveError::Gone)));
    assert_eq!(others.take(), [Err(DriveError::Gone); 2]);
    for core in 0..CORES {
        assert_eq!(write_now(&host, core, 1 << 18), Some(Err(DriveError::Gone)));
        assert!(reads(&host, core));
    }
    // What was sent before is called over when it can't be done any more, and not sent again.
    host.rig.world.run_for(FENCE.after(seconds(1)));
    assert_eq!(result(&sent), Some(Err(DriveError::Gone)));
    let log = host.rig.volume.log();
    assert!(log.iter().any(is_page) && !log.iter().any(is_change), "{log:?}");
    // Nor by a connection that comes later.
    cut(&host, 0);
    join(&host, 0);
    assert_eq!(write_now(&host, 0, 4096), Some(Err(DriveError::Gone)));
    assert!(!host.rig.volume.log().iter().any(is_change));
    host.finish();
}

/// Who starts after a kill has the controllers ended that the page names: another one may not have
/// changed anything but the page.
#[test]
fn a_new_connection_changes_the_page_only_until_that_names_it() {
    for paths in [1, 2] {
        let host = guarded(36, paths);
        let own = host.shared(0);
        let names = reached(&own).controllers();
        reached(&own).named(&names);
        (0..paths).for_each(|path| cut(&host, path));
        (0..paths).for_each(|path| join(&host, path));
        assert_ne!(reached(&own).controllers(), names);
        let waiting = host.write(1, 8192, 2);
        host.rig.world.run_for(seconds(1));
        assert_eq!(result(&waiting), None, "by {paths} paths");
        assert!(!host.rig.volume.log().iter().any(is_change));
        assert!(reads(&host, 2));
        // The page is written by the same connections.
        assert_eq!(write_now(&host, 0, PAGE), Some(Ok(())));
        stand(&host, OWN);
        host.rig.world.run_for(seconds(1));
        assert_eq!(result(&waiting), None, "it does not name them yet");
        reached(&own).named(&reached(&own).controllers());
        host.rig.world.run_for(Nanos::from_millis(5));
        assert_eq!(result(&waiting), Some(Ok(())));
        // A guard that is taken away asks for nothing.
        (0..paths).for_each(|path| cut(&host, path));
        (0..paths).for_each(|path| join(&host, path));
        let waiting = host.write(2, 8192, 2);
        host.rig.world.run_for(seconds(1));
        assert_eq!(result(&waiting), None);
        reached(&own).guard(None);
        host.rig.world.run_for(Nanos::from_millis(5));
        assert_eq!(result(&waiting), Some(Ok(())));
        host.finish();
    }
}

/// An array that lets a drive go names no connection any more: what waits for that would wait for
/// ever.
#[test]
fn what_waits_is_gone_once_the_drive_is_let_go() {
    let host = guarded(38, 1);
    let own = host.shared(0);
    reached(&own).named(&reached(&own).controllers());
    host.rig.volume.hold(Some(4096));
    let sent = host.write(1, 4096, 1);
    host.rig.world.run_for(Nanos::from_millis(10));
    cut(&host, 0);
    host.rig.volume.hold(None);
    join(&host, 0);
    let waiting = host.write(2, 8192, 2);
    // Who asked for another guard has nothing to say here.
    reached(&own).bar(&Guard { begins: b"another term".to_vec(), ..guard() });
    host.rig.world.run_for(seconds(1));
    assert_eq!(result(&waiting), None);
    host.rig.volume.log();
    reached(&own).bar(&guard());
    host.rig.world.run_for(Nanos::from_millis(5));
    assert_eq!(result(&waiting), Some(Err(DriveError::Gone)));
    assert_eq!(write_now(&host, 0, 1 << 18), Some(Err(DriveError::Gone)));
    assert!(reads(&host, 0));
    host.rig.world.run_for(FENCE.after(seconds(1)));
    assert_eq!(result(&sent), Some(Err(DriveError::Gone)));
    assert!(!host.rig.volume.log().iter().any(is_change));
    // Whoever has it next begins anew.
    reached(&own).guard(None);
    host.rig.world.run_for(Nanos::from_millis(5));
    assert_eq!(write_now(&host, 2, 8192), Some(Ok(())));
    host.finish();
}

#[test]
fn a_new_connection_changes_something_once_it_has_read_the_page() {
    let host = guarded(32, 1);
    cut(&host, 0);
    let all: Vec<_> = (0..CORES).map(|core| host.write(core, u64::from(core) << 13, 1)).collect();
    host.rig.volume.hold(Some(PAGE));
    join(&host, 0);
    for core in 0..CORES {
        assert!(reads(&host, core), "reads do not wait");
    }
    host.rig.world.run_for(seconds(1));
    let log = host.rig.volume.log();
    assert_eq!(log.iter().filter(|op| is_page(op)).count(), usize::from(CORES), "{log:?}");
    assert!(!log.iter().any(is_change) && all.iter().all(|own| own.get().is_none()));
    host.rig.volume.hold(None);
    host.rig.world.run_for(Nanos::from_millis(10));
    assert!(all.iter().all(|own| result(own) == Some(Ok(()))));
    // Once for each connection.
    assert_eq!(write_now(&host, 1, 1 << 16), Some(Ok(())));
    let log = host.rig.volume.log();
    assert_eq!((log.len(), log.iter().filter(|op| is_change(op)).count()), (4, 4), "{log:?}");
    host.finish();
}

/// The page is read again that could not be read, and by a connection behind one that ended.
#[test]
fn a_page_that_can_not_be_read_says_nothing() {
    let host = guarded(33, 1);
    cut(&host, 0);
    let write = host.write(1, 4096, 1);
    host.rig.volume.fail(PAGE..PAGE + 4096, BlockError::Unavailable);
    join(&host, 0);
    host.rig.world.run_for(Nanos::from_millis(700));
    assert_eq!((write.get(), reads(&host, 1)), (None, true));
    let log = host.rig.volume.log();
    let times = log.iter().filter(|op| is_page(op)).count();
    assert!(times > usize::from(CORES) && times < 10 * usize::from(CORES), "{times}");
    host.rig.volume.fail(0..0, BlockError::Unavailable);
    host.rig.world.run_for(seconds(1));
    assert_eq!(result(&write), Some(Ok(())));
    // Where it can't be read for longer nothing is changed, and whoever wants to is told.
    cut(&host, 0);
    let write = host.write(1, 12288, 1);
    host.rig.volume.fail(PAGE..PAGE + 4096, BlockError::Unavailable);
    join(&host, 0);
    host.rig.world.run_for(seconds(2));
    assert_eq!((result(&write), writes(&host, 12288)), (Some(Err(DriveError::Gone)), 0));
    host.rig.volume.fail(0..0, BlockError::Unavailable);
    reached(&host.shared(0)).guard(Some(guard()));
    // It ends while the page is being read.
    host.rig.volume.hold(Some(PAGE));
    cut(&host, 0);
    let write = host.write(1, 8192, 1);
    join(&host, 0);
    cut(&host, 0);
    host.rig.volume.hold(None);
    take(&host);
    join(&host, 0);
    host.rig.world.run_for(seconds(1));
    assert_eq!((result(&write), writes(&host, 8192)), (Some(Err(DriveError::Gone)), 0));
    host.finish();
}

/// Connections that there were go on, also for what another one may not carry yet.
#[test]
fn a_connection_from_before_the_guard_goes_on() {
    let host = guarded(34, 2);
    host.rig.volume.hold(Some(PAGE));
    for core in 0..CORES {
        assert_eq!(write_now(&host, core, 4096), Some(Ok(())));
    }
    cut(&host, 1);
    join(&host, 1);
    host.rig.volume.log();
    for n in 0..8 {
        assert_eq!(write_now(&host, 1, n << 13), Some(Ok(())), "nobody waits for the other's turn");
    }
    assert!(!host.rig.volume.log().iter().any(is_page));
    // Until the other has found that the page is another's.
    take(&host);
    host.rig.volume.hold(None);
    host.rig.world.run_for(Nanos::from_millis(10));
    for core in 0..CORES {
        assert_eq!(write_now(&host, core, 4096), Some(Err(DriveError::Gone)));
        assert!(reads(&host, core));
    }
    host.finish();
    // One that looks at another page than there is goes on as long as it lasts.
    let host = guarded(35, 1);
    take(&host);
    for core in 0..CORES {
        assert_eq!(write_now(&host, core, 4096), Some(Ok(())));
    }
    assert!(!host.rig.volume.log().iter().any(is_page));
    host.finish();
}

#[test]
fn a_guard_that_is_set_anew_or_taken_away_lets_changes_pass() {
    for is_anew in [true, false] {
        let host = guarded(36, 1);
        cut(&host, 0);
        take(&host);
        join(&host, 0);
        assert_eq!(write_now(&host, 1, 4096), Some(Err(DriveError::Gone)));
        if is_anew {
            stand(&host, b"another term");
        }
        let next = Guard { begins: b"another term".to_vec(), ..guard() };
        reached(&host.shared(1)).guard(is_anew.then_some(next));
        // On the core that said so at once.
        let drive = host.drive(1);
        host.run(1, async move {
            assert_eq!(drive.write(4096, &[buffer(1, 4096)], false).await, Ok(()));
        });
        host.rig.world.run_for(Nanos::from_millis(5));
        for core in 0..CORES {
            assert_eq!(write_now(&host, core, 8192), Some(Ok(())));
        }
        host.rig.volume.log();
        cut(&host, 0);
        join(&host, 0);
        assert_eq!(write_now(&host, 1, 8192), Some(Ok(())));
        let times = host.rig.volume.log().iter().filter(|op| is_page(op)).count();
        assert_eq!(times, if is_anew { usize::from(CORES) } else { 0 });
        host.finish();
    }
}

/// A connection that was not checked by one guard is so by the next.
#[test]
fn a_guard_that_is_set_anew_counts_for_what_the_one_before_had_not_let_pass() {
    let host = guarded(37, 1);
    cut(&host, 0);
    host.rig.volume.fail(PAGE..PAGE + 4096, BlockError::Unavailable);
    join(&host, 0);
    let next = Guard { begins: b"another term".to_vec(), ..guard() };
    reached(&host.shared(0)).guard(Some(next));
    host.rig.volume.fail(0..0, BlockError::Unavailable);
    host.rig.world.run_for(seconds(1));
    assert_eq!(write_now(&host, 0, 4096), Some(Err(DriveError::Gone)));
    host.finish();
    // What is read by the one before when the next is set does not break that.
    let host = guarded(44, 1);
    cut(&host, 0);
    take(&host);
    host.rig.volume.hold(Some(PAGE));
    join(&host, 0);
    let next = Guard { begins: vec![b'x'; OWN.len()], ..guard() };
    reached(&host.shared(0)).guard(Some(next));
    host.rig.volume.hold(None);
    host.rig.world.run_for(Nanos::from_millis(5));
    for core in 0..CORES {
        assert_eq!(write_now(&host, core, 4096), Some(Ok(())));
    }
    host.finish();
}

/// A way that opens to a port only later: the page is read by it then.
#[test]
fn a_page_is_read_when_there_is_a_way() {
    let host = guarded(38, 1);
    host.rig.target.set_access(PORTS[0], Group::FIRST, Access::Change);
    cut(&host, 0);
    let write = host.write(1, 4096, 1);
    join(&host, 0);
    host.rig.world.run_for(seconds(1));
    assert_eq!((write.get(), writes(&host, 4096)), (None, 0));
    host.rig.target.set_access(PORTS[0], Group::FIRST, Access::Optimized);
    host.rig.world.run_for(seconds(1));
    assert_eq!(result(&write), Some(Ok(())));
    host.finish();
    // And by no other.
    let host = guarded(45, 2);
    host.rig.target.set_access(PORTS[1], Group::FIRST, Access::Change);
    cut(&host, 1);
    join(&host, 1);
    host.rig.world.run_for(seconds(1));
    assert!(!host.rig.volume.log().iter().any(is_page));
    host.rig.target.set_access(PORTS[1], Group::FIRST, Access::Optimized);
    host.rig.world.run_for(seconds(1));
    let times = host.rig.volume.log().iter().filter(|op| is_page(op)).count();
    assert_eq!(times, usize::from(CORES));
    host.finish();
}

#[test]
fn all_controllers_are_named_that_may_carry_something_out() {
    let host = Host::timed(39, 2);
    assert_eq!(host.subsystem.fence(), Nanos(3 * KEEP_ALIVE.0));
    assert_eq!(host.subsystem.controllers(), []);
    all_live(&host);
    assert!(host.drive(0).reached().is_none());
    let drive = host.shared(2);
    let controllers = || reached(&drive).controllers();
    let numbers = || controllers().iter().map(|own| own.number).collect::<Vec<_>>();
    let live = |host: &Host| -> Vec<u16> {
        let paths = host.subsystem.paths(host.rig.world.now());
        paths.iter().filter_map(|path| path.controller).collect()
    };
    let first = controllers();
    assert_eq!((numbers(), first.len()), (live(&host), 2));
    assert!(first.iter().all(|own| own.uniquifier != 0 && own.random != 0));
    assert_eq!(reached(&drive).fence(), FENCE);
    // One that is over counts until its fence has ended.
    cut(&host, 0);
    let broken = host.rig.world.now();
    assert_eq!(controllers(), first);
    join(&host, 0);
    assert!(host.rig.world.now().since(broken) < FENCE);
    let both = controllers();
    assert!(both.len() == 3 && first.iter().all(|own| both.contains(own)));
    host.rig.world.run_for(FENCE);
    assert_eq!((numbers(), controllers().len()), (live(&host), 2));
    host.finish();
    // Also where all is gone, for longer keep-alive timeouts.
    let keep_alive = seconds(4);
    let settings = Settings { keep_alive, ..settings() };
    let host = Host::with(40, Cable::default(), settings);
    all_live(&host);
    cut(&host, 0);
    assert_eq!(host.subsystem.fence(), Nanos(3 * keep_alive.0));
    assert_eq!(host.subsystem.controllers().len(), 1);
    host.finish();
}

/// Has a controller ended: whether it was, once that is said.
fn end(host: &Host, controller: Controller) -> Rc<Cell<Option<bool>>> {
    let (drive, told) = (host.shared(1), Rc::new(Cell::new(None)));
    let own = told.clone();
    io::Env::spawn(&host.rig.world.env(units::CoreId(1)), io::Priority::First, async move {
        let ending = reached(&drive).end(controller);
        own.set(Some(ending.await));
    });
    told
}

/// Two hosts of one name at a target that does resets, or not.
fn two(seed: u64, resets: bool) -> (Host, Host) {
    let rig = Rc::new(Rig::with(seed, CORES, resets));
    let host = || Host::beside(&rig, vec![Cable::default(), Cable::default()], settings());
    let both = (host(), host());
    all_live(&both.0);
    all_live(&both.1);
    rig.world.run_for(seconds(2));
    both
}

fn finish(one: Host, other: Host) {
    one.end();
    other.finish();
}

#[test]
fn anothers_controller_is_ended_with_what_it_had() {
    let (one, other) = two(41, true);
    let named = reached(&one.shared(0)).controllers();
    assert_eq!(named.len(), 2);
    // The target does a write of each of them.
    one.rig.volume.hold(Some(4096));
    let all: Vec<_> = (0..2).map(|n| one.write(1, 4096, n)).collect();
    one.rig.world.run_for(Nanos::from_millis(10));
    assert_eq!((writes(&one, 4096), one.rig.volume.0.in_flight.get()), (2, 2));
    one.cables.iter().for_each(|cable| cable.is_cut.set(true));
    // Several ask for the same.
    let ended: Vec<_> = named.iter().chain(&named).map(|own| end(&other, *own)).collect();
    one.rig.world.run_for(seconds(1));
    assert!(ended.iter().all(|own| own.get().is_none()), "as long as it does them");
    assert!(states(&one).iter().all(|state| *state != PathState::Live));
    one.rig.volume.hold(None);
    for _ in 0..1000 {
        one.rig.world.run_for(Nanos::from_micros(100));
        let is_any = ended.iter().any(|own| own.get() == Some(true));
        assert!(!is_any || one.rig.volume.0.in_flight.get() == 0);
    }
    assert!(ended.iter().all(|own| own.get() == Some(true)));
    assert_eq!(states(&other), [PathState::Live; 2]);
    // It is not there any more.
    let again = end(&other, named[0]);
    one.rig.world.run_for(Nanos::from_millis(10));
    assert_eq!(again.get(), Some(true));
    // Its host calls them over once they can not be done any more.
    one.rig.world.run_for(FENCE.after(seconds(5)));
    assert!(all.iter().all(|own| result(own) == Some(Err(DriveError::Gone))));
    one.cables.iter().for_each(|cable| cable.is_cut.set(false));
    finish(one, other);
}

fn states(host: &Host) -> Vec<PathState> {
    host.subsystem.paths(host.rig.world.now()).iter().map(|path| path.state).collect()
}

#[test]
fn what_nobody_can_end_is_not_said_to_have_ended() {
    let (one, other) = two(42, false);
    let named = reached(&one.shared(0)).controllers();
    let ended = end(&other, named[0]);
    one.rig.world.run_for(Nanos::from_millis(10));
    assert_eq!(ended.get(), Some(false), "nobody can ask");
    assert_eq!(states(&one), [PathState::Live; 2]);
    finish(one, other);

    let (one, other) = two(43, true);
    let named = reached(&one.shared(0)).controllers();
    let is_told = |told: &Rc<Cell<Option<bool>>>| {
        one.rig.world.run_for(Nanos::from_millis(10));
        told.get()
    };
    assert_eq!(is_told(&end(&other, Controller { uniquifier: 0, ..named[0] })), Some(false));
    // By one path, its own controller can't be ended, and by the other it is.
    cut(&other, 1);
    let own = reached(&other.shared(0)).controllers();
    let own = own.into_iter().find(|own| Some(own.number) == other.status().controller);
    assert_eq!(is_told(&end(&other, own.expect("it is live"))), Some(false), "it is refused");
    // It takes too long: the target does a write all the time.
    one.rig.volume.hold(Some(4096));
    let writes: Vec<_> = (0..2).map(|n| one.write(1, 4096, n)).collect();
    one.rig.world.run_for(Nanos::from_millis(10));
    let (begun, ended) = (one.rig.world.now(), end(&other, named[0]));
    while ended.get().is_none() && one.rig.world.now().since(begun) < seconds(10) {
        one.rig.world.run_for(Nanos::from_millis(10));
    }
    let took = one.rig.world.now().since(begun);
    assert!(took >= FENCE && took < FENCE.after(Nanos::from_millis(50)), "{took:?}");
    assert_eq!(ended.get(), Some(false));
    one.rig.volume.hold(None);
    one.rig.world.run_for(seconds(1));
    assert_eq!(is_told(&end(&other, named[0])), Some(true));
    assert!(writes.iter().all(|own| result(own) == Some(Ok(()))));
    // All paths are gone, or the subsystem is closed.
    cut(&other, 0);
    assert_eq!(is_told(&end(&other, named[1])), Some(false));
    other.subsystem.close();
    assert_eq!(is_told(&end(&other, named[1])), Some(false));
    finish(one, other);
}
