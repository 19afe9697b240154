//! A drive that comes back to an array whose start had to decide without it what was in flight.

use crate::common;

use common::{Machine, Rig, record, reference, references};
use engine::Volume;
use engine::manage::command::{ArrayState, Request, StartOptions};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use units::{MIB, Nanos, Slot};

const DEGRADED: StartOptions = StartOptions { start_degraded: true, accept_loss: false };
const STRIP: u64 = 16 << 10;
/// Where the second region of a group of three begins in a volume.
const SECOND: u64 = 2 * 64 * MIB;

fn put_back(rig: &Rig, slot: usize, drive: &SharedSimDrive) {
    rig.ask(|r| Request::Replace("a".into(), Slot(slot as u16), reference(drive, slot), r))
        .unwrap();
    rig.wait();
}

fn write(rig: &Rig, volume: &Volume<Machine>, at: u64) {
    let byte = (1 + at / STRIP % 251) as u8;
    common::write(rig, volume, at, &[byte; 4096]).unwrap();
}

fn reads(rig: &Rig, at: u64) {
    let byte = (1 + at / STRIP % 251) as u8;
    let got = common::read(rig, &rig.open_volume()[0], at, 4096);
    assert!(got == Ok(vec![byte; 4096]), "at {at}: {:?}", got.map(|bytes| bytes[0]));
}

/// A column stays named while drives have caches that nobody flushes and others follow it; its
/// region is cleaned meanwhile. After a crash that takes a drive nothing in it is lost, and the
/// drive that comes back matches what is there.
#[test]
fn what_is_in_a_clean_region_is_not_in_doubt() {
    let config = |i: u64| DriveConfig::new(96 * MIB, 900 + i).with_cache(true);
    let all: Vec<_> = (0..3).map(|i| SharedSimDrive::new(config(i))).collect();
    let rig = Rig::new(9, 1);
    rig.create_with(Level::Raid5, &all, STRIP as u32, true).unwrap();
    let volume = rig.volume(SECOND + 40 * MIB).remove(0);
    [0, STRIP].into_iter().for_each(|at| write(&rig, &volume, at));
    let dirty = || rig.status().region_map.unwrap().dirty_regions;
    for n in 0.. {
        write(&rig, &volume, SECOND + n / 4 * 2 * STRIP + n % 4 * 4096);
        rig.world.run_for(Nanos::from_micros(2_600));
        if n % 50 == 0 && rig.world.now() > Nanos::from_millis(3_500) && dirty() == 1 {
            break;
        }
        assert!(n < 3000, "the first region is never cleaned");
    }
    rig.world.crash();
    drop(volume);
    let layout = record(&all[0]).layout().unwrap();
    let slot_of = |at: u64| {
        let place = layout.locate(at);
        layout.slot(place.group, place.stripe, place.strip).index()
    };
    let (away, other) = (slot_of(0), slot_of(STRIP));
    let mut left = references(&all);
    left.remove(away);
    let rig = Rig::new(10, 1);
    rig.assemble(&left, DEGRADED).unwrap();
    [0, STRIP].into_iter().for_each(|at| reads(&rig, at));
    put_back(&rig, away, &all[away]);
    assert_eq!((rig.status().state, rig.scrub(false).mismatches), (ArrayState::Optimal, 0));
    rig.fail(other).unwrap();
    [0, STRIP].into_iter().for_each(|at| reads(&rig, at));
}
