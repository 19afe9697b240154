//! Every level × width × healthy, degraded, rebuilding × aligned, unaligned × 1 and 2 cores,
//! against the record of what each block may hold, on the deterministic runtime. A failure names
//! its seed.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{DRIVE_BYTES, Rig, reference, references};
use engine::manage::command::{ArrayState, ArrayStatus, NewArray, Request};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use units::{MIB, Slot};

/// One place in the matrix.
struct Case {
    level: Level,
    width: usize,
    /// How many drives are lost on the way, at most what the level survives.
    lose: usize,
    strip: u32,
    /// Slots from one lost drive to the next.
    apart: usize,
    /// The array's block; every other drive has it too, the rest have 512 bytes.
    block: u32,
}

const fn case(level: Level, width: usize, lose: usize, strip: u32) -> Case {
    Case { level, width, lose, strip, apart: 1, block: 512 }
}

const CASES: &[Case] = &[
    case(Level::Jbod, 2, 0, 64 << 10),
    case(Level::Jbod, 5, 0, 4 << 10),
    case(Level::Raid0, 2, 0, 64 << 10),
    case(Level::Raid0, 7, 0, 4 << 10),
    case(Level::Raid1, 2, 1, 64 << 10),
    case(Level::Raid1, 4, 3, 16 << 10),
    case(Level::Raid10, 4, 1, 64 << 10),
    case(Level::Raid10, 8, 1, 4 << 10),
    case(Level::Raid5, 3, 1, 64 << 10),
    case(Level::Raid5, 5, 1, 4 << 10),
    case(Level::Raid5, 8, 1, 1 << 20),
    case(Level::Raid6, 4, 2, 64 << 10),
    case(Level::Raid6, 6, 2, 16 << 10),
    case(Level::Raid6, 9, 2, 256 << 10),
    case(Level::Raid5, 32, 1, 4 << 10),
    // Two drives of different pairs.
    Case { apart: 2, ..case(Level::Raid10, 4, 2, 64 << 10) },
    Case { apart: 3, ..case(Level::Raid10, 8, 2, 16 << 10) },
    Case { block: 4096, ..case(Level::Raid0, 3, 0, 16 << 10) },
    Case { block: 4096, ..case(Level::Raid1, 3, 2, 4 << 10) },
    Case { block: 4096, ..case(Level::Raid5, 4, 1, 4 << 10) },
    Case { block: 4096, ..case(Level::Raid6, 5, 2, 64 << 10) },
    Case { block: 4096, apart: 2, ..case(Level::Raid10, 4, 2, 16 << 10) },
    // The most drives that there are.
    case(Level::Jbod, 64, 0, 16 << 10),
    case(Level::Raid1, 64, 1, 16 << 10),
    Case { apart: 3, ..case(Level::Raid10, 64, 2, 16 << 10) },
    case(Level::Raid5, 64, 1, 16 << 10),
    Case { apart: 62, ..case(Level::Raid6, 64, 2, 4 << 10) },
];

/// Seeds that once failed, run before the others.
const SEEDS: &[u64] = &[];

fn load(case: &Case, aligned: bool) -> Mix {
    // Each costs as many writes as there are copies.
    let dear = case.level == Level::Raid1 && case.width > 8;
    let (operations, blocks_most) = (if dear { 8 } else { 40 }, if aligned { 512 } else { 400 });
    Mix { tasks: 6, operations, blocks_most, read_percent: 40 }
}

fn machine(case: &Case, seed: u64) -> Vec<SharedSimDrive> {
    let drive = |i: usize| {
        let block = if i.is_multiple_of(2) { case.block } else { 512 };
        let config = DriveConfig::new(DRIVE_BYTES, seed * 100 + i as u64);
        SharedSimDrive::new(config.with_cache(seed.is_multiple_of(2)).with_blocks(block))
    };
    (0..case.width + case.lose).map(drive).collect()
}

fn create(rig: &Rig, case: &Case, drives: &[SharedSimDrive]) -> ArrayStatus {
    let (level, strip_bytes, block_bytes) = (case.level, case.strip, Some(case.block));
    let new = NewArray { shared: false, name: "a".into(), level, strip_bytes, block_bytes };
    rig.ask(|reply| Request::Create(new, references(drives), reply)).unwrap()
}

fn run(case: &Case, seed: u64, cores: u16, aligned: bool) {
    let rig = Rig::new(seed, cores);
    let machine = machine(case, seed);
    let made = create(&rig, case, &machine[..case.width]);
    assert_eq!(made.block_bytes, case.block);
    let bytes = made.size_bytes.min(6 * MIB) - 8 * 512;
    let volumes = rig.volume(bytes);
    let oracle = Oracle::new(bytes, seed.is_multiple_of(2));
    oracle.zeros.set(true);
    oracle.align.set(if aligned { 64 << 10 } else { u64::from(case.block) });
    // Healthy.
    oracle.start(&rig, &volumes, load(case, aligned), seed);
    oracle.finish(&rig);
    oracle.verify(&rig, &volumes[0], false);
    for lost in 0..case.lose {
        // Degraded: the drive goes while requests are under way.
        oracle.start(&rig, &volumes, load(case, aligned), seed + 1);
        rig.world.run_for(units::Nanos::from_micros(200));
        let slot = (seed as usize + lost * case.apart) % case.width;
        machine[slot].vanish();
        oracle.finish(&rig);
        oracle.verify(&rig, &volumes[0], false);
    }
    for lost in 0..case.lose {
        // Rebuilding: the replacement fills while requests go on.
        let slot = (seed as usize + lost * case.apart) % case.width;
        let _ = rig.ask(|r| Request::Fail("a".into(), vec![format!("slot:{slot}")], r)).unwrap();
        let spare = reference(&machine[case.width + lost], case.width + lost);
        rig.ask(|r| Request::Replace("a".into(), Slot(slot as u16), spare, r)).unwrap();
        oracle.start(&rig, &volumes, load(case, aligned), seed + 2);
        oracle.finish(&rig);
    }
    rig.wait();
    let status = rig.status();
    assert_eq!(status.state, ArrayState::Optimal, "seed {seed}");
    oracle.verify(&rig, &volumes[0], false);
    if !matches!(case.level, Level::Jbod | Level::Raid0) {
        let found = rig.scrub(false);
        assert_eq!(found.mismatches, 0, "seed {seed}");
        let written = status.region_map.written_bytes;
        assert!(written > 0 && found.checked_bytes >= written);
    }
    rig.stop();
}

fn run_case(index: usize) {
    let case = &CASES[index];
    for (i, (cores, aligned)) in
        [(1, false), (1, true), (2, false), (2, true)].into_iter().enumerate()
    {
        for seed in SEEDS.iter().copied().chain([(index * 10 + i) as u64]) {
            let name = format!("{} of {}, strip {}", case.level, case.width, case.strip);
            println!("{name}: cores {cores}, aligned {aligned}, seed {seed}");
            run(case, seed, cores, aligned);
        }
    }
}

macro_rules! cases {
    ($($name:ident = $index:expr;)*) => {
        $(#[test] fn $name() { run_case($index) })*
        #[test]
        fn every_case_is_run() {
            assert_eq!([$($index),*].len(), CASES.len());
        }
    };
}

cases! {
    jbod_of_2 = 0;
    jbod_of_5 = 1;
    raid0_of_2 = 2;
    raid0_of_7 = 3;
    raid1_of_2 = 4;
    raid1_of_4 = 5;
    raid10_of_4 = 6;
    raid10_of_8 = 7;
    raid5_of_3 = 8;
    raid5_of_5 = 9;
    raid5_of_8 = 10;
    raid6_of_4 = 11;
    raid6_of_6 = 12;
    raid6_of_9 = 13;
    raid5_of_32 = 14;
    raid10_of_4_without_two = 15;
    raid10_of_8_without_two = 16;
    raid0_of_3_with_blocks_of_4096 = 17;
    raid1_of_3_with_blocks_of_4096 = 18;
    raid5_of_4_with_blocks_of_4096 = 19;
    raid6_of_5_with_blocks_of_4096 = 20;
    raid10_of_4_with_blocks_of_4096 = 21;
    jbod_of_64 = 22;
    raid1_of_64 = 23;
    raid10_of_64 = 24;
    raid5_of_64 = 25;
    raid6_of_64 = 26;
}
