//! Power cuts: under load, during resync, again and again. Afterwards every acknowledged write
//! reads back, whatever was under way is old or new block by block, parity agrees, and any
//! tolerated number of drives may go.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Rig, drives, duplicates, record, references};
use engine::manage::command::StartOptions;
use layout::Level;
use sim::{Rng, SharedSimDrive};
use std::rc::Rc;
use units::Nanos;

struct Case {
    level: Level,
    width: usize,
    /// Drives it may lose, the worst choice.
    lose: usize,
    strip: u32,
}

const CASES: &[Case] = &[
    Case { level: Level::Raid1, width: 2, lose: 1, strip: 64 << 10 },
    Case { level: Level::Raid5, width: 4, lose: 1, strip: 64 << 10 },
    Case { level: Level::Raid6, width: 5, lose: 2, strip: 16 << 10 },
    Case { level: Level::Raid10, width: 4, lose: 1, strip: 64 << 10 },
    Case { level: Level::Raid1, width: 3, lose: 2, strip: 64 << 10 },
];

/// Seeds of each case; those that once failed stay here.
const SEEDS: core::ops::Range<u64> = 0..4;

const MIX: Mix = Mix { tasks: 6, operations: 1000, blocks_most: 300, read_percent: 25 };
const BYTES: u64 = 2 << 20;

/// Waits for the resync, compares everything, and takes any tolerated number of drives away.
fn recovered(case: &Case, rig: Rig, oracle: &Rc<Oracle>, drives: &[SharedSimDrive], seed: u64) {
    oracle.verify(&rig, &rig.open_volume()[0], true);
    rig.wait();
    oracle.verify(&rig, &rig.open_volume()[0], true);
    assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
    rig.stop();
    let clean = record(&drives[0]).groups.iter().all(|group| !group.unclean);
    assert!(clean, "seed {seed}: resync is over");
    let mut rng = Rng::new(seed);
    let mut left = duplicates(drives);
    for _ in 0..case.lose {
        left.remove(rng.index(left.len()));
    }
    let rig = Rig::new(seed + 77, 1);
    let options = StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
    rig.assemble(&references(&left), options).unwrap();
    oracle.verify(&rig, &rig.open_volume()[0], false);
}

fn under_load(case: &Case, seed: u64) {
    let (cache, cores) = (seed % 2 == 0, 1 + (seed / 2 % 2) as u16);
    println!("{} of {}: seed {seed}", case.level, case.width);
    let mut rng = Rng::new(seed + 500);
    let drives = drives(case.width, seed, cache);
    let oracle = Oracle::new(BYTES, cache);
    let rig = Rig::new(seed, cores);
    rig.create(case.level, &drives, case.strip).unwrap();
    let volumes = rig.volume(BYTES);
    oracle.start(&rig, &volumes, MIX, seed);
    rig.world.run_for(Nanos::from_micros(200 + rng.below(20_000)));
    rig.world.crash();
    drop(volumes);
    oracle.crashed();
    for round in 0..2 {
        // Again, somewhere in the start or the resync.
        let rig = Rig::new(seed + 10 + round, cores);
        rig.world.power_fails_after(rng.below(400));
        let list = references(&drives);
        let start = |r| {
            let options = StartOptions::default();
            engine::manage::command::Request::Assemble(None, list, options, r)
        };
        if rig.try_ask(start).is_ok() && rng.coin() {
            rig.world.run_for(Nanos::from_micros(rng.below(5_000)));
        }
        rig.world.crash();
    }
    let rig = Rig::new(seed + 20, cores);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    if seed % 3 > 0 {
        let volumes = rig.open_volume();
        let short = Mix { operations: 60, ..MIX };
        oracle.start(&rig, &volumes, short, seed + 1);
        oracle.finish(&rig);
        if seed % 3 == 2 {
            oracle.start(&rig, &volumes, MIX, seed + 2);
            rig.world.run_for(Nanos::from_micros(rng.below(10_000)));
            rig.world.crash();
            drop(volumes);
            oracle.crashed();
            let rig = Rig::new(seed + 30, cores);
            rig.assemble(&references(&drives), StartOptions::default()).unwrap();
            return recovered(case, rig, &oracle, &drives, seed);
        }
    }
    recovered(case, rig, &oracle, &drives, seed);
}

macro_rules! cases {
    ($($load:ident = $index:expr;)*) => {$(
        #[test]
        fn $load() {
            SEEDS.for_each(|seed| under_load(&CASES[$index], seed + 10 * $index));
        }
    )*};
}

cases! {
    raid1_of_2_under_load = 0;
    raid5_under_load = 1;
    raid6_under_load = 2;
    raid10_under_load = 3;
    raid1_of_3_under_load = 4;
}
