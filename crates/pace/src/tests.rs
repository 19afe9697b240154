//! Drives in virtual time, against what their models say and what the papers measured.

use crate::bound::{Drives, Group, State, Work};
use crate::drive::{DriveState, Op};
use crate::model::{MODELS, by_name};
use crate::spec::Steady;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// Requests a second of drives that each have `load.depth` under way for ever; `order` says where
/// the request of this number goes.
fn closed_loop(drives: &[Arc<DriveState>], load: Steady, order: impl Fn(u64) -> u64) -> f64 {
    let mut ends = BinaryHeap::new();
    let mut number = 0;
    let mut next = |drive: usize, now: Nanos, ends: &mut BinaryHeap<_>| {
        number += 1;
        // Reads and writes well mixed: the golden ratio's multiples are.
        let part = (number as f64 * 0.618_033_988_749_895).fract();
        let op = if part < load.reads { Op::Read } else { Op::Write };
        let due = drives[drive].admit(now, op, order(number), load.bytes);
        ends.push(Reverse((due, drive)));
    };
    for drive in 0..drives.len() {
        (0..load.depth).for_each(|_| next(drive, Nanos(0), &mut ends));
    }
    let [warm, end] = [SECOND / 50, SECOND / 10];
    let mut done = 0;
    while let Some(Reverse((now, drive))) = ends.pop() {
        if now.0 > end {
            break;
        }
        done += u64::from(now.0 > warm);
        next(drive, now, &mut ends);
    }
    done as f64 * SECOND as f64 / (end - warm) as f64
}

fn at_random(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 << 20
}

fn is_near(value: f64, wanted: f64, off: f64, what: &str) {
    assert!((value / wanted - 1.0).abs() <= off, "{what}: {value}, not {wanted}");
}

#[test]
fn a_shelf_gives_what_the_paper_measured() {
    let model = by_name("sn840").expect("is there");
    let shelf = |reads, bytes| {
        let load = Steady { reads, bytes, depth: 64 };
        closed_loop(&DriveState::many(model, 1.0, 48), load, at_random)
    };
    // W, Figures 8 and 9.
    for (reads, mega) in [(1.0, 15.3), (0.7, 12.0), (0.0, 6.26)] {
        is_near(shelf(reads, 4096) / 1e6, mega, 0.03, "MIOPS");
    }
    for (reads, giga) in [(1.0, 71.5), (0.0, 39.6)] {
        is_near(shelf(reads, 128 << 10) * 131_072.0 / 1e9, giga, 0.03, "GB/s");
    }
}

#[test]
fn a_drive_gives_what_its_model_says() {
    for model in &MODELS {
        for slower in [1.0, 4.0] {
            let check = |reads, bytes, depth| {
                let load = Steady { reads, bytes, depth };
                let drive = DriveState::many(model, slower, 1);
                let rate = closed_loop(&drive, load, at_random) * slower;
                is_near(rate, model.rate(load), 0.02, &format!("{} {load:?}", model.name));
            };
            for depth in [1, 64] {
                [1.0, 0.0].iter().for_each(|reads| check(*reads, 4096, depth));
            }
            if model.overlap == crate::model::Overlap::Adds {
                [1, 64].iter().for_each(|depth| check(0.7, 4096, *depth));
            }
            [1.0, 0.0].iter().for_each(|reads| check(*reads, 128 << 10, 8));
        }
    }
}

/// X, Table 2: what is left of a drive beside the host's reads.
#[test]
fn reads_and_writes_of_a_quadratic_drive_overlap() {
    let model = by_name("d5-p5336").expect("is there");
    let mixed = |reads| {
        let load = Steady { reads, bytes: 128 << 10, depth: 64 };
        let bytes = closed_loop(&DriveState::many(model, 1.0, 1), load, |n| n << 17) * 131_072.0;
        (bytes * reads / 7.0e9, bytes * (1.0 - reads) / 3.3e9)
    };
    for reads in [0.2, 0.5, 0.68, 0.9] {
        let (r, w) = mixed(reads);
        is_near(r * r + w * w, 1.0, 0.03, "the squares of both shares");
        assert!(r + w > 1.05, "{r} and {w} do not overlap");
    }
}

#[test]
fn writes_fill_whole_units() {
    let model = by_name("d5-p5336").expect("is there");
    let drive = &DriveState::many(model, 1.0, 1)[0];
    let mut written = 0;
    let mut write = |offset, bytes| {
        drive.admit(Nanos(0), Op::Write, offset, bytes);
        let more = drive.nand_bytes() - written;
        written += more;
        more
    };
    assert_eq!(write(0, 4096), 16384);
    assert_eq!(write(4096, 4096), 0, "goes on in the unit that was filled");
    assert_eq!(write(8192, 16384), 16384);
    assert_eq!(write(0, 4096), 16384, "begins anew");
    assert_eq!(write(12288, 8192), 32768, "a part of two");
    assert_eq!(write(65536, 131_072), 131_072);
    drive.admit(Nanos(0), Op::Read, 0, 4096);
    assert_eq!(drive.nand_bytes(), written);
}

/// The notes of the papers' own figures: mixed .514 and degraded reads .56 of the baseline.
#[test]
fn bounds_are_what_counting_by_hand_gives() {
    let model = by_name("sn840").expect("is there");
    let drives = Drives { model, slower: 1.0, count: 8 };
    let group = Group { data: 7, parities: 1 };
    let random = |reads| Work::Random { reads, bytes: 4096 };
    let of_baseline = |state, work| drives.bound(group, state, work) / drives.baseline(work);
    for (state, work, wanted) in [
        (State::Nominal, random(1.0), 1.0),
        (State::Nominal, random(0.7), 0.516),
        (State::Nominal, random(0.0), 0.380),
        (State::Nominal, Work::SequentialRead(65536), 1.0),
        (State::Nominal, Work::SequentialWrite(65536), 0.875),
        (State::DeviceDown, random(1.0), 0.571),
        (State::DeviceDown, random(0.7), 0.352),
        (State::DeviceDown, random(0.0), 0.289),
    ] {
        is_near(of_baseline(state, work), wanted, 0.003, &format!("{state:?} {work:?}"));
    }
    let down = group.demand(State::DeviceDown, random(0.0));
    assert_eq!((down.reads, down.writes, down.journal), (2.25, 1.75, 0.875));
    let mirror = Group { data: 1, parities: 1 }.demand(State::Nominal, random(0.0));
    assert_eq!((mirror.reads, mirror.writes), (0.0, 2.0));
    let plain = Group { data: 4, parities: 0 }.demand(State::Nominal, random(0.0));
    assert_eq!((plain.reads, plain.writes), (0.0, 1.0));
    let narrow = Group { data: 2, parities: 2 }.demand(State::Nominal, random(0.0));
    assert_eq!((narrow.reads, narrow.writes), (1.0, 3.0), "the other strip is cheaper");
}

#[test]
fn a_model_that_is_off_is_seen() {
    let model = by_name("sn840").expect("is there");
    let load = Steady { reads: 0.0, bytes: 4096, depth: 64 };
    let rate = closed_loop(&DriveState::many(model, 1.05, 1), load, at_random);
    assert!((rate / model.rate(load) - 1.0).abs() > 0.03);
}

#[test]
fn all_numbers_have_a_source() {
    for model in &MODELS {
        assert!(by_name(model.name).is_some_and(|found| found.name == model.name));
        let lines = model.lines();
        assert!(lines.len() > 8);
        assert!(lines.iter().flatten().all(|text| !text.is_empty()), "{lines:?}");
    }
    assert!(by_name("sn84").is_none());
}
