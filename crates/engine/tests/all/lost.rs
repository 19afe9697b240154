//! Blocks that nobody can give back: rebuilds and resyncs go on without them, they are listed and
//! answered with errors, everything beside them is right, and they heal when they are overwritten.

use crate::common;

use common::{FORCE, Rig, drives, duplicates, flush, read, record, references, write};
use engine::manage::command::{ArrayState, Request, SlotHealth, StartOptions, UnreadableRange};
use format::LostReason;
use io::{BlockError, Blocks, Pool};
use layout::Level;
use sim::{Rng, SharedSimDrive};
use units::{CoreId, GroupNo, MIB, Nanos, Slot, StripIndex, StripeNo};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 3 * MIB;
const BLOCK: u64 = 512;

/// What the volume holds at the begin of a test.
fn content() -> Vec<u8> {
    let mut bytes = vec![0; BYTES as usize];
    Rng::new(4711).fill(&mut bytes);
    bytes
}

/// Every block is as `wanted`, or can't be read where `lost` has it.
fn check(rig: &Rig, wanted: &[u8], lost: &[(u64, u64)]) {
    let volume = &rig.open_volume()[0];
    for at in (0..BYTES).step_by(BLOCK as usize) {
        let expected = match lost.iter().any(|(from, n)| (*from..from + n).contains(&at)) {
            true => Err(BlockError::Unavailable),
            false => Ok(wanted[at as usize..(at + BLOCK) as usize].to_vec()),
        };
        let got = read(rig, volume, at, BLOCK);
        assert!(got == expected, "block at {at}: {:?} not {:?}", got.is_ok(), expected.is_ok());
    }
}

fn list(rig: &Rig) -> Vec<(u64, u64, Option<LostReason>)> {
    let entry = |r: UnreadableRange| (r.offset, r.bytes, r.reason);
    rig.status().unreadable.into_iter().map(entry).collect()
}

/// The slot that has a strip of a stripe, and where on its drive.
fn place(drive: &SharedSimDrive, stripe: u64, strip: u16) -> (usize, u64) {
    let found = record(drive);
    let layout = found.layout().unwrap();
    let slot = layout.slot(GroupNo(0), StripeNo(stripe), StripIndex(strip));
    (slot.index(), found.data_offset + layout.drive_offset(GroupNo(0), StripeNo(stripe)))
}

struct Case {
    level: Level,
    width: usize,
    /// The strips of stripe 4 that can't be read in the blocks that are lost.
    bad: &'static [u16],
    /// The strip whose drive is replaced.
    replaced: u16,
    /// Data strips whose blocks are lost by that.
    lost: &'static [u16],
}

const CASES: &[Case] = &[
    Case { level: Level::Raid5, width: 4, bad: &[0], replaced: 1, lost: &[0, 1] },
    // The parity is replaced, and the data it would be made of can't be read.
    Case { level: Level::Raid5, width: 4, bad: &[2], replaced: 3, lost: &[2] },
    // The parity can't be read.
    Case { level: Level::Raid5, width: 4, bad: &[3], replaced: 0, lost: &[0] },
    Case { level: Level::Raid6, width: 5, bad: &[0, 3], replaced: 1, lost: &[0, 1] },
    Case { level: Level::Raid6, width: 5, bad: &[3, 4], replaced: 2, lost: &[2] },
    Case { level: Level::Raid1, width: 2, bad: &[0], replaced: 1, lost: &[0] },
    Case { level: Level::Raid1, width: 3, bad: &[0, 2], replaced: 1, lost: &[0] },
    Case { level: Level::Raid10, width: 4, bad: &[1], replaced: 0, lost: &[0] },
];

impl Case {
    /// An array with content, and blocks 3 and 4 of the case's strips of stripe 4 unreadable.
    fn filled(&self, seed: u64) -> (Rig, Vec<SharedSimDrive>) {
        let drives = drives(self.width + 1, seed, seed % 2 == 0);
        let rig = Rig::new(seed, 1 + (seed % 2) as u16);
        rig.create(self.level, &drives[..self.width], STRIP).unwrap();
        let volume = rig.volume(BYTES).remove(0);
        write(&rig, &volume, 0, &content()).unwrap();
        flush(&rig, &volume).unwrap();
        (rig, drives)
    }

    fn spoil(&self, drives: &[SharedSimDrive]) {
        for strip in self.bad {
            let (slot, at) = place(&drives[0], 4, *strip);
            drives[slot].fail_range(at + 3 * BLOCK, 2 * BLOCK);
        }
    }

    fn victim(&self, drives: &[SharedSimDrive]) -> usize {
        place(&drives[0], 4, self.replaced).0
    }

    /// Fails the victim's drive and has the spare rebuilt.
    fn rebuild(&self, rig: &Rig, drives: &[SharedSimDrive]) {
        let victim = self.victim(drives);
        rig.fail(victim).unwrap();
        rig.replace(victim, &drives[self.width]).unwrap();
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal, "{}", self.level);
    }

    /// The drives as they are in the array afterwards.
    fn seated(&self, drives: &[SharedSimDrive]) -> Vec<SharedSimDrive> {
        let mut seated = drives[..self.width].to_vec();
        seated[self.victim(drives)] = drives[self.width].clone();
        seated
    }

    /// Where in the volume the lost blocks are.
    fn places(&self, drive: &SharedSimDrive) -> Vec<(u64, u64)> {
        let layout = record(drive).layout().unwrap();
        let at = |strip: &u16| {
            let place = layout::Place {
                group: GroupNo(0),
                stripe: StripeNo(4),
                strip: StripIndex(*strip),
                offset: 3 * BLOCK as u32,
            };
            (layout.array_offset(place), 2 * BLOCK)
        };
        self.lost.iter().map(at).collect()
    }
}

/// The whole life of lost blocks, for every kind of redundancy.
#[test]
fn a_rebuild_goes_on_without_what_nothing_gives() {
    for (seed, case) in (100..).zip(CASES) {
        let (rig, drives) = case.filled(seed);
        case.spoil(&drives);
        case.rebuild(&rig, &drives);
        let lost = case.places(&drives[0]);
        let expected: Vec<_> =
            lost.iter().map(|(at, n)| (*at, *n, Some(LostReason::Rebuild))).collect();
        assert_eq!(list(&rig), expected, "{}", case.level);
        check(&rig, &content(), &lost);
        assert_eq!(rig.scrub(false).mismatches, 0, "{}: redundancy covers them", case.level);
        // A read of many blocks fails as one.
        let volume = rig.open_volume().remove(0);
        assert_eq!(read(&rig, &volume, 0, BYTES), Err(BlockError::Unavailable));
        // They stay lost, and everything else right, over a restart with any drive gone.
        rig.stop();
        let seated = case.seated(&drives);
        for gone in 0..case.width {
            let mut left = duplicates(&seated);
            left.remove(gone);
            let rig = Rig::new(seed + 50, 1);
            rig.assemble(&references(&left), FORCE).unwrap();
            check(&rig, &content(), &lost);
            assert_eq!(list(&rig), expected);
        }
        heal(case, seed, &seated, &lost);
    }
}

/// Writes beside lost blocks and then over them.
fn heal(case: &Case, seed: u64, seated: &[SharedSimDrive], lost: &[(u64, u64)]) {
    let rig = Rig::new(seed + 60, 2);
    rig.assemble(&references(seated), StartOptions::default()).unwrap();
    let volume = rig.open_volume().remove(0);
    let mut wanted = content();
    let mut put = |at: u64, bytes: u64, byte: u8| {
        let data = vec![byte; bytes as usize];
        wanted[at as usize..(at + bytes) as usize].copy_from_slice(&data);
        write(&rig, &volume, at, &data).unwrap();
        wanted.clone()
    };
    let (at, bytes) = lost[0];
    put(at - BLOCK, BLOCK, 7);
    let beside = put(at + bytes, 2 * BLOCK, 8);
    check(&rig, &beside, lost);
    // Half of the first range, then all.
    let half = put(at, BLOCK, 9);
    let mut left = lost.to_vec();
    left[0] = (at + BLOCK, bytes - BLOCK);
    check(&rig, &half, &left);
    let ranges: Vec<_> = list(&rig).into_iter().map(|(at, n, _)| (at, n)).collect();
    assert_eq!(ranges, left);
    let mut all = half;
    for (at, bytes) in lost {
        all = put(*at, *bytes, 10);
    }
    assert_eq!(list(&rig), []);
    check(&rig, &all, &[]);
    assert_eq!(rig.scrub(false).mismatches, 0);
    // What is beside the lost blocks was written as any other.
    flush(&rig, &volume).unwrap();
    rig.world.crash();
    let mut left = seated.to_vec();
    left.remove(0);
    assert!(record(&left[0]).lost.is_empty(), "{}: durable before the answer", case.level);
    let rig = Rig::new(seed + 61, 1);
    rig.assemble(&references(seated), StartOptions::default()).unwrap();
    rig.wait();
    check(&rig, &all, &[]);
}

/// A resync that needs what can't be read lists it and ends.
#[test]
fn a_resync_goes_on_without_what_nothing_gives() {
    for (seed, (level, width)) in [(200, (Level::Raid5, 4)), (201, (Level::Raid6, 5))] {
        let case = Case { level, width, bad: &[1], replaced: 0, lost: &[1] };
        let (rig, drives) = case.filled(seed);
        rig.world.crash();
        case.spoil(&drives);
        let drives = &drives[..width];
        common::hide_pages(drives);
        let rig = Rig::new(seed + 1, 2);
        rig.assemble(&references(drives), StartOptions::default()).unwrap();
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal);
        let lost = case.places(&drives[0]);
        assert_eq!(list(&rig), [(lost[0].0, lost[0].1, Some(LostReason::Resync))]);
        check(&rig, &content(), &lost);
        assert_eq!(rig.scrub(false).mismatches, 0);
    }
}

/// What can only not be read while a drive is missing is not lost, but people see it.
#[test]
fn what_can_not_be_read_now_is_shown_and_forgotten_when_it_can() {
    let case = &CASES[0];
    let (rig, drives) = case.filled(301);
    rig.fail(case.victim(&drives)).unwrap();
    case.spoil(&drives);
    let volume = rig.open_volume().remove(0);
    let lost = case.places(&drives[0]);
    for (at, bytes) in &lost {
        assert_eq!(read(&rig, &volume, *at, *bytes), Err(BlockError::Unavailable));
    }
    rig.world.settle();
    // One block of each is met before the read ends.
    let first: Vec<_> = lost.iter().map(|(at, _)| (*at, BLOCK, None)).collect();
    assert_eq!(list(&rig), first);
    // Its drive reads it after all.
    drives.iter().for_each(SharedSimDrive::clear_faults);
    for (at, bytes) in &lost {
        read(&rig, &volume, *at, *bytes).unwrap();
    }
    rig.world.settle();
    assert_eq!(list(&rig), []);
}

/// A write to what can't be read, while only parity holds another drive's block: that is lost.
#[test]
fn a_write_goes_on_without_what_nothing_gives() {
    for seed in [330, 331] {
        let case = &CASES[0];
        let (rig, drives) = case.filled(seed);
        let victim = case.victim(&drives);
        rig.fail(victim).unwrap();
        case.spoil(&drives);
        let volume = rig.open_volume().remove(0);
        let lost = case.places(&drives[0]);
        let mut wanted = content();
        // The whole strip, so that blocks beside it are not given up with it.
        let (at, bytes) = (lost[0].0 - 3 * BLOCK, STRIP as usize);
        wanted[at as usize..][..bytes].fill(3);
        write(&rig, &volume, at, &vec![3; bytes]).unwrap();
        check(&rig, &wanted, &lost[1..]);
        assert_eq!(list(&rig), [(lost[1].0, lost[1].1, Some(LostReason::Write))]);
        rig.replace(victim, &drives[case.width]).unwrap();
        rig.wait();
        check(&rig, &wanted, &lost[1..]);
        assert_eq!((rig.status().state, rig.scrub(false).mismatches), (ArrayState::Optimal, 0));
        write(&rig, &volume, lost[1].0, &[4; 2 * BLOCK as usize]).unwrap();
        assert_eq!(list(&rig), []);
    }
}

/// A scrub lists what it finds, in memory.
#[test]
fn a_scrub_shows_what_nothing_gives() {
    let case = Case { bad: &[0, 2], ..CASES[0] };
    let (rig, drives) = case.filled(303);
    case.spoil(&drives);
    let found = rig.scrub(true);
    assert_eq!((found.mismatches, found.unreadable, found.repaired), (1, 1, 0));
    let wanted = Case { lost: &[0, 2], ..case }.places(&drives[0]);
    let wanted: Vec<_> = wanted.into_iter().map(|(at, n)| (at, n, None)).collect();
    assert_eq!(list(&rig), wanted);
    assert!(record(&drives[0]).lost.is_empty());
}

/// Discards, write-zeroes and deletion of their volume end it too.
#[test]
fn lost_blocks_go_with_what_is_discarded_zeroed_or_deleted() {
    let case = &CASES[0];
    for (seed, how) in [(310, 0), (312, 1), (313, 2)] {
        let (rig, drives) = case.filled(seed);
        case.spoil(&drives);
        case.rebuild(&rig, &drives);
        let volume = rig.open_volume().remove(0);
        let (at, bytes) = case.places(&drives[0])[0];
        match how {
            0 => {
                let whole = volume.clone();
                let all = async move { whole.discard(0, BYTES).await };
                rig.world.block_on(CoreId(0), all).unwrap();
                assert_eq!(list(&rig), []);
                assert!(read(&rig, &volume, 0, BYTES).unwrap().iter().all(|b| *b == 0));
            }
            1 => {
                let some = volume.clone();
                let zero = async move { some.write_zeroes(at, bytes, false).await };
                rig.world.block_on(CoreId(0), zero).unwrap();
                assert_eq!(list(&rig).len(), 1);
                assert_eq!(read(&rig, &volume, at, bytes).unwrap(), vec![0; bytes as usize]);
            }
            _ => {
                rig.ask(|r| Request::VolumeDelete("a".into(), "v".into(), r)).unwrap();
                assert!(record(&drives[case.width]).lost.is_empty());
                let volume = rig.volume(BYTES).remove(0);
                assert!(read(&rig, &volume, 0, BYTES).unwrap().iter().all(|b| *b == 0));
            }
        }
        assert_eq!(rig.scrub(false).mismatches, 0);
    }
}

/// A volume that shrinks gives up what was lost behind its end, and does not get it back.
#[test]
fn a_volume_that_shrinks_forgets_what_was_lost_behind_its_end() {
    let case = &CASES[0];
    let (rig, drives) = case.filled(320);
    // Of a stripe in the first row; a second row holds more.
    case.spoil(&drives);
    case.rebuild(&rig, &drives);
    let resize =
        |bytes: u64| rig.ask(|r| Request::VolumeResize("a".into(), "v".into(), bytes.into(), r));
    let (at, _) = case.places(&drives[0])[0];
    resize(at).unwrap();
    assert_eq!(list(&rig), [], "behind the end of the volume");
    resize(BYTES).unwrap();
    assert_eq!(list(&rig), []);
    let volume = rig.open_volume().remove(0);
    assert!(read(&rig, &volume, at, BYTES - at).unwrap().iter().all(|b| *b == 0));
}

/// The blocks of the volume that are neither as they were nor answered with an error.
fn none_wrong(rig: &Rig, wanted: &[u8], lost: &[(u64, u64)], context: &str) {
    let volume = &rig.open_volume()[0];
    let may = |at: u64| lost.iter().any(|(from, n)| (*from..from + n).contains(&at));
    let (from, to) = (lost[0].0 - 64 * BLOCK, lost[0].0 + 192 * BLOCK);
    for at in (from..to).step_by(BLOCK as usize) {
        match read(rig, volume, at, BLOCK) {
            Ok(got) => {
                assert!(got == wanted[at as usize..(at + BLOCK) as usize], "{context}: at {at}");
            }
            Err(_) => assert!(may(at), "{context}: an error at {at}"),
        }
    }
}

/// Power fails at every request of a rebuild that has to give blocks up. Whatever is read is right,
/// and after the rebuild everything but the lost blocks is, with any one drive gone.
#[test]
fn a_rebuild_over_lost_blocks_is_cut_at_every_request() {
    for (seed, case) in [(400, &CASES[0]), (401, &CASES[3]), (402, &CASES[5])] {
        let (rig, image) = case.filled(seed);
        let victim = case.victim(&image);
        rig.fail(victim).unwrap();
        rig.stop();
        case.spoil(&image);
        let lost = case.places(&image[0]);
        for submits in (0..).step_by(7) {
            let drives = duplicates(&image);
            case.spoil(&drives);
            let rig = Rig::new(seed + submits, 1);
            let mut there = references(&drives[..case.width]);
            there.remove(victim);
            rig.assemble(&there, FORCE).unwrap();
            rig.world.power_fails_after(submits);
            let spare = common::reference(&drives[case.width], 90);
            let slot = Slot(victim as u16);
            let replaced = rig.try_ask(|r| Request::Replace("a".into(), slot, spare, r));
            let over = replaced.is_ok() && {
                rig.world.run_for(Nanos::from_millis(4_000));
                rig.world.submits() < submits
            };
            rig.world.crash();
            after_the_cut(case, seed + submits, &drives, victim, &lost);
            if over {
                break;
            }
            assert!(submits < 20_000, "the rebuild never ends");
        }
    }
}

fn after_the_cut(
    case: &Case,
    seed: u64,
    drives: &[SharedSimDrive],
    victim: usize,
    lost: &[(u64, u64)],
) {
    let context = format!("{} seed {seed}", case.level);
    let rig = Rig::new(seed + 10_000, 1 + (seed % 2) as u16);
    let seated = case.seated(drives);
    let spare = format::newest(record_images(&drives[case.width]).each_ref().map(|i| &i[..]));
    let mut list = references(&seated);
    if spare.is_err() {
        list.remove(victim);
    }
    rig.assemble(&list, FORCE).unwrap();
    none_wrong(&rig, &content(), lost, &context);
    if rig.status().slots[victim].health != SlotHealth::Rebuilding {
        if rig.status().slots[victim].health == SlotHealth::InSync {
            return;
        }
        rig.replace(victim, &drives[case.width]).unwrap();
    }
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal, "{context}");
    none_wrong(&rig, &content(), lost, &context);
    assert_eq!(rig.scrub(false).mismatches, 0, "{context}");
    rig.stop();
    let mut left = duplicates(&seated);
    left.remove((victim + 1) % case.width);
    let rig = Rig::new(seed + 20_000, 1);
    rig.assemble(&references(&left), FORCE).unwrap();
    none_wrong(&rig, &content(), lost, &context);
}

fn record_images(drive: &SharedSimDrive) -> [Vec<u8>; 4] {
    format::slot_offsets(drive.info().bytes).map(|at| drive.peek(at, format::SLOT_BYTES))
}

/// Power fails at every request of a write over lost blocks: a block is an error, or what was
/// written; if that was acknowledged, it is that.
#[test]
fn a_heal_is_cut_at_every_request() {
    for (seed, case) in [(500, &CASES[0]), (501, &CASES[4]), (502, &CASES[6]), (504, &CASES[0])] {
        let (rig, image) = case.filled(seed);
        case.spoil(&image);
        case.rebuild(&rig, &image);
        rig.stop();
        let (image, lost) = (case.seated(&image), case.places(&image[0]));
        let (at, bytes) = lost[0];
        let mut wanted = content();
        wanted[at as usize..(at + bytes) as usize].fill(0x5a);
        for submits in 0.. {
            let drives = duplicates(&image);
            let rig = Rig::new(seed + submits, 1);
            rig.assemble(&references(&drives), StartOptions::default()).unwrap();
            rig.world.power_fails_after(submits);
            let volume = rig.open_volume().remove(0);
            let data = Pool::single(bytes as usize);
            let healed = rig.world.try_block_on(CoreId(0), async move {
                let mut data = data;
                data.fill(0x5a);
                volume.write(at, data.freeze(), false).await
            });
            rig.world.crash();
            let rig = Rig::new(seed + submits + 1000, 1);
            rig.assemble(&references(&drives), StartOptions::default()).unwrap();
            let context = format!("{} seed {seed}, {submits}", case.level);
            for round in 0..2 {
                none_wrong(&rig, &wanted, &lost, &context);
                if healed.is_ok() {
                    let volume = rig.open_volume().remove(0);
                    assert!(read(&rig, &volume, at, bytes).is_ok(), "{context}: {round}");
                }
                rig.wait();
            }
            assert_eq!(rig.scrub(false).mismatches, 0, "{context}");
            if healed.is_ok() {
                assert!(submits > 3, "the write was reached");
                break;
            }
        }
    }
}

/// While a lost block is listed, read and healed, no core ever sees what drives hold for it.
#[test]
fn nobody_reads_what_is_in_place_of_lost_blocks() {
    for seed in 600..606 {
        let case = &CASES[[0, 5][seed as usize % 2]];
        let drives = drives(case.width + 1, seed, false);
        let rig = Rig::slow(seed);
        rig.create(case.level, &drives[..case.width], STRIP).unwrap();
        let volumes = rig.volume(BYTES);
        write(&rig, &volumes[0], 0, &content()).unwrap();
        case.spoil(&drives);
        let lost = case.places(&drives[0]);
        let over = std::rc::Rc::new(std::cell::Cell::new(0));
        for (core, volume) in (0..).zip(&volumes) {
            let env = rig.world.env(CoreId(core));
            let (volume, over, lost, sleeper) =
                (volume.clone(), over.clone(), lost.clone(), env.clone());
            io::Env::spawn(&env, io::Priority::First, async move {
                let wanted = content();
                for i in 0..4000u64 {
                    let (at, n) = lost[(i % lost.len() as u64) as usize];
                    let (result, got) = volume.read(at, Pool::single(n as usize)).await;
                    let right = &wanted[at as usize..(at + n) as usize];
                    // While it is written each block may be old, where a drive reads it, or new.
                    let mut blocks = got.chunks(512).zip(right.chunks(512));
                    let known = blocks.all(|(b, old)| b == old || b.iter().all(|b| *b == 0x77));
                    assert!(result.is_err() || known, "seed {seed}: {i}");
                    io::Env::sleep(&sleeper, Nanos::from_micros(20)).await;
                }
                over.set(over.get() + 1);
            });
        }
        case.rebuild(&rig, &drives);
        for (at, bytes) in &lost {
            write(&rig, &volumes[1], *at, &vec![0x77; *bytes as usize]).unwrap();
        }
        while over.get() < volumes.len() {
            rig.world.run_for(Nanos::from_millis(1));
        }
        assert_eq!(list(&rig), []);
    }
}

/// Another drive is pulled while one is filled: Linux answers reads of it like bad blocks. What it
/// holds is not given up, and is all there when it is back.
#[test]
fn nothing_is_given_up_for_a_drive_that_is_gone() {
    for (seed, (level, width)) in [(500, (Level::Raid5, 4)), (501, (Level::Raid1, 2))] {
        let case = Case { level, width, bad: &[], replaced: 1, lost: &[] };
        let (rig, drives) = case.filled(seed);
        let victim = case.victim(&drives);
        let gone = (victim + 1) % width;
        rig.fail(victim).unwrap();
        rig.replace(victim, &drives[width]).unwrap();
        drives[gone].fail_range(0, drives[gone].info().bytes);
        drives[gone].fail_writes(0, u64::MAX);
        let env = rig.env();
        rig.world.block_on(CoreId(0), async move {
            io::Env::sleep(&env, Nanos::from_millis(2_000)).await;
        });
        rig.world.kill();
        for (slot, drive) in drives[..width].iter().enumerate().filter(|(s, _)| *s != victim) {
            assert!(record(drive).lost.is_empty(), "{level} slot {slot}");
        }
        let mut back = duplicates(&case.seated(&drives));
        if format::newest(record_images(&back[victim]).each_ref().map(|i| &i[..])).is_err() {
            back.remove(victim);
        }
        let rig = Rig::new(seed + 1, 1);
        rig.assemble(&references(&back), FORCE).unwrap();
        check(&rig, &content(), &[]);
    }
}

/// There is nothing to make right where one copy is left: what it can't give at a start it may
/// give later.
#[test]
fn a_resync_leaves_the_last_copy_alone() {
    for (seed, (level, width)) in [(510, (Level::Raid1, 2)), (511, (Level::Raid10, 4))] {
        let case = Case { level, width, bad: &[0], replaced: 1, lost: &[0] };
        let (rig, drives) = case.filled(seed);
        rig.fail(case.victim(&drives)).unwrap();
        let volume = rig.open_volume().remove(0);
        write(&rig, &volume, 0, &content()[..BLOCK as usize]).unwrap();
        rig.world.crash();
        case.spoil(&drives);
        let mut left = drives[..width].to_vec();
        left.remove(case.victim(&drives));
        let rig = Rig::new(seed + 1, 2);
        rig.assemble(&references(&left), FORCE).unwrap();
        rig.wait();
        check(&rig, &content(), &case.places(&left[0]));
        rig.world.kill();
        assert!(record(&left[0]).lost.is_empty(), "{level}");
        let rig = Rig::new(seed + 2, 1);
        rig.assemble(&references(&duplicates(&left)), FORCE).unwrap();
        check(&rig, &content(), &[]);
    }
}

/// An array that was stopped cleanly and whose map is on no drive any more, with a block of
/// stripe 4 that can't be read, which was written, and one of stripe 200, which never was.
fn forgotten(level: Level, width: usize, seed: u64) -> (Rig, u64) {
    let drives = drives(width, seed, seed % 2 == 0);
    let rig = Rig::new(seed, 1);
    rig.create(level, &drives, STRIP).unwrap();
    let volume = rig.volume(rig.status().size_bytes).remove(0);
    write(&rig, &volume, 0, &content()).unwrap();
    drop(volume);
    rig.stop();
    drives.iter().for_each(common::spoil_map);
    for stripe in [4, 200] {
        let (slot, at) = place(&drives[0], stripe, 0);
        drives[slot].fail_range(at + 3 * BLOCK, 2 * BLOCK);
    }
    let layout = record(&drives[0]).layout().unwrap();
    let last = layout::Place {
        group: GroupNo(0),
        stripe: StripeNo(200),
        strip: StripIndex(0),
        offset: 3 * BLOCK as u32,
    };
    let rig = Rig::new(seed + 1, 1);
    let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    assert_eq!(status.region_map.lost_pages, 1, "{level}");
    (rig, layout.array_offset(last))
}

/// Only the map was lost: redundancy is right in all that was ever written, and gives it though no
/// drive lacks. Where nothing was, P and Q contradict each other: there a block is nobody's.
#[test]
fn what_redundancy_gives_is_not_lost_with_the_map() {
    for (seed, level, width) in [(140, Level::Raid5, 4), (150, Level::Raid6, 5)] {
        for how in 0..3 {
            let (rig, never) = forgotten(level, width, seed + how * 2);
            let mut wanted = content();
            match how {
                0 => check(&rig, &wanted, &[]),
                1 => {
                    // Beside what can't be read, in the same columns.
                    let volume = &rig.open_volume()[0];
                    let at = u64::from(STRIP) * (u64::from(level_data(level, width)) * 4 + 1);
                    let range = at as usize..(at + u64::from(STRIP)) as usize;
                    wanted[range].fill(0x77);
                    write(&rig, volume, at, &vec![0x77; STRIP as usize]).unwrap();
                }
                _ => {}
            }
            rig.wait();
            let status = rig.status();
            assert_eq!((status.state, status.tasks.len()), (ArrayState::Optimal, 0), "{level}");
            let nobodys = vec![(never, 2 * BLOCK, Some(LostReason::Resync))];
            let listed = if level == Level::Raid6 { nobodys } else { vec![] };
            assert_eq!(list(&rig), listed, "{level} {how}");
            check(&rig, &wanted, &[]);
            assert_eq!(rig.scrub(false).mismatches, 0, "{level} {how}");
        }
    }
}

/// Data strips of a stripe.
fn level_data(level: Level, width: usize) -> u32 {
    width as u32 - if level == Level::Raid6 { 2 } else { 1 }
}
