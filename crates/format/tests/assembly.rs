//! Assembly: every way in which drives can be wrong, stale, foreign, cloned, swapped,
//! half-updated, missing or split.

mod common;

use common::{plain, uuid};
use layout::Level;
use palisade_format::{
    ArrayRecord, AssembleError, AssembleOptions, Assembly, FormatError, Found, SlotState,
    StaleReason, assemble,
};
use units::{GroupNo, MIB, Slot};

const NO: AssembleOptions = AssembleOptions { start_degraded: false, accept_loss: false };
const DEGRADED: AssembleOptions = AssembleOptions { start_degraded: true, accept_loss: false };
const LOSS: AssembleOptions = AssembleOptions { start_degraded: false, accept_loss: true };

/// A drive as it lies on the shelf.
fn drive(record: &ArrayRecord, slot: u16) -> Found {
    let record = Ok(record.for_slot(Slot(slot)));
    Found { path: format!("/dev/d{slot}"), record, bytes: 12 * MIB, block_bytes: 512 }
}

fn shelf(record: &ArrayRecord) -> Vec<Found> {
    (0..record.slots.len() as u16).map(|slot| drive(record, slot)).collect()
}

/// The record after `slot` failed in epoch `id`.
fn failed(record: &ArrayRecord, slot: usize, id: u64) -> ArrayRecord {
    let mut next = record.clone();
    next.slots[slot].state = SlotState::Failed;
    next.sequence += 1;
    next.next_epoch(id);
    next
}

fn bumped(record: &ArrayRecord, id: u64) -> ArrayRecord {
    let mut next = record.clone();
    next.sequence += 1;
    next.next_epoch(id);
    next
}

/// Assembles in this order and in the other; both must say the same.
fn both_ways(found: &[Found], options: AssembleOptions) -> Result<Assembly, AssembleError> {
    let forward = assemble(found, options);
    let reversed: Vec<Found> = found.iter().rev().cloned().collect();
    let backward = assemble(&reversed, options);
    match (&forward, &backward) {
        (Ok(a), Ok(b)) => {
            assert_eq!(a.record, b.record);
            let paths = |assembly: &Assembly, found: &[Found]| -> Vec<Option<String>> {
                assembly.slots.iter().map(|s| s.map(|at| found[at].path.clone())).collect()
            };
            assert_eq!(paths(a, found), paths(b, &reversed));
        }
        (Err(a), Err(b)) => {
            assert_eq!(core::mem::discriminant(a), core::mem::discriminant(b));
            assert!(!a.to_string().is_empty() && !a.advice().is_empty());
        }
        _ => panic!("the order of drives matters: {forward:?}, {backward:?}"),
    }
    forward
}

#[test]
fn a_whole_array_assembles_in_any_order() {
    for (level, drives) in common::SHAPES {
        let record = plain(level, drives);
        let assembly = both_ways(&shelf(&record), NO).unwrap();
        assert_eq!(assembly.record, record);
        assert!(assembly.slots.iter().enumerate().all(|(n, slot)| *slot == Some(n)));
        assert!(assembly.stale.is_empty() && assembly.missing.is_empty());
        assert!(assembly.resync_needed.is_empty());
        let begun = assembly.begin(5);
        assert_eq!((begun.epoch.counter, begun.epoch.previous), (2, record.epoch.id));
        assert_eq!(begun.check(), Ok(()));
    }
}

#[test]
fn a_missing_drive_starts_by_itself_only_in_a_wide_group() {
    let starts = |level, drives| {
        let mut found = shelf(&plain(level, drives));
        found.remove(1);
        both_ways(&found, NO)
    };
    let wide = starts(Level::Raid5, 4).unwrap();
    assert_eq!(wide.missing.len(), 1);
    let begun = wide.begin(9);
    assert_eq!(begun.slots[1].state, SlotState::Failed);
    assert_eq!(begun.slots[1].last.counter, 1);
    assert!(begun.started_degraded && begun.check().is_ok());
    assert!(starts(Level::Raid6, 5).is_ok());
    for (level, drives) in [(Level::Raid6, 4), (Level::Raid1, 2), (Level::Raid10, 6)] {
        let refused = starts(level, drives).unwrap_err();
        assert!(matches!(refused, AssembleError::NeedsStartDegraded { .. }), "{refused}");
        assert!(refused.to_string().contains("S0001"), "{refused}");
        let mut found = shelf(&plain(level, drives));
        found.remove(1);
        assert!(both_ways(&found, DEGRADED).is_ok());
    }
    for (level, drives) in [(Level::Raid0, 2), (Level::Jbod, 3)] {
        let mut found = shelf(&plain(level, drives));
        found.remove(1);
        let refused = both_ways(&found, DEGRADED).unwrap_err();
        assert!(matches!(refused, AssembleError::TooManyMissing { .. }), "{refused}");
    }
}

#[test]
fn a_drive_recorded_as_failed_is_out_and_needs_no_consent() {
    let old = plain(Level::Raid1, 2);
    let new = failed(&old, 1, 22);
    let assembly = both_ways(&[drive(&new, 0), drive(&old, 1)], NO).unwrap();
    assert_eq!(assembly.slots, [Some(0), None]);
    assert_eq!(assembly.stale, [(1, StaleReason::Failed)]);
    let later = bumped(&bumped(&new, 33), 44);
    let assembly = both_ways(&[drive(&later, 0), drive(&old, 1)], NO).unwrap();
    assert_eq!(assembly.stale, [(1, StaleReason::Failed)]);
}

#[test]
fn half_updated_drives_all_take_part() {
    let old = plain(Level::Raid5, 4);
    let new = bumped(&old, 22);
    for reached in 1..4 {
        let found: Vec<Found> =
            (0..4).map(|n| drive(if n < reached { &new } else { &old }, n)).collect();
        let assembly = both_ways(&found, NO).unwrap();
        assert_eq!(assembly.record.epoch, new.epoch);
        assert!(assembly.slots.iter().all(Option::is_some));
    }
    // Within an epoch the larger sequence number counts.
    let mut update = new.clone();
    update.sequence += 1;
    update.groups[0].unclean = true;
    let found = [drive(&new, 0), drive(&new, 1), drive(&update, 2), drive(&new, 3)];
    assert_eq!(both_ways(&found, NO).unwrap().resync_needed, [GroupNo(0)]);
}

#[test]
fn a_rolled_back_drive_is_stale() {
    let old = plain(Level::Raid5, 4);
    let new = bumped(&bumped(&old, 22), 33);
    let mut found = shelf(&new);
    found[2] = drive(&old, 2);
    let assembly = both_ways(&found, NO).unwrap();
    assert_eq!(assembly.stale, [(2, StaleReason::Stale { epoch: 1, newest: 3 })]);
    assert_eq!(assembly.missing[0].slot, Slot(2));
    let two = failed(&bumped(&plain(Level::Raid1, 3), 2), 0, 3);
    let found = [drive(&two, 1), drive(&plain(Level::Raid1, 3), 2)];
    assert!(matches!(both_ways(&found, NO), Err(AssembleError::NeedsStartDegraded { .. })));
}

/// The next epoch, without the drive of `slot`, which the array can't do without.
fn without(record: &ArrayRecord, slot: u16, id: u64) -> ArrayRecord {
    let mut next = record.clone();
    next.sequence += 1;
    next.next_epoch_without(id, |left| left == Slot(slot));
    next
}

#[test]
fn a_drive_that_was_left_behind_counts_again() {
    let base = bumped(&plain(Level::Raid5, 4), 22);
    let mut new = base.clone();
    for more in 0..4 {
        new = without(&new, 2, 100 + more);
        assert_eq!(new.check(), Ok(()));
        // The record of its last epoch may not have reached it.
        for own in [&base, &plain(Level::Raid5, 4)] {
            let mut found = shelf(&new);
            found[2] = drive(own, 2);
            let assembly = both_ways(&found, NO).unwrap();
            assert!(assembly.slots.iter().all(Option::is_some), "{more}");
            let begun = assembly.begin(7);
            assert_eq!((begun.slots[2].last, begun.check()), (begun.epoch.mark(), Ok(())));
        }
    }
    // A start that was cut short had given it the newest record.
    assert!(both_ways(&shelf(&new), NO).unwrap().slots.iter().all(Option::is_some));
    // While it is away it is missing like any other.
    let mut found = shelf(&new);
    found.remove(2);
    let assembly = both_ways(&found, NO).unwrap();
    assert_eq!(assembly.missing[0].slot, Slot(2));
    let begun = assembly.begin(7);
    assert_eq!((begun.slots[2].last, begun.check()), (base.epoch.mark(), Ok(())));
    // Two epochs behind its last it is stale, whatever the newest.
    let later = without(&bumped(&bumped(&base, 5), 6), 2, 7);
    let mut found = shelf(&later);
    found[2] = drive(&base, 2);
    let stale = both_ways(&found, NO).unwrap().stale;
    assert_eq!(stale, [(2, StaleReason::Stale { epoch: 2, newest: 5 })]);
}

/// A drive that is being put back is left out, and what it alone says is not the array's record.
#[test]
fn a_drive_that_gave_itself_up_is_left_out() {
    let base = bumped(&plain(Level::Raid6, 4), 22);
    let mut own = base.clone();
    own.slots[1].state = SlotState::Failed;
    own.sequence += 40;
    assert_eq!(own.for_slot(Slot(1)).check(), Ok(()));
    assert!(own.for_slot(Slot(2)).check().is_err(), "of no other drive");
    let mut found = shelf(&base);
    found[1] = drive(&own, 1);
    let assembly = both_ways(&found, DEGRADED).unwrap();
    assert_eq!(assembly.stale, [(1, StaleReason::GivenUp)]);
    assert_eq!((assembly.record.sequence, assembly.missing[0].slot), (base.sequence, Slot(1)));
    assert_eq!(assembly.begin(7).check(), Ok(()));
    // Alone it says so of itself, and starts nothing.
    assert!(both_ways(&found[1..2], LOSS).is_err());
}

#[test]
fn a_drive_that_was_left_behind_and_went_on_is_refused() {
    let base = bumped(&plain(Level::Raid10, 4), 22);
    let new = without(&without(&without(&base, 3, 100), 3, 101), 3, 102);
    for (own, what) in [
        (failed(&base, 2, 200), "a later epoch"),
        (bumped(&bumped(&bumped(&bumped(&base, 1), 2), 3), 4), "later than all"),
        (bumped(&plain(Level::Raid10, 4), 23), "another history of its last epoch"),
    ] {
        let mut found = shelf(&new);
        found[3] = drive(&own, 3);
        let refused = both_ways(&found, DEGRADED).unwrap_err();
        assert!(matches!(refused, AssembleError::Diverged { .. }), "{what}: {refused}");
    }
}

#[test]
fn histories_that_diverged_are_refused_by_name() {
    let base = plain(Level::Raid1, 2);
    let left = failed(&base, 1, 100);
    let mut right = failed(&base, 0, 200);
    // Both halves went on: once each, and one of them several times.
    for more in 0..4 {
        let refused = both_ways(&[drive(&left, 0), drive(&right, 1)], DEGRADED).unwrap_err();
        assert!(matches!(refused, AssembleError::Diverged { .. }), "{more}: {refused}");
        let text = refused.to_string();
        assert!(text.contains("/dev/d0") && text.contains("/dev/d1"), "{text}");
        right = bumped(&right, 300 + more);
    }
    // The left half went on for longer than the right one.
    let left = bumped(&bumped(&left, 101), 102);
    let right = bumped(&failed(&base, 0, 200), 201);
    let refused = both_ways(&[drive(&left, 0), drive(&right, 1)], DEGRADED).unwrap_err();
    assert!(matches!(refused, AssembleError::Diverged { .. }), "{refused}");
    // One epoch apart, but not its predecessor.
    let other = bumped(&bumped(&base, 7), 8);
    let mut found = shelf(&other);
    found[1] = drive(&bumped(&base, 9), 1);
    assert!(matches!(both_ways(&found, NO), Err(AssembleError::Diverged { .. })));
}

#[test]
fn split_halves_never_both_start() {
    for (level, drives) in [
        (Level::Raid5, 3),
        (Level::Raid6, 4),
        (Level::Raid6, 6),
        (Level::Raid1, 4),
        (Level::Raid10, 4),
    ] {
        let whole = shelf(&plain(level, drives));
        for mask in 0u32..1 << drives {
            let half = |side: bool| -> Vec<Found> {
                let inside = |n: usize| (mask >> n & 1 == 1) == side;
                let drives = whole.iter().enumerate().filter(|(n, _)| inside(*n));
                drives.map(|(_, found)| found.clone()).collect()
            };
            let starts = |side| assemble(&half(side), NO).is_ok();
            assert!(!(starts(true) && starts(false)), "{level} {drives} {mask:b}");
        }
    }
}

#[test]
fn cloned_swapped_and_foreign_drives_are_refused() {
    let record = plain(Level::Raid5, 4);
    let mut found = shelf(&record);
    found.push(Found { path: "/dev/copy".into(), ..drive(&record, 2) });
    let refused = both_ways(&found, NO).unwrap_err();
    assert!(matches!(refused, AssembleError::Cloned { .. }));
    assert!(refused.to_string().contains("/dev/copy"), "{refused}");

    // Cables may be swapped as anybody likes: slots are in the records.
    let mut found = shelf(&record);
    found.swap(0, 3);
    assert_eq!(both_ways(&found, NO).unwrap().slots, [Some(3), Some(1), Some(2), Some(0)]);
    // A record that names another slot than the newest one is not ours.
    let mut wrong = record.clone();
    let mut other = record.clone();
    wrong.slots.swap(0, 1);
    other.sequence += 1;
    let found = [drive(&wrong, 0), drive(&other, 0), drive(&other, 2), drive(&other, 3)];
    let refused = both_ways(&found, NO).unwrap_err();
    assert!(matches!(refused, AssembleError::Swapped { .. }), "{refused}");

    let mut stranger = record.clone();
    stranger.array = uuid(0xa1);
    stranger.slots[3].drive = uuid(0xd3);
    let mut found = shelf(&record);
    found[3] = drive(&stranger, 3);
    assert!(matches!(both_ways(&found, NO), Err(AssembleError::Foreign { .. })));
}

#[test]
fn wrong_drives_are_left_out_or_refused() {
    let record = plain(Level::Raid5, 4);
    let mut found = shelf(&record);
    found[1].record = Err(FormatError::RecordDamaged);
    let assembly = both_ways(&found, NO).unwrap();
    assert_eq!(assembly.stale, [(1, StaleReason::NoRecord(FormatError::RecordDamaged))]);

    let mut found = shelf(&record);
    found[1].bytes -= 1;
    let small = both_ways(&found, NO).unwrap();
    assert!(matches!(small.stale[..], [(1, StaleReason::TooSmall { .. })]));

    let mut found = shelf(&record);
    found[1].block_bytes = 2 * record.block_bytes;
    let refused = both_ways(&found, DEGRADED).unwrap_err();
    assert!(matches!(refused, AssembleError::BlockSize { .. }), "{refused}");

    let mut replaced = record.clone();
    replaced.slots[1].drive = uuid(0xd1);
    replaced.sequence += 1;
    replaced.next_epoch(22);
    let mut found = shelf(&replaced);
    found.push(Found { path: "/dev/old".into(), ..drive(&record, 1) });
    assert_eq!(both_ways(&found, NO).unwrap().stale, [(4, StaleReason::Replaced)]);

    let mut other = record.clone();
    other.block_bytes = 512;
    let mut found = shelf(&record);
    found[2] = drive(&other, 2);
    assert!(matches!(both_ways(&found, NO), Err(AssembleError::Inconsistent { .. })));
    let mut later = record.clone();
    later.read_only = true;
    let refused = both_ways(&shelf(&later), NO).unwrap_err();
    assert!(matches!(refused, AssembleError::ReadOnly { .. }));
    let mut early = record.clone();
    early.zeroed = false;
    let refused = both_ways(&shelf(&early), NO).unwrap_err();
    assert!(matches!(refused, AssembleError::CreationInterrupted { .. }));
    assert_eq!(both_ways(&[], NO), Err(AssembleError::NoRecord));
}

#[test]
fn unclean_and_degraded_needs_consent_where_parity_is_needed() {
    for (level, risky) in [(Level::Raid5, true), (Level::Raid6, true), (Level::Raid1, false)] {
        let mut record = failed(&plain(level, 6), 2, 22);
        record.groups[0].unclean = true;
        let mut found = shelf(&record);
        found.remove(2);
        let result = both_ways(&found, NO);
        assert_eq!(matches!(result, Err(AssembleError::NeedsAcceptLoss { .. })), risky);
        let assembly = both_ways(&found, LOSS).unwrap();
        assert_eq!(assembly.resync_needed, [GroupNo(0)]);
        assert!(assembly.begin(1).groups[0].unclean, "it stays owed");
    }
}

#[test]
fn a_rebuilding_drive_is_no_redundancy() {
    let mut record = failed(&plain(Level::Raid5, 4), 1, 22);
    record.slots[1].state = SlotState::Rebuilding { border: 5 };
    record.next_epoch(33);
    assert!(both_ways(&shelf(&record), NO).unwrap().slots[1].is_some());
    let mut found = shelf(&record);
    found.remove(3);
    let refused = both_ways(&found, DEGRADED).unwrap_err();
    assert!(matches!(refused, AssembleError::TooManyMissing { .. }), "{refused}");
}

#[test]
fn an_accepted_loss_is_made_good_when_the_group_is_whole() {
    let mut record = failed(&plain(Level::Raid6, 5), 1, 22);
    let layout = record.layout().unwrap();
    record.groups[0].loss_accepted = true;
    let mut found = shelf(&record);
    found.remove(1);
    assert!(both_ways(&found, NO).unwrap().resync_needed.is_empty(), "nobody is asked twice");
    record.slots[1].state = SlotState::Rebuilding { border: 5 };
    record.next_epoch(33);
    record.settle_losses(&layout);
    assert!(record.groups[0].loss_accepted);
    record.slots[1].state = SlotState::InSync;
    record.settle_losses(&layout);
    assert_eq!((record.groups[0].loss_accepted, record.groups[0].unclean), (false, true));
}

/// A drive that lost its last record slots, of which this is the newest record that is there.
fn doubtful(record: &ArrayRecord, slot: u16) -> Found {
    let sound = drive(record, slot);
    let record = Box::new(record.for_slot(Slot(slot)));
    Found { record: Err(FormatError::TailMissing { record, slot: 1 }), ..sound }
}

fn needs_first_records(outcome: Result<Assembly, AssembleError>) -> Option<Box<AssembleError>> {
    match outcome {
        Err(AssembleError::TailMissing { instead, .. }) => instead,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_redundancy_first_records_take_part_where_others_are_newer_or_by_a_persons_word() {
    for level in [Level::Raid0, Level::Jbod] {
        let first = plain(level, 3);
        let later = bumped(&first, 7);
        let mut found = shelf(&later);
        found[1] = doubtful(&first, 1);
        let assembly = both_ways(&found, NO).unwrap();
        assert_eq!((assembly.slots[1], &assembly.record), (Some(1), &later));
        for (others, own) in [(&first, &first), (&later, &later), (&first, &later)] {
            let mut found = shelf(others);
            found[1] = doubtful(own, 1);
            for options in [NO, DEGRADED] {
                assert_eq!(needs_first_records(both_ways(&found, options)), None);
            }
            let assembly = both_ways(&found, LOSS).unwrap();
            assert_eq!((assembly.slots[1], &assembly.record.epoch), (Some(1), &own.epoch));
            (0..3).for_each(|slot| found[usize::from(slot)] = doubtful(own, slot));
            assert_eq!(needs_first_records(both_ways(&found, DEGRADED)), None);
            assert!(both_ways(&found, LOSS).is_ok());
            found.remove(2);
            let lacking = both_ways(&found, LOSS).unwrap_err();
            assert!(matches!(lacking, AssembleError::TooManyMissing { .. }), "{lacking}");
        }
        // It has a larger epoch, or another history: the sequence number alone says nothing.
        let mut found = shelf(&ArrayRecord { sequence: later.sequence + 1, ..first.clone() });
        found[1] = doubtful(&later, 1);
        assert_eq!(needs_first_records(both_ways(&found, NO)), None);
        found = shelf(&bumped(&bumped(&first, 8), 9));
        found[1] = doubtful(&later, 1);
        let diverged = both_ways(&found, LOSS).unwrap_err();
        assert!(matches!(diverged, AssembleError::Diverged { .. }), "{diverged}");
    }
}

#[test]
fn with_redundancy_first_records_never_take_part() {
    for (level, drives) in [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 4)] {
        let first = plain(level, drives);
        let later = bumped(&first, 7);
        let both = AssembleOptions { start_degraded: true, accept_loss: true };
        for own in [&first, &later] {
            let mut found = shelf(&later);
            found[1] = doubtful(own, 1);
            let assembly = both_ways(&found, both).unwrap();
            assert_eq!((assembly.slots[1], assembly.missing.len()), (None, 1));
            assert!(matches!(assembly.stale[0].1, StaleReason::NoRecord(_)));
            if level != Level::Raid5 {
                let instead = needs_first_records(both_ways(&found, LOSS));
                let degraded =
                    matches!(*instead.unwrap(), AssembleError::NeedsStartDegraded { .. });
                assert!(degraded);
            }
            // Others don't stand in for it by what it says that they don't know.
            found = shelf(own);
            found[1] = doubtful(&failed(own, 0, 8), 1);
            let instead = needs_first_records(both_ways(&found, both));
            assert!(matches!(*instead.unwrap(), AssembleError::Diverged { .. }));
            // They know more: it was put back since.
            let mut back = failed(own, 0, 8);
            found[1] = doubtful(&back, 1);
            back.slots[0].state = SlotState::InSync;
            back = bumped(&bumped(&back, 10), 11);
            (0..drives).filter(|slot| *slot != 1).for_each(|slot| {
                found[usize::from(slot)] = drive(&back, slot);
            });
            assert!(both_ways(&found, both).is_ok());
            (0..drives).for_each(|slot| found[usize::from(slot)] = doubtful(own, slot));
            let instead = needs_first_records(both_ways(&found, both));
            assert_eq!(*instead.unwrap(), AssembleError::NoRecord);
        }
    }
}
