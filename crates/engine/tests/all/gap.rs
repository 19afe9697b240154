//! Batches of the journal that were durable, and that no drive gives any more: a start finds out,
//! and goes on only where a person accepts what may be lost. Nothing wrong is read then.

use super::journal::{ALONE, BYTES, CASES, DEGRADED, degraded, guarded, right, slow};
use crate::common;

use common::oracle::Oracle;
use common::{FORCE, Rig, duplicates, record, references};
use engine::manage::command::{ManageError, Request, SlotHealth, TaskAction, TaskKind};
use sim::SharedSimDrive;
use sim::drive::{OpKind, Stage};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// Where a batch stands: the drive, the offset there, and its bytes.
type Copies = Vec<(usize, u64, u64)>;

/// The batches that count, by number, with where they stand; and the largest tail.
fn batches(drives: &[SharedSimDrive]) -> (BTreeMap<u64, Copies>, u64) {
    let (mut found, mut tail) = (BTreeMap::<u64, Copies>::new(), 0);
    let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
    for (i, drive) in drives.iter().enumerate() {
        let area = newest.areas;
        let image = drive.peek(area.journal_start, area.journal_bytes);
        for at in (0..image.len()).step_by(4096) {
            let place = format::journal::Place { array: newest.array, at: at as u64 };
            let Some(head) = format::journal::decode(&image[at..], place) else { continue };
            let end = at + head.head_bytes + head.payload_bytes;
            if head.batch.key == newest.journal_key
                && head.matches(&image[at + head.head_bytes..end])
            {
                let copy = (i, area.journal_start + at as u64, (end - at) as u64);
                found.entry(head.batch.sequence).or_default().push(copy);
                tail = head.batch.tail.max(tail);
            }
        }
    }
    found.retain(|sequence, _| *sequence >= tail);
    (found, tail)
}

/// Makes a batch vanish: every second one can't be read, the others are garbage.
fn spoil(drives: &[SharedSimDrive], number: u64, copies: &Copies) {
    for (drive, at, bytes) in copies {
        match number % 2 {
            0 => drives[*drive].fail_range(*at, *bytes),
            _ => drives[*drive].overwrite(*at, &vec![7; *bytes as usize]),
        }
    }
}

/// An array without the case's drives that wrote small blocks one after the other, the same ones
/// again, cut off then; after `rest` of quiet.
fn written(case: usize, seed: u64, rest: Nanos) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
    written_on(case, seed, false, rest)
}

fn written_on(
    case: usize,
    seed: u64,
    cache: bool,
    rest: Nanos,
) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
    let (rig, drives, oracle) = degraded(case, seed, cache, 1);
    let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
    rig.world.block_on(CoreId(0), async move {
        for i in 0..8 {
            model.write(&volume, 1536 * (i % 3), 4096, true).await.unwrap();
        }
    });
    rig.world.run_for(rest);
    rig.world.crash();
    oracle.crashed();
    (drives, oracle)
}

/// Starts without a word are refused, nothing is written by them, and loss is accepted.
fn accepted(drives: &[SharedSimDrive], seed: u64) -> Rig {
    let before: Vec<_> = drives.iter().map(|d| d.contents()).collect();
    let started = Rig::new(seed, 1).assemble(&references(drives), ALONE);
    let refused = matches!(started, Err(ManageError::JournalGap { lane: 0, .. }));
    assert!(refused, "seed {seed}: {started:?}");
    assert!(drives.iter().zip(&before).all(|(d, was)| d.contents() == *was), "seed {seed}");
    let rig = Rig::new(seed + 1, 1);
    rig.assemble(&references(drives), FORCE).unwrap();
    rig
}

/// Reads block by block: what can't be read is listed, what can is right, and what is listed can't
/// be. How many can't.
fn nothing_wrong(rig: &Rig, oracle: &Rc<Oracle>) -> u64 {
    let listed = rig.status().unreadable;
    let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
    rig.world.block_on(CoreId(0), async move {
        let mut lost = 0;
        for at in (0..BYTES).step_by(512) {
            let inside = |r: &&engine::manage::command::UnreadableRange| {
                r.offset <= at && at < r.offset + r.bytes
            };
            let is_listed = listed.iter().any(|r| inside(&r));
            let read = model.read(&volume, at, 512).await;
            assert_eq!(read.is_err(), is_listed, "at {at}: {read:?}");
            lost += u64::from(is_listed);
        }
        lost
    })
}

/// Writes every block anew: none is lost then.
fn write_all(rig: &Rig, oracle: &Rc<Oracle>) {
    let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
    rig.world.block_on(CoreId(0), async move {
        for at in (0..BYTES).step_by(64 << 10) {
            model.write(&volume, at, 64 << 10, true).await.unwrap();
        }
    });
    assert!(rig.status().unreadable.is_empty());
}

/// Each batch below the newest, and each two of them.
#[test]
fn a_batch_that_no_drive_gives_is_found_out() {
    for (case, (_, _, failed)) in CASES.iter().enumerate() {
        let seed = 20_000 + 100 * case as u64;
        let (image, before) = written(case, seed, Nanos(0));
        let (found, tail) = batches(&image);
        let newest = *found.keys().max().unwrap();
        assert!(newest >= tail + 4, "case {case}: {tail} to {newest}");
        assert!(found.keys().copied().eq(tail..=newest), "case {case}");
        for number in tail..newest {
            let (drives, oracle) = (duplicates(&image), before.fork());
            spoil(&drives, number, &found[&number]);
            if number + 2 < newest {
                spoil(&drives, number + 1, &found[&(number + 1)]);
            }
            let rig = accepted(&drives, seed + number);
            assert!(nothing_wrong(&rig, &oracle) > 0, "case {case}, {number}");
            write_all(&rig, &oracle);
            right(rig, &oracle, &drives, failed, seed);
        }
        // The newest may have been cut off: nobody can know.
        let drives = duplicates(&image);
        spoil(&drives, newest, &found[&newest]);
        Rig::new(seed + 1, 1).assemble(&references(&drives), ALONE).unwrap();
    }
}

/// Of batches that were in place long ago, and of a start that was cut off while it carried them
/// out before one of them vanished: no older one comes back over what the vanished one had written.
#[test]
fn older_batches_do_not_come_back_with_a_gap() {
    for case in [0, 2] {
        let seed = 21_000 + 100 * case as u64;
        let (image, before) = written(case, seed, Nanos::from_millis(20_000));
        let (found, tail) = batches(&image);
        let newest = *found.keys().max().unwrap();
        for turn in 0..60 {
            let (drives, oracle) = (duplicates(&image), before.fork());
            let rig = Rig::new(seed + turn, 1);
            rig.world.power_fails_after(turn / 2);
            let list = references(&drives);
            let _ = rig.try_ask(|r| Request::Assemble(None, list, ALONE, r));
            rig.world.crash();
            let (now, _) = batches(&drives);
            if !now.contains_key(&newest) {
                break;
            }
            let number = newest - 1 - turn % (newest - tail - 1);
            spoil(&drives, number, &now[&number]);
            let rig = accepted(&drives, seed + number);
            nothing_wrong(&rig, &oracle);
            write_all(&rig, &oracle);
            right(rig, &oracle, &drives, CASES[case].2, seed);
        }
    }
}

/// A start that goes on without a batch, cut at every seventh request or so: nothing wrong is ever
/// read, however often it is cut.
#[test]
fn a_start_that_accepts_a_gap_is_cut_at_many_requests() {
    for case in [0, 2] {
        let seed = 22_000 + 100 * case as u64;
        let (image, before) = written(case, seed, Nanos(0));
        let (found, tail) = batches(&image);
        for submits in (0..).step_by(7 + case) {
            let (drives, oracle) = (duplicates(&image), before.fork());
            spoil(&drives, tail + 1, &found[&(tail + 1)]);
            let rig = Rig::new(seed + submits, 1);
            rig.world.power_fails_after(submits);
            let list = references(&drives);
            let over = rig.try_ask(|r| Request::Assemble(None, list, FORCE, r)).is_ok();
            rig.world.crash();
            let rig = Rig::new(seed + submits + 1, 2);
            let started = rig.assemble(&references(&drives), ALONE);
            let refused = matches!(started, Err(ManageError::JournalGap { .. }));
            assert!(started.is_ok() || refused && !over, "{submits}: {started:?}");
            if refused {
                rig.assemble(&references(&drives), FORCE).unwrap();
            }
            assert!(nothing_wrong(&rig, &oracle) > 0, "case {case}, {submits}");
            if submits % 3 == 0 || over {
                for slot in CASES[case].2 {
                    let fresh = common::drives(1, seed + submits, false).remove(0);
                    rig.replace(*slot, &fresh).unwrap();
                    rig.wait();
                }
                assert_eq!(rig.scrub(false).mismatches, 0, "case {case}, {submits}");
                assert!(nothing_wrong(&rig, &oracle) > 0, "case {case}, {submits}");
            }
            if over {
                assert!(submits > 20, "{submits}: there was something to make right");
                break;
            }
        }
    }
}

/// Numbers stay without a gap where drives do not take batches: what is cut off then starts, and
/// has everything.
#[test]
fn no_number_is_passed_over_when_batches_are_given_up() {
    let mut given_up = 0;
    for seed in 23_000..23_024 {
        let (rig, drives, oracle) = degraded(2, seed, false, 1);
        let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
        let second = [0, 1, 3, 4][seed as usize % 4];
        let area = record(&drives[second]).areas;
        let area = area.journal_start..area.journal_start + area.journal_bytes;
        let write = |count: u64| {
            let (volume, model) = (volume.clone(), model.clone());
            rig.world.block_on(CoreId(0), async move {
                for i in 0..count {
                    model.write(&volume, 2048 * (i % 5), 4096, true).await.unwrap();
                }
            });
        };
        write(seed % 3 + 1);
        let skip = seed / 4 % 3;
        drives[second].clear_log();
        drives[second].fail_writes(skip, 1);
        write(7);
        let writes =
            |e: &sim::drive::LogEntry| e.kind == OpKind::Write && e.stage == Stage::Submitted;
        let failed = drives[second].log().into_iter().filter(writes).nth(skip as usize);
        given_up += u64::from(area.contains(&failed.expect("it got so many").offset));
        rig.world.crash();
        drop((volume, rig));
        oracle.crashed();
        let rig = slow(seed + 50, 1);
        rig.assemble(&references(&drives), ALONE).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        right(rig, &oracle, &drives, &[2, second], seed);
    }
    assert!(given_up > 5, "{given_up} batches were given up");
}

/// A batch that one drive took and another did not stays where it is, under a number that is used
/// again: it is not carried out in place of the one that was written then.
#[test]
fn of_one_number_the_later_epoch_counts() {
    let (case, seed) = (2, 25_000);
    let (image, before) = written(case, seed, Nanos(0));
    let (found, _) = batches(&image);
    for (number, copies) in &found {
        let (from, at, bytes) = copies[0];
        let known = record(&image[from]);
        let place =
            format::journal::Place { array: known.array, at: at - known.areas.journal_start };
        let head = format::journal::decode(&image[from].peek(at, bytes), place).unwrap();
        let earlier = format::journal::Batch { epoch: head.batch.epoch - 1, ..head.batch };
        let payload = vec![9; head.payload_bytes];
        let crc = format::journal::payload_crc(0, &payload);
        let given_up = [format::journal::encode(place, &earlier, crc), payload].concat();
        let has = |i: &usize| copies.iter().any(|(drive, ..)| drive == i);
        for other in [0, 1, 3, 4].into_iter().filter(|i| !has(i)) {
            let (drives, oracle) = (duplicates(&image), before.fork());
            drives[other].overwrite(at, &given_up);
            let rig = Rig::new(seed + number, 1);
            rig.assemble(&references(&drives), ALONE).unwrap();
            oracle.verify(&rig, &rig.open_volume()[0], true);
        }
    }
}

/// Under a new key the numbers go on, and the tail with them.
#[test]
fn a_new_key_has_no_gap_before_its_first_batch() {
    for seed in 24_000..24_008 {
        let (rig, drives, oracle) = degraded(2, seed, false, 1);
        let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
        let write = || {
            let (volume, model) = (volume.clone(), model.clone());
            rig.world.block_on(CoreId(0), async move {
                for i in 0..6 {
                    model.write(&volume, 2048 * (i % 5), 4096, true).await.unwrap();
                }
            });
        };
        write();
        let key = record(&drives[0]).journal_key;
        rig.replace(2, &common::drives(1, seed + 30, false)[0]).unwrap();
        if seed % 2 == 1 {
            let pause = (TaskKind::Rebuild, TaskAction::Pause);
            rig.ask(|r| Request::Task("a".into(), pause.0, None, pause.1, r)).unwrap();
        } else {
            rig.wait();
            let key = record(&drives[0]).journal_key;
            rig.fail(3).unwrap();
            guarded(&rig, &drives, key);
        }
        write();
        assert_ne!(record(&drives[0]).journal_key, key, "seed {seed}");
        assert!(batches(&drives).0.len() > 3, "seed {seed}");
        rig.world.crash();
        drop((volume, rig));
        oracle.crashed();
        let rig = slow(seed + 50, 1);
        rig.assemble(&references(&drives), DEGRADED).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

/// Each drive that is away in turn, at once behind the writes and when all regions are clean.
fn away_and_rest() -> impl Iterator<Item = (usize, Nanos)> {
    let rests = [Nanos(0), Nanos::from_millis(20_000)];
    [0, 1, 3, 4].into_iter().flat_map(move |away| rests.map(|rest| (away, rest)))
}

/// A drive that was away when the loss was accepted counted as zeros for redundancy: when it is
/// back it is filled, also in regions that were clean long before, where nothing is lost.
#[test]
fn a_drive_that_was_away_as_loss_was_accepted_is_filled_whole() {
    let case = 2;
    for (away, rest) in away_and_rest() {
        let seed = 23_000 + away as u64;
        let (drives, oracle) = written(case, seed, rest);
        let (found, tail) = batches(&drives);
        spoil(&drives, tail + 1, &found[&(tail + 1)]);
        let mut left = references(&drives);
        left.remove(away);
        let rig = Rig::new(seed + 1, 1);
        rig.assemble(&left, FORCE).unwrap();
        rig.put_back(away, &drives[away]);
        rig.world.run_for(Nanos::from_millis(1));
        rig.wait();
        assert_eq!(nothing_wrong(&rig, &oracle) > 0, rest == Nanos(0), "without {away}");
        // So little at once that redundancy is changed, not made anew.
        let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
        rig.world.block_on(CoreId(0), async move {
            for at in (0..BYTES).step_by(4096) {
                model.write(&volume, at, 4096, true).await.unwrap();
            }
        });
        rig.fail((away + 1) % 2).unwrap();
        assert_eq!(nothing_wrong(&rig, &oracle), 0, "without {away}");
    }
}

/// So it is with one that has redundancy there in its cache only, and fails the flush.
#[test]
fn a_drive_that_fails_the_flush_as_loss_was_accepted_is_filled_whole() {
    let case = 2;
    for (away, rest) in away_and_rest() {
        let seed = 24_000 + away as u64;
        let (drives, oracle) = written_on(case, seed, true, rest);
        let (found, tail) = batches(&drives);
        spoil(&drives, tail + 1, &found[&(tail + 1)]);
        drives[away].fail_flushes(0, u64::MAX);
        let rig = Rig::new(seed + 1, 1);
        let status = rig.assemble(&references(&drives), FORCE).unwrap();
        assert_eq!(status.slots[away].health, SlotHealth::Failed);
        drives[away].clear_faults();
        drives[away].power_cut(seed);
        rig.put_back(away, &drives[away]);
        rig.world.run_for(Nanos::from_millis(1));
        rig.wait();
        // Redundancy is changed, and made anew only where what it alone gives is written.
        let layout = record(&drives[0]).layout().unwrap();
        let there = |at: &u64| {
            let place = layout.locate(*at);
            layout.slot(place.group, place.stripe, place.strip).index() != CASES[case].2[0]
        };
        let places: Vec<u64> = (0..BYTES).step_by(4096).filter(there).collect();
        let (volume, model, count) = (rig.open_volume()[0].clone(), oracle.clone(), places.len());
        rig.world.block_on(CoreId(0), async move {
            for at in places {
                model.write(&volume, at, 4096, true).await.unwrap();
            }
        });
        rig.fail((away + 1) % 2).unwrap();
        let left = if rest == Nanos(0) { BYTES / 512 - count as u64 * 8 } else { 0 };
        assert_eq!(nothing_wrong(&rig, &oracle), left, "without {away}");
    }
}
