//! Every level × width × healthy, degraded, rebuilding × aligned, unaligned × 1 and 2 cores,
//! against a naive model, on the deterministic runtime. A failure names its seed.

mod common;

use common::{Load, Model, Rig, drives, reference};
use engine::manage::command::{ArrayState, Request};
use layout::Level;
use units::{MIB, Slot};

/// One place in the matrix.
struct Case {
    level: Level,
    width: usize,
    /// How many drives are lost on the way, at most what the level survives.
    lose: usize,
    strip: u32,
}

const CASES: &[Case] = &[
    Case { level: Level::Jbod, width: 2, lose: 0, strip: 64 << 10 },
    Case { level: Level::Jbod, width: 5, lose: 0, strip: 4 << 10 },
    Case { level: Level::Raid0, width: 2, lose: 0, strip: 64 << 10 },
    Case { level: Level::Raid0, width: 7, lose: 0, strip: 4 << 10 },
    Case { level: Level::Raid1, width: 2, lose: 1, strip: 64 << 10 },
    Case { level: Level::Raid1, width: 4, lose: 3, strip: 16 << 10 },
    Case { level: Level::Raid10, width: 4, lose: 1, strip: 64 << 10 },
    Case { level: Level::Raid10, width: 8, lose: 1, strip: 4 << 10 },
    Case { level: Level::Raid5, width: 3, lose: 1, strip: 64 << 10 },
    Case { level: Level::Raid5, width: 5, lose: 1, strip: 4 << 10 },
    Case { level: Level::Raid5, width: 8, lose: 1, strip: 1 << 20 },
    Case { level: Level::Raid6, width: 4, lose: 2, strip: 64 << 10 },
    Case { level: Level::Raid6, width: 6, lose: 2, strip: 16 << 10 },
    Case { level: Level::Raid6, width: 9, lose: 2, strip: 256 << 10 },
    Case { level: Level::Raid5, width: 32, lose: 1, strip: 4 << 10 },
];

/// Seeds that once failed, run before the others.
const SEEDS: &[u64] = &[];

fn load(aligned: bool) -> Load {
    Load {
        tasks: 6,
        operations: 40,
        blocks_most: if aligned { 512 } else { 400 },
        read_percent: 40,
        align_blocks: if aligned { 128 } else { 1 },
    }
}

fn run(case: &Case, seed: u64, cores: u16, aligned: bool) {
    let rig = Rig::new(seed, cores);
    let machine = drives(case.width + case.lose, seed, seed % 2 == 0);
    let made = rig.create(case.level, &machine[..case.width], case.strip).unwrap();
    let bytes = made.size_bytes.min(6 * MIB) - 8 * 512;
    let volumes = rig.volume(bytes);
    let model = Model::new(bytes);
    // Healthy.
    model.start(&rig, &volumes, load(aligned), seed);
    model.finish(&rig);
    model.verify(&rig, &volumes[0]);
    for lost in 0..case.lose {
        // Degraded: the drive goes while requests are under way.
        model.start(&rig, &volumes, load(aligned), seed + 1);
        rig.world.run_for(units::Nanos::from_micros(200));
        let slot = (seed as usize + lost) % case.width;
        machine[slot].vanish();
        model.finish(&rig);
        model.verify(&rig, &volumes[0]);
    }
    for lost in 0..case.lose {
        // Rebuilding: the replacement fills while requests go on.
        let slot = (seed as usize + lost) % case.width;
        let _ = rig.ask(|r| Request::Fail("a".into(), format!("slot:{slot}"), r)).unwrap();
        let spare = reference(&machine[case.width + lost], case.width + lost);
        rig.ask(|r| Request::Replace("a".into(), Slot(slot as u16), spare, r)).unwrap();
        model.start(&rig, &volumes, load(aligned), seed + 2);
        model.finish(&rig);
    }
    rig.wait();
    let status = rig.status();
    assert_eq!(status.state, ArrayState::Optimal, "seed {seed}");
    model.verify(&rig, &volumes[0]);
    if !matches!(case.level, Level::Jbod | Level::Raid0) {
        let found = rig.scrub(false);
        assert_eq!(found.mismatches, 0, "seed {seed}");
        assert!(found.checked_bytes >= status.size_bytes);
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
}
