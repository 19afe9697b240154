//! A stop, or a volume that shrinks, waits for writes whose requesters are gone: a front end may
//! drop a future at any point, what it began runs to its end.

use crate::common;

use common::{Machine, Rig, drives, record};
use engine::Volume;
use engine::manage::command::Request;
use io::{Blocks, Pool};
use layout::Level;
use sim::SharedSimDrive;
use std::future::{Future, poll_fn};
use std::task::Poll;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;
const LEVELS: [(Level, usize); 5] =
    [(Level::Raid5, 4), (Level::Raid6, 5), (Level::Raid10, 4), (Level::Raid0, 3), (Level::Jbod, 2)];

fn slow(drives: &[SharedSimDrive]) {
    for drive in drives {
        drive.set_latency(Nanos::from_millis(50), Nanos::from_millis(60));
    }
}

/// Begins a write on a core, lets it run for a while, and drops its future.
fn abandon(rig: &Rig, volume: &Volume<Machine>, at: u64, bytes: usize, pause: Nanos) {
    let volume = volume.clone();
    let mut data = Pool::single(bytes);
    data.fill(0xaa);
    let env = rig.env();
    rig.world.block_on(CoreId(0), async move {
        let mut write = Box::pin(volume.write(at, data.freeze(), false));
        let once = poll_fn(|cx| Poll::Ready(write.as_mut().poll(cx).is_pending()));
        assert!(once.await, "the write is under way");
        io::Env::sleep(&env, pause).await;
        drop(write);
    });
}

#[test]
fn a_stop_waits_for_a_write_whose_requester_is_gone() {
    for (level, width) in LEVELS {
        for (cores, pause) in [(1, 0), (2, 0), (2, 1), (1, 20)] {
            let drives = drives(width, 21, false);
            let rig = Rig::new(21 + u64::from(cores), cores);
            rig.create(level, &drives, STRIP).unwrap();
            let volume = rig.volume(MIB).remove(0);
            let (all, data) = (volume.clone(), Pool::single(MIB as usize).freeze());
            rig.world.block_on(CoreId(0), async move { all.write(0, data, false).await.unwrap() });
            // What the write asks first of each drive hangs; all later requests go on.
            drives.iter().for_each(|drive| drive.hold(0, 1));
            abandon(&rig, &volume, 4096, 96 << 10, Nanos::from_millis(pause));
            rig.world.run_for(Nanos::from_millis(5));
            drives.iter().for_each(|drive| drive.hold(0, 0));
            assert!(drives.iter().any(|drive| drive.in_flight() > 0));
            let stopped = rig.send(|reply| Request::Stop("a".into(), reply));
            rig.world.run_for(Nanos::from_millis(1_000));
            assert!(stopped.lock().unwrap().is_none(), "{level}, {cores} cores: it did not wait");
            drives.iter().for_each(SharedSimDrive::release);
            rig.answered(&stopped).unwrap();
            assert_eq!(drives.iter().map(SharedSimDrive::in_flight).sum::<usize>(), 0);
            assert!(record(&drives[0]).groups.iter().all(|group| !group.unclean));
        }
    }
}

/// Rows given back by a volume that shrinks are not written by it any more.
#[test]
fn a_volume_that_shrinks_waits_for_it_too() {
    for (level, width) in LEVELS {
        let drives = drives(width, 22, false);
        let rig = Rig::new(22, 2);
        let size = rig.create(level, &drives, STRIP).unwrap().size_bytes;
        let volume = rig.volume(size / 2).remove(0);
        let at = volume.bytes() - (64 << 10);
        slow(&drives);
        abandon(&rig, &volume, at, 64 << 10, Nanos::from_millis(1));
        rig.ask(|r| Request::VolumeResize("a".into(), "v".into(), MIB.into(), r)).unwrap();
        let data = record(&drives[0]);
        let data = data.data_offset..data.data_offset + data.data_bytes;
        assert!(!drives.iter().any(|drive| drive.writes_within(data.clone())), "{level}");
        rig.stop();
        assert_eq!(drives.iter().map(SharedSimDrive::in_flight).sum::<usize>(), 0, "{level}");
    }
}
