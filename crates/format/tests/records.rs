//! Records as bytes: round trips, damage, hostile bytes, record slots, the document's constants.

mod common;

use common::{
    SHAPES, eventful, plain, seal, troubled, uuid, with_fc, with_iscsi, with_local, with_nvme,
    with_shares,
};
use layout::Level;
use palisade_format::{
    ArrayRecord, FormatError, GroupRecord, LostRange, LostTail, SlotState, decode, encode, limits,
    newest, next_slot, slot_offsets,
};
use proptest::prelude::*;
use units::{MIB, Slot};

#[test]
fn records_round_trip() {
    for (level, drives) in SHAPES {
        let mut accepted = eventful(level, drives);
        accepted.groups[0].loss_accepted = true;
        let records = [plain(level, drives), eventful(level, drives), accepted];
        let with_lost = [troubled(records[1].clone()), troubled(records[0].clone())];
        let served = [with_nvme(records[1].clone()), with_nvme(records[2].clone())];
        let local = [with_local(records[1].clone()), with_local(served[0].clone())];
        let iscsi = [with_iscsi(records[1].clone()), with_iscsi(local[1].clone())];
        let files = [with_shares(records[1].clone()), with_fc(iscsi[1].clone())];
        let all = records.into_iter().chain(with_lost).chain(served).chain(local).chain(iscsi);
        let all = all.chain(files);
        for record in all {
            for slot in (0..drives).map(Slot) {
                let copy = record.for_slot(slot);
                let image = encode(&copy);
                assert_eq!(image.len() % 4096, 0);
                assert_eq!(decode(&image), Ok(copy));
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_refused_or_changes_nothing() {
    flipped_bits(eventful(Level::Raid6, 5));
    flipped_bits(troubled(eventful(Level::Raid5, 3)));
    flipped_bits(with_iscsi(eventful(Level::Raid5, 3)));
    flipped_bits(with_shares(eventful(Level::Raid5, 3)));
    flipped_bits(with_fc(eventful(Level::Raid5, 3)));
}

fn flipped_bits(record: ArrayRecord) {
    let mut image = encode(&record);
    let used =
        limits::HEADER_BYTES + u32::from_le_bytes(image[28..32].try_into().unwrap()) as usize;
    for bit in 0..image.len() * 8 {
        image[bit / 8] ^= 1 << (bit % 8);
        match decode(&image) {
            Err(problem) => assert!(problem.is_torn() && bit / 8 < used, "bit {bit}: {problem}"),
            Ok(other) => assert!(other == record && bit / 8 >= used, "bit {bit}"),
        }
        image[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn every_shortened_image_is_refused() {
    let image = encode(&eventful(Level::Raid5, 3));
    let used =
        limits::HEADER_BYTES + u32::from_le_bytes(image[28..32].try_into().unwrap()) as usize;
    for len in 0..used {
        assert!(decode(&image[..len]).is_err_and(|problem| problem.is_torn()), "{len}");
    }
    assert!(decode(&image[..used]).is_ok());
}

fn altered(change: impl FnOnce(&mut Vec<u8>)) -> Result<ArrayRecord, FormatError> {
    let mut image = encode(&eventful(Level::Raid5, 4));
    change(&mut image);
    seal(&mut image);
    decode(&image)
}

const RECORD: usize = limits::HEADER_BYTES;

#[test]
fn versions_and_flags_are_obeyed() {
    assert_eq!(altered(|_| ()), Ok(eventful(Level::Raid5, 4)));
    for version in [0, 1, 2, 4, 255] {
        let refused = altered(|i| i[8] = version).unwrap_err();
        assert_eq!(refused, FormatError::Version(version.into()));
        assert!(!refused.is_torn(), "nobody falls back from it");
        assert!(refused.to_string().contains(&format!("format version {version},")), "{refused}");
    }
    assert_eq!(altered(|i| i[26] = 1), Err(FormatError::Incompatible(1 << 16)));
    assert_eq!(altered(|i| i[16] = 4), Ok(eventful(Level::Raid5, 4)));
    assert!(altered(|i| i[20] = 4).unwrap().read_only);
    let longer = |i: &mut Vec<u8>| {
        let len = u32::from_le_bytes(i[28..32].try_into().unwrap()) + 3;
        i[28..32].copy_from_slice(&len.to_le_bytes());
    };
    assert!(matches!(altered(longer), Err(FormatError::Invalid(_))));
    assert!(
        altered(|i| {
            longer(i);
            i[17] = 1
        })
        .is_ok(),
        "a later release may add"
    );
}

/// A guarded group and its flag go together.
#[test]
fn a_guarded_group_has_a_flag() {
    let mut record = eventful(Level::Raid5, 3);
    record.journal_key = 7;
    record.groups[0].guarded = true;
    record.groups[0].unclean = true;
    let mut image = encode(&record);
    assert_eq!((image[16], image[24]), (0, 2));
    assert_eq!(decode(&image), Ok(record.clone()));
    image[24] = 0;
    seal(&mut image);
    assert!(matches!(decode(&image), Err(FormatError::Invalid(_))), "no flag says so");
    record.groups[0].guarded = false;
    let mut image = encode(&record);
    image[24] = 2;
    seal(&mut image);
    assert!(matches!(decode(&image), Err(FormatError::Invalid(_))), "no group is guarded");
}

/// Without a flag there is nothing behind the lists; with one, exactly what it announces.
#[test]
fn what_is_lost_and_how_tasks_stand_is_announced_by_flags() {
    let plain = eventful(Level::Raid5, 4);
    let image = encode(&plain);
    assert_eq!((&image[16..20], &image[24..28]), (&[0; 4][..], &[0; 4][..]));
    let lost = ArrayRecord { lost: troubled(plain.clone()).lost, ..plain.clone() };
    let mut image = encode(&lost);
    assert_eq!((image[16], image[24]), (0, 1));
    assert_eq!(decode(&image), Ok(lost));
    image[24] = 0;
    seal(&mut image);
    assert!(decode(&image).is_err(), "bytes that no flag announces");
    let paused = troubled(ArrayRecord { last_scrub: None, ..plain.clone() });
    let paused = ArrayRecord { lost: Vec::new(), ..paused };
    let mut image = encode(&paused);
    assert_eq!((image[16], image[24]), (1, 0));
    assert_eq!(decode(&image), Ok(paused));
    image[16] = 2;
    seal(&mut image);
    assert_eq!(decode(&image), Ok(ArrayRecord { last_scrub: None, ..plain }), "not known: ignored");
}

#[test]
fn rules_of_what_is_lost_hold() {
    let record = troubled(eventful(Level::Raid5, 4));
    assert!(record.check().is_ok());
    let refused = |change: &dyn Fn(&mut ArrayRecord)| {
        let mut changed = record.clone();
        change(&mut changed);
        assert!(changed.check().is_err());
    };
    refused(&|r| r.lost[1].start = 0);
    refused(&|r| r.lost.swap(0, 1));
    refused(&|r| r.lost[1].bytes = 0);
    refused(&|r| r.lost[1].bytes = 512);
    refused(&|r| r.lost[1].start += 512);
    refused(&|r| r.lost[2].bytes = 1 << 40);
    refused(&|r| r.lost[2].start = u64::MAX - 4095);
    refused(&|r| r.scrub = None);
    refused(&|r| r.scrub.as_mut().unwrap().group = 1);
    refused(&|r| r.scrub.as_mut().unwrap().stripe = 1 << 40);
    let many = |r: &mut ArrayRecord, count: u64| {
        let entry = |i: u64| LostRange { start: i * 4096, bytes: 4096, ..record.lost[0] };
        r.lost = (0..count).map(entry).collect();
    };
    refused(&|r| many(r, limits::LOST_MAX as u64 + 1));
    let mut most = record.clone();
    many(&mut most, limits::LOST_MAX as u64);
    assert_eq!(decode(&encode(&most)), Ok(most));
}

#[test]
fn rules_hold_behind_right_checksums() {
    let refused = |offset: usize, bytes: &[u8]| {
        let result = altered(|i| i[RECORD + offset..][..bytes.len()].copy_from_slice(bytes));
        assert!(result.is_err(), "offset {offset}: {bytes:?}");
    };
    refused(0, &[0; 16]); // array UUID
    refused(16, &[9; 16]); // this drive is not the slot's
    refused(32, &[3]); // this slot is another drive's
    refused(32, &[0xff, 0xff]);
    refused(34, &[4]); // level
    refused(34, &[6]); // not this layout
    refused(35, &[0x80]);
    refused(36, &[0; 4]); // block
    refused(40, &[0; 8]); // data offset
    refused(48, &[0xff; 8]); // data bytes
    refused(56, &[0; 8]); // epoch
    refused(56, &[0xff; 8]);
    refused(56, &(1u64 << 60).to_le_bytes());
    for list in (152..164).step_by(2) {
        refused(list, &[0xff, 0xff]);
        refused(list, &[0, 0]);
    }
    for area in (164..180).step_by(4) {
        refused(area, &[0; 4]);
        refused(area, &[0xff; 4]);
    }
    refused(180, &[17]); // shift of the written bits
    refused(181, &[1]); // reserved
    refused(192, b"a/b"); // name
    refused(192, b"a\nb");
    refused(192, &[0xc3, 0x28]);
    let range = 192 + 4;
    for field in 0..64 {
        refused(range + field, &[0xfe]);
    }
    let slot = range + limits::RANGE_BYTES;
    refused(slot + 16, &[3]);
    refused(slot + 17, &[0xff]);
    refused(slot + 24, &[0xff; 8]);
    refused(slot + 32, &[0; 8]);
    refused(slot + 32, &[0xff; 8]);
    refused(slot + 48, &[0xff; 8]);
}

/// Whoever goes on from a record counts on, and must not come to the end.
#[test]
fn counters_near_their_end_are_refused() {
    let counted = |sequence: u64, epoch: u64| {
        let mut record = plain(Level::Raid5, 4);
        (record.sequence, record.epoch.counter) = (sequence, epoch);
        let last = record.epoch.mark();
        record.slots.iter_mut().for_each(|slot| slot.last = last);
        decode(&encode(&record)).is_ok()
    };
    let end = limits::COUNTERS_READ_END;
    assert!(counted(end - 1, end - 1));
    for refused in [end, limits::COUNTERS_END - 1] {
        assert!(!counted(refused, 1) && !counted(1, refused));
    }
}

/// The same array with all ranges cut in two, one behind the other on the same slots.
fn cut(level: Level, drives: u16) -> ArrayRecord {
    let mut record = plain(level, drives);
    let mut back = record.ranges.clone();
    for (front, back) in record.ranges.iter_mut().zip(&mut back) {
        front.array_bytes /= 2;
        back.array_bytes /= 2;
        back.drive_start = record.data_bytes / 2;
    }
    let (groups, mut start) = (record.groups.len(), 0);
    for range in &mut record.ranges {
        (range.array_start, start) = (start, start + range.array_bytes);
    }
    for range in &mut back {
        (range.array_start, start) = (start, start + range.array_bytes);
        range.first_group += groups as u16;
    }
    record.ranges.extend(back);
    record.groups = vec![GroupRecord::default(); 2 * groups];
    record
}

/// A rebuild fills one group of a slot: what else lay there would count as filled, too.
#[test]
fn a_slot_is_in_one_group_with_redundancy() {
    for (level, drives) in SHAPES {
        let redundant = !matches!(level, Level::Jbod | Level::Raid0);
        assert_eq!(cut(level, drives).check().is_err(), redundant, "{level}");
    }
}

/// The journal area is that of one group.
#[test]
fn only_the_group_of_the_journal_is_guarded() {
    let guarded = |level, drives, group: usize| {
        let mut record = plain(level, drives);
        record.journal_key = 7;
        record.groups[group].guarded = true;
        record.check().is_ok()
    };
    assert!(guarded(Level::Raid5, 4, 0));
    for (level, drives) in [(Level::Raid1, 3), (Level::Raid10, 6), (Level::Jbod, 3)] {
        assert!(!guarded(level, drives, 0), "{level}");
    }
    let mut two = plain(Level::Raid6, 8);
    let range = &mut two.ranges[0];
    (range.descriptor.k, range.descriptor.width, range.descriptor.groups) = (2, 4, 2);
    range.array_bytes = 2 * 2 * two.data_bytes;
    two.groups.push(two.groups[0]);
    (two.journal_key, two.groups[0].guarded) = (7, true);
    assert_eq!(two.check(), Ok(()));
    two.groups[1].guarded = true;
    assert!(two.check().is_err());
}

#[test]
fn a_journal_area_has_a_limit() {
    let with = |journal_bytes| {
        let mut record = plain(Level::Raid5, 4);
        let areas = &mut record.areas;
        areas.journal_bytes = journal_bytes;
        record.data_offset = areas.journal_start + journal_bytes;
        record.check().is_ok()
    };
    assert!(with(limits::JOURNAL_BYTES_MAX));
    assert!(!with(limits::JOURNAL_BYTES_MAX + MIB));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn hostile_bytes_never_panic(
            changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..8),
            start in any::<bool>()) {
        let mut image = encode(&eventful(Level::Raid10, 6));
        for (at, value) in changes {
            let at = usize::from(at) % (if start { 400 } else { image.len() });
            image[at] = value;
        }
        image[..8].copy_from_slice(b"PALISADE");
        seal(&mut image);
        if let Ok(record) = decode(&image) {
            prop_assert!(record.check().is_ok());
            if !record.read_only {
                let again = encode(&record);
                prop_assert_eq!(decode(&again), Ok(record));
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(decode(&bytes).is_err());
        let mut image = b"PALISADE".to_vec();
        image.extend(&bytes);
        image.resize(image.len().max(256), 0);
        seal(&mut image);
        prop_assert!(decode(&image).is_err());
    }

    #[test]
    fn torn_writes_leave_the_older_record(cut in 0usize..4096, keep_tail in any::<bool>(),
            turns in 1usize..9) {
        let mut slots = vec![vec![0u8; 8192]; 4];
        let mut record = eventful(Level::Raid5, 5);
        let mut at = 0;
        for _ in 0..turns {
            record.sequence += 1;
            let image = encode(&record);
            slots[at].fill(0x5a);
            slots[at][..image.len()].copy_from_slice(&image);
            prop_assert_eq!(best(&slots), Ok((at, record.clone())));
            at = next_slot(at);
        }
        let mut next = record.clone();
        next.sequence += 1;
        next.heartbeat += 1;
        let image = encode(&next);
        let cut = cut.min(image.len());
        let part = if keep_tail { cut..image.len() } else { 0..cut };
        slots[at][part.clone()].copy_from_slice(&image[part]);
        let (_, found) = best(&slots).unwrap();
        prop_assert!(found == record || found == next);
    }
}

fn best(slots: &[Vec<u8>]) -> Result<(usize, ArrayRecord), FormatError> {
    newest([&slots[0], &slots[1], &slots[2], &slots[3]])
}

#[test]
fn areas_and_epochs_of_absence_keep_their_rules() {
    let good = eventful(Level::Raid5, 4);
    assert_eq!(good.check(), Ok(()));
    let refused = |change: fn(&mut ArrayRecord)| {
        let mut record = good.clone();
        change(&mut record);
        assert!(record.check().is_err());
    };
    refused(|r| r.areas = palisade_format::Areas::default());
    refused(|r| r.areas.map_start = 0);
    refused(|r| r.areas.map_bytes = 0);
    refused(|r| r.areas.map_bytes += 1 << 20);
    refused(|r| r.areas.journal_start += 4096);
    refused(|r| r.areas.journal_bytes = 0);
    refused(|r| r.areas.journal_bytes = 5 << 20);
    refused(|r| r.areas.shift = 17);
    refused(|r| r.data_offset -= 1 << 20);
    refused(|r| r.slots[2].since = 1);
    refused(|r| r.slots[1].since = r.slots[1].last.counter + 1);
}

#[test]
fn a_failed_drive_is_whole_up_to_its_last_epoch() {
    let mut record = plain(Level::Raid6, 5);
    record.next_epoch(7);
    record.fail_slot(Slot(1));
    record.next_epoch(8);
    assert_eq!((record.slots[1].since, record.slots[1].last.counter), (2, 2));
    record.slots[1].state = SlotState::Rebuilding { border: 3 };
    record.next_epoch(9);
    record.fail_slot(Slot(1));
    record.next_epoch(10);
    assert_eq!((record.slots[1].since, record.slots[1].last.counter), (2, 4));
    assert_eq!(record.check(), Ok(()));
}

#[test]
fn slots_alternate_between_head_and_tail() {
    let order: Vec<usize> =
        std::iter::successors(Some(0), |at| Some(next_slot(*at))).take(5).collect();
    assert_eq!(order, [0, 2, 1, 3, 0]);
    let tail = 127 * MIB;
    assert_eq!(slot_offsets(128 * MIB + 4096), [0, 256 << 10, tail, tail + (256 << 10)]);
    assert_eq!(slot_offsets(0)[2], 0);
}

/// The images of four slots after `count` records of one drive, whose tail is there or not.
fn written(count: u64, tail: bool) -> Vec<Vec<u8>> {
    let (mut slots, mut at) = (vec![vec![0; 4096]; 4], 0);
    for sequence in 1..=count {
        if at < 2 || tail {
            slots[at] = encode(&ArrayRecord { sequence, ..plain(Level::Raid5, 3) });
        }
        at = next_slot(at);
    }
    slots
}

#[test]
fn the_head_tells_of_a_tail_that_is_elsewhere() {
    for count in 0..12 {
        let slots = written(count, true);
        let images = |slots: &[Vec<u8>]| LostTail::of([0, 1, 2, 3].map(|i| Some(&slots[i][..])));
        assert_eq!(images(&slots), None, "{count}");
        let head = written(count, false);
        let lost = LostTail::of([0, 1, 2, 3].map(|i| Some(&head[i][..])));
        // Before slot 1 is written nobody can know what was in slot 2.
        assert_eq!(lost.is_some(), count >= 3, "{count}");
        let Some(mut lost) = lost else { continue };
        assert_eq!(LostTail::of([0, 1, 2, 3].map(|i| (i != 3).then_some(&head[i][..]))), None);
        assert!(!lost.take(2, &[0; 4096]) && !lost.is_found());
        // Records of somebody else, and older ones than the head's, are not what is looked for.
        let mut other = plain(Level::Raid5, 3);
        (other.sequence, other.this_slot, other.this_drive) = (50, Slot(1), other.slots[1].drive);
        assert!(!lost.take(2, &encode(&other)) && !lost.take(3, &encode(&other)));
        for slot in [2, 3] {
            lost.take(slot, &encode(&plain(Level::Raid5, 3)));
        }
        assert!(!lost.is_found(), "{count}");
        let (slot, record) = best(&head).unwrap();
        let doubted = FormatError::TailMissing { record: Box::new(record.clone()), slot };
        assert!(count < 5 || record.sequence + 1 >= count, "at most one is missing");
        assert_eq!(lost.doubt((slot, record.clone())), Err(doubted), "{count}");
        lost.take(2, &slots[2]);
        lost.take(3, &slots[3]);
        assert!(lost.is_found(), "{count}");
        assert_eq!(lost.doubt((slot, record.clone())), Ok((slot, record)), "{count}");
        assert!(!lost.take(2, &slots[2]), "it is no newer");
        let first = plain(Level::Raid5, 3);
        let first = first.data_offset + first.data_bytes;
        let places: Vec<_> = lost.places(first + 3 * MIB).collect();
        let second = first + MIB;
        let slot = 256 << 10;
        assert_eq!(places, [(2, first), (3, first + slot), (2, second), (3, second + slot)]);
        assert_eq!(lost.places(first + (1 << 40)).count(), 2048);
        assert_eq!(lost.places(0).count(), 0);
    }
}

#[test]
fn nobody_falls_back_from_a_record_of_another_release() {
    let mut old = plain(Level::Raid5, 3);
    let mut slots = vec![Vec::new(); 4];
    assert_eq!(best(&slots), Err(FormatError::NoMagic));
    slots[0] = encode(&old);
    old.sequence += 1;
    slots[2] = encode(&old);
    slots[2][25] = 1;
    seal(&mut slots[2]);
    assert_eq!(best(&slots), Err(FormatError::Incompatible(256)));
    slots[2][8] = 2;
    seal(&mut slots[2]);
    assert_eq!(best(&slots), Err(FormatError::Version(2)));
    slots[2][8] = 3;
    seal(&mut slots[2]);
    slots[2][200] ^= 1;
    assert_eq!(best(&slots).map(|(slot, _)| slot), Ok(0), "torn, so the older one counts");
    slots[0][200] ^= 1;
    assert_eq!(best(&slots), Err(FormatError::RecordDamaged));
}

#[test]
#[should_panic(expected = "the last epoch of a slot")]
fn a_failure_without_a_new_epoch_is_our_mistake() {
    let mut record = plain(Level::Raid5, 3);
    record.slots[2].state = SlotState::Failed;
    encode(&record);
}

#[test]
fn volumes_are_whole_rows_that_nobody_shares() {
    let good = eventful(Level::Raid5, 4);
    let refused = |change: fn(&mut ArrayRecord)| {
        let mut record = good.clone();
        change(&mut record);
        assert!(record.check().is_err());
    };
    assert_eq!(good.check(), Ok(()));
    refused(|r| r.volumes[0].extents[0].array_start += 1 << 20);
    refused(|r| r.volumes[0].extents[0].bytes = 1 << 20);
    refused(|r| r.volumes[0].extents[0].array_start = 0);
    refused(|r| r.volumes[0].extents[0].array_start = u64::MAX - 5);
    refused(|r| r.volumes[0].bytes += 8192);
    refused(|r| r.volumes[0].bytes += 1);
    refused(|r| r.volumes[0].name = "Zürich".into());
    refused(|r| r.volumes[0].name = "a/b".into());
    refused(|r| r.volumes[0].extents.clear());
    refused(|r| r.exports[0].id = 7);
    refused(|r| r.exports[0].volume = uuid(9));
    refused(|r| r.name = "x".repeat(65));
}

/// The tables of constants in docs/format.md and docs/owner-pages.md say what the code does.
#[test]
fn document_and_code_agree() {
    let owners = include_str!("../../../docs/owner-pages.md");
    let page = [include_str!("../../../docs/format.md"), owners].concat();
    let value = |name: &str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        row.unwrap_or_else(|| panic!("{name} is not in docs/format.md"))
            .split('|')
            .nth(2)
            .map(|cell| cell.trim().to_owned())
            .unwrap()
    };
    assert_eq!(value("MAGIC").as_bytes(), limits::MAGIC);
    assert_eq!(value("PAGE_MAGIC").as_bytes(), limits::PAGE_MAGIC);
    assert_eq!(value("JOURNAL_MAGIC").as_bytes(), limits::JOURNAL_MAGIC);
    assert_eq!(value("FLIGHT_MAGIC").as_bytes(), limits::FLIGHT_MAGIC);
    assert_eq!(value("OWNER_MAGIC").as_bytes(), limits::OWNER_MAGIC);
    let numbers = [
        ("BATCH_ALIGN", limits::BATCH_ALIGN as u64),
        ("BATCH_HEADER_BYTES", limits::BATCH_HEADER_BYTES as u64),
        ("ENTRY_BYTES", limits::ENTRY_BYTES as u64),
        ("JOURNAL_RANGE_BYTES", limits::JOURNAL_RANGE_BYTES as u64),
        ("FLIGHT_HEADER_BYTES", limits::FLIGHT_HEADER_BYTES as u64),
        ("FLIGHT_ENTRY_BYTES", limits::FLIGHT_ENTRY_BYTES as u64),
        ("FLIGHT_BYTES_MAX", limits::FLIGHT_BYTES_MAX as u64),
        ("OWNER_AT", limits::OWNER_AT),
        ("OWNER_BYTES", limits::OWNER_BYTES as u64),
        ("OWNER_HEADER_BYTES", limits::OWNER_HEADER_BYTES as u64),
        ("OWNER_NAMED_BYTES", limits::OWNER_NAMED_BYTES as u64),
        ("CONTROLLER_BYTES", limits::CONTROLLER_BYTES as u64),
        ("CONTROLLERS_MAX", limits::CONTROLLERS_MAX as u64),
        ("FORMAT_VERSION", u64::from(limits::FORMAT_VERSION)),
        ("PAGE_BYTES", limits::PAGE_BYTES as u64),
        ("PAGE_HEADER_BYTES", limits::PAGE_HEADER_BYTES as u64),
        ("REGION_ENTRY_BYTES", limits::REGION_ENTRY_BYTES as u64),
        ("PAGE_ENTRIES", limits::PAGE_ENTRIES as u64),
        ("REGION_BITS", limits::REGION_BITS),
        ("REGIONS_MAX", limits::REGIONS_MAX),
        ("JOURNAL_BYTES_MIN", limits::JOURNAL_BYTES_MIN),
        ("JOURNAL_BYTES_MAX", limits::JOURNAL_BYTES_MAX),
        ("AREA_BYTES", limits::AREA_BYTES),
        ("SLOT_BYTES", limits::SLOT_BYTES),
        ("HEADER_BYTES", limits::HEADER_BYTES as u64),
        ("FIXED_BYTES", limits::FIXED_BYTES as u64),
        ("RANGE_BYTES", limits::RANGE_BYTES as u64),
        ("SLOT_ENTRY_BYTES", limits::SLOT_ENTRY_BYTES as u64),
        ("GROUP_ENTRY_BYTES", limits::GROUP_ENTRY_BYTES as u64),
        ("VOLUME_ENTRY_BYTES", limits::VOLUME_ENTRY_BYTES as u64),
        ("EXTENT_BYTES", limits::EXTENT_BYTES as u64),
        ("EXPORT_ENTRY_BYTES", limits::EXPORT_ENTRY_BYTES as u64),
        ("NAME_MAX", limits::NAME_MAX as u64),
        ("SERIAL_MAX", limits::SERIAL_MAX as u64),
        ("ADDRESS_MAX", limits::ADDRESS_MAX as u64),
        ("VOLUMES_MAX", limits::VOLUMES_MAX as u64),
        ("EXTENTS_MAX", limits::EXTENTS_MAX as u64),
        ("EXPORTS_MAX", limits::EXPORTS_MAX as u64),
        ("COUNTERS_END", limits::COUNTERS_END),
        ("COUNTERS_READ_END", limits::COUNTERS_READ_END),
        ("LOST_ENTRY_BYTES", limits::LOST_ENTRY_BYTES as u64),
        ("LOST_MAX", limits::LOST_MAX as u64),
        ("LOST_UNIT", limits::LOST_UNIT),
        ("TASKS_BYTES", limits::TASKS_BYTES as u64),
        ("MAX_DRIVES", layout::MAX_DRIVES.into()),
        ("MAX_RANGES", layout::MAX_RANGES as u64),
        ("MAX_GROUPS", layout::MAX_GROUPS.into()),
    ];
    for (name, number) in numbers {
        assert_eq!(value(name), number.to_string(), "{name}");
    }
}
