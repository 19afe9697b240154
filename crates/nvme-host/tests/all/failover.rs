//! Several paths: one goes, and the others carry on.

use crate::paths::{CORES, Cable, FENCE, Host, KEEP_ALIVE, is_write, seconds, settings};
use crate::support::{PORTS, Rig, buffer, empty};
use io::{Drive, DriveError};
use nvme::log::Access;
use nvme_target::Group;
use palisade_nvme_host::{PathState, RemoteDrive};
use std::cell::Cell;
use std::rc::Rc;
use units::Nanos;

/// States of the paths.
fn states(host: &Host) -> Vec<PathState> {
    host.subsystem.paths(host.rig.world.now()).iter().map(|path| path.state).collect()
}

/// How often a path was live again.
pub fn reconnects(host: &Host, path: usize) -> u64 {
    host.subsystem.paths(host.rig.world.now())[path].reconnects
}

pub fn wait_until(host: &Host, is_so: impl Fn(&Host) -> bool) {
    for _ in 0..60_000 {
        if is_so(host) {
            return;
        }
        host.rig.world.run_for(Nanos::from_millis(1));
    }
    panic!("{:?}", host.subsystem.paths(host.rig.world.now()));
}

pub fn all_live(host: &Host) {
    wait_until(host, |host| states(host).iter().all(|state| *state == PathState::Live));
}

/// How often the target was asked to write there.
pub fn writes(host: &Host, at: u64) -> usize {
    host.rig.volume.log().iter().filter(|op| is_write(op, at)).count()
}

/// One path falls silent while the target does a write that came by it. The other carries reads at
/// once; the write only once the target has ended that controller, with the write.
#[test]
fn a_change_goes_by_another_path_when_its_controller_has_ended() {
    let host = Host::several(21, 2);
    all_live(&host);
    host.rig.world.run_for(seconds(2));
    // A write by the first path: the other has nobody who takes it.
    host.rig.volume.hold(Some(4096));
    let other = host.cables[1].clone();
    other.is_cut.set(true);
    other.break_all();
    wait_until(&host, |host| states(host)[1] != PathState::Live);
    let write = host.write(1, 4096, 7);
    host.rig.world.run_for(Nanos::from_millis(50));
    assert_eq!((write.get(), writes(&host, 4096)), (None, 1));
    other.is_cut.set(false);
    all_live(&host);
    let silent = host.rig.world.now();
    host.cable.is_cut.set(true);
    host.cable.fall_silent();
    wait_until(&host, |host| states(host)[0] == PathState::Fencing);
    let noticed = host.rig.world.now();
    assert!(noticed.since(silent) <= KEEP_ALIVE.after(Nanos::from_millis(5)));
    let drive = host.drive(1);
    let path = host.rig.world.now();
    host.run(1, async move {
        let (result, _) = drive.read(1 << 20, empty(4096)).await;
        assert_eq!(result, Ok(()));
    });
    assert!(host.rig.world.now().since(path) < Nanos::from_millis(10), "by the other, at once");
    // As long as the target does it, it is done there only.
    host.rig.world.run_for(seconds(1));
    assert_eq!((write.get(), writes(&host, 4096), states(&host)[0]), (None, 0, PathState::Fencing));
    host.rig.volume.hold(None);
    host.rig.world.run_for(Nanos::from_millis(200));
    let (result, at) = write.get().expect("it is done");
    assert_eq!((result, writes(&host, 4096)), (Ok(()), 1));
    assert!(at.since(noticed) < FENCE, "earlier than by time: {at:?} {noticed:?}");
    assert_eq!(states(&host)[0], PathState::Connecting);
    host.cable.is_cut.set(false);
    all_live(&host);
    host.finish();
}

/// Where controllers can't be ended by others, time tells; other paths do not wait for it.
#[test]
fn without_resets_a_fence_ends_by_time() {
    let host = Host::timed(22, 2);
    all_live(&host);
    host.rig.world.run_for(seconds(2));
    let all: Vec<Rc<_>> = (0..40).map(|n| host.write((n % 3) as u16, n << 12, n as u8)).collect();
    host.cable.is_cut.set(true);
    host.cable.fall_silent();
    wait_until(&host, |host| states(host)[0] == PathState::Fencing);
    let noticed = host.rig.world.now();
    // What comes now goes by the other path.
    let drive = host.drive(2);
    host.run(2, async move {
        for n in 0..20 {
            let at = (1 << 20) + (n << 12);
            assert_eq!(drive.write(at, &[buffer(n as u8, 4096)], false).await, Ok(()));
        }
    });
    assert!(host.rig.world.now().since(noticed) < Nanos::from_millis(100));
    let held = all.iter().filter(|own| own.get().is_none()).count();
    assert!(held > 0, "all had come back: nothing waits for the fence");
    host.rig.world.run_for(FENCE.after(Nanos::from_millis(500)));
    for own in &all {
        let (result, at) = own.get().expect("it is done");
        assert_eq!(result, Ok(()));
        let is_behind = at.since(noticed) >= FENCE;
        assert!(is_behind || at <= noticed, "neither before the loss nor behind the fence: {at:?}");
    }
    let behind = all.iter().filter(|own| own.get().is_some_and(|(_, at)| at > noticed)).count();
    assert_eq!(behind, held);
    host.finish();
}

/// A port says that it has no way to the namespace any more, before an event could: nothing fails,
/// and nothing waits where another port has one.
#[test]
fn what_a_port_has_no_way_to_goes_by_another_at_once() {
    for lost in [Access::Inaccessible, Access::PersistentLoss, Access::Change] {
        let host = Host::several(23, 2);
        all_live(&host);
        for (number, port) in PORTS.into_iter().enumerate() {
            // By both, in turn.
            host.rig.target.set_access(port, Group::FIRST, lost);
            let begun = host.rig.world.now();
            let writes: Vec<Rc<_>> = (0..60)
                .map(|n| host.write((n % 3) as u16, n << 12, n as u8 + number as u8))
                .collect();
            let drive = host.drive(0);
            host.run(0, async move {
                for n in 0..8 {
                    let (result, _) = drive.read(n << 12, empty(4096)).await;
                    assert_eq!(result, Ok(()));
                }
            });
            host.rig.world.run_for(Nanos::from_millis(20));
            for write in writes {
                let (result, at) = write.get().expect("it is done");
                assert_eq!(result, Ok(()));
                assert!(at.since(begun) < Nanos::from_millis(20), "before the event");
            }
            wait_until(&host, |host| {
                host.subsystem.paths(host.rig.world.now())[number].access[&3] == lost
            });
            assert_eq!(states(&host), [PathState::Live; 2]);
            host.rig.target.set_access(port, Group::FIRST, Access::Optimized);
            wait_until(&host, |host| {
                host.subsystem.paths(host.rig.world.now())[number].access[&3] == Access::Optimized
            });
        }
        host.finish();
    }
}

/// No port has a way for a while: what was asked waits, and is done once one has.
#[test]
fn what_no_port_has_a_way_to_waits_for_one() {
    let host = Host::several(24, 2);
    all_live(&host);
    let set = |access| PORTS.map(|port| host.rig.target.set_access(port, Group::FIRST, access));
    set(Access::Change);
    let write = host.write(1, 4096, 3);
    host.rig.world.run_for(seconds(2));
    assert_eq!((write.get(), writes(&host, 4096)), (None, 0));
    set(Access::NonOptimized);
    host.rig.world.run_for(Nanos::from_millis(400));
    assert_eq!(write.get().map(|(result, _)| result), Some(Ok(())));
    assert_eq!(writes(&host, 4096), 1);
    host.finish();
}

/// Whether a drive that was opened so long ago takes a write, and one that is opened now.
fn take_writes(host: &Host, old: &RemoteDrive) -> [bool; 2] {
    let (old, new, told) = (old.clone(), host.drive(0), Rc::new(Cell::new([false; 2])));
    let own = told.clone();
    host.run(0, async move {
        let mut done = [false; 2];
        for (drive, done) in [old, new].into_iter().zip(&mut done) {
            let result = drive.write(4096, &[buffer(1, 4096)], false).await;
            assert!(result.is_ok() || result == Err(DriveError::Gone), "{result:?}");
            *done = result.is_ok();
        }
        own.set(done);
    });
    told.get()
}

/// What a drive with a cache acknowledged it may have lost if no path was there for a moment: then
/// it is gone, until it is opened anew. One path that stays proves that it had its power.
#[test]
fn a_drive_that_may_have_lost_its_cache_is_gone() {
    for (has_cache, seed) in [(false, 25), (true, 26)] {
        let rig = Rig::with_cores(seed, CORES);
        rig.volume.0.volatile_cache.set(has_cache);
        let host = Host::by(rig, vec![Cable::default(), Cable::default()], settings());
        all_live(&host);
        let drive = host.drive(0);
        for path in 0..2 {
            let before = reconnects(&host, path);
            host.cables[path].break_all();
            wait_until(&host, |host| reconnects(host, path) > before);
            all_live(&host);
        }
        assert_eq!(take_writes(&host, &drive), [true; 2], "there was a path all the time");
        // Both, one a moment behind the other; and one by one, but of the second nobody hears
        // before the first is back.
        for is_silent in [false, true] {
            let (drive, before) = (host.drive(0), reconnects(&host, 0));
            host.cable.break_all();
            match is_silent {
                false => host.cables[1].break_all(),
                true => {
                    host.cables[1].is_cut.set(true);
                    host.cables[1].fall_silent();
                }
            }
            wait_until(&host, |host| reconnects(host, 0) > before);
            assert_eq!(take_writes(&host, &drive), [!has_cache, true], "{is_silent}");
            host.cables[1].is_cut.set(false);
            all_live(&host);
        }
        host.finish();
    }
}

/// A namespace with a cache is not listed when its only path is back, and comes a moment later: its
/// power may have gone all the same.
#[test]
fn a_drive_that_is_listed_late_may_have_lost_its_cache_too() {
    let rig = Rig::with_cores(27, CORES);
    rig.volume.0.volatile_cache.set(true);
    rig.serve_other();
    let host = Host::by(rig, vec![Cable::default()], settings());
    all_live(&host);
    let (drive, before) = (host.drive(0), reconnects(&host, 0));
    host.rig.target.suspend("one");
    host.cable.break_all();
    wait_until(&host, |host| reconnects(host, 0) > before);
    host.rig.serve_again();
    wait_until(&host, |host| {
        let paths = host.subsystem.paths(host.rig.world.now());
        paths[0].access.get(&3) == Some(&Access::Optimized)
    });
    assert_eq!(take_writes(&host, &drive), [false, true]);
    host.finish();
}
