//! Shared arrays: one server has one at a time. Each server is a world of its own, with its own
//! clock, over the same drives.

use crate::common;

use common::{Answer, Rig, drives, read, record, references, write};
use engine::manage::command::{
    ArrayStatus, Identity, ManageError, NewArray, OwnerStatus, Request, SlotHealth, StartOptions,
};
use format::limits::{OWNER_AT, OWNER_BYTES};
use format::owner::{self, OwnerPage};
use layout::Level;
use sim::SharedSimDrive;
use units::{MIB, Nanos, Slot, Uuid};

const STRIP: u32 = 16 << 10;
const PERIOD: Nanos = Nanos::from_millis(100);
const TAKES: StartOptions = StartOptions { take_over: true, ..StartOptions::NONE };
const TAKES_OFF: StartOptions = StartOptions { others_are_off: true, ..TAKES };

fn uuid(n: u8) -> Uuid {
    Uuid::from_random([n; 16])
}

/// A server that is started: which host, and which boot of it.
fn server(seed: u64, (host, boot): (u8, u8)) -> Rig {
    let rig = Rig::new(seed, 2);
    let name = format!("host-{host}");
    let identity = Identity { host: uuid(host), boot: uuid(boot), name, heartbeat: PERIOD };
    rig.ask(|reply| Request::Identify(identity, reply)).unwrap();
    rig
}

fn create(rig: &Rig, level: Level, drives: &[SharedSimDrive]) -> Result<ArrayStatus, ManageError> {
    let new =
        NewArray { shared: true, name: "a".into(), level, strip_bytes: STRIP, block_bytes: None };
    rig.ask(|reply| Request::Create(new, references(drives), reply))
}

fn page(drive: &SharedSimDrive) -> Option<OwnerPage> {
    owner::decode(&drive.peek(OWNER_AT, OWNER_BYTES as u64))
}

fn pages(drives: &[SharedSimDrive]) -> Vec<OwnerPage> {
    drives.iter().map(|drive| page(drive).expect("has one")).collect()
}

fn own(rig: &Rig) -> OwnerStatus {
    rig.status().owner.expect("is shared")
}

/// Starts the array, and does not wait.
fn start(rig: &Rig, drives: &[SharedSimDrive], options: StartOptions) -> Answer<Vec<ArrayStatus>> {
    let drives = references(drives);
    rig.send(|reply| Request::Assemble(None, drives, options, reply))
}

/// Runs both servers, a bit of the one and a bit of the other, until the first is answered.
fn beside<T>(rig: &Rig, other: &Rig, answer: &Answer<T>) -> Result<T, ManageError> {
    for _ in 0..10_000 {
        if let Some(answer) = answer.lock().unwrap().take() {
            return answer;
        }
        rig.world.run_for(Nanos::from_millis(7));
        other.world.run_for(Nanos::from_millis(7));
    }
    panic!("never answered");
}

fn is_owned<T>(result: &Result<T, ManageError>, by: &str) -> bool {
    matches!(result, Err(ManageError::Owned { host, .. }) if host == by)
}

#[test]
fn the_record_and_every_drive_say_who_has_it_until_a_clean_stop() {
    let drives = drives(4, 1, false);
    let rig = server(1, (1, 11));
    create(&rig, Level::Raid5, &drives).unwrap();
    let first = pages(&drives);
    for (drive, page) in drives.iter().zip(&first) {
        let (record, named) = (record(drive), page.owner.unwrap());
        assert!(record.shared && record.owner == Some(named));
        assert_eq!((named.host, named.boot), (uuid(1), uuid(11)));
        assert_eq!((page.array, page.period_ms, page.fence_ms), (record.array, 100, 0));
        assert_eq!(page.name, "host-1");
    }
    rig.world.run_for(Nanos::from_millis(1_000));
    for (page, first) in pages(&drives).iter().zip(&first) {
        assert_eq!((page.term, page.owner), (first.term, first.owner));
        assert!(page.heartbeat > first.heartbeat + 20, "ten times on each of four drives");
    }
    assert!(!own(&rig).is_held && own(&rig).taken_by.is_none());
    rig.stop();
    for (drive, page) in drives.iter().zip(pages(&drives)) {
        assert!(record(drive).shared && record(drive).owner.is_none());
        assert_eq!(page.owner, None);
    }
    // Whoever comes next needs to wait for nobody.
    let other = server(2, (2, 12));
    let before = other.world.now();
    other.assemble(&references(&drives), StartOptions::NONE).unwrap();
    assert!(other.world.now().since(before) < Nanos(4 * PERIOD.0));
    assert_eq!(record(&drives[0]).owner.map(|own| own.host), Some(uuid(2)));
}

#[test]
fn an_array_that_is_not_shared_says_nothing() {
    let drives = drives(3, 2, false);
    let rig = server(2, (1, 11));
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    rig.world.run_for(Nanos::from_millis(1_000));
    assert!(rig.status().owner.is_none() && page(&drives[0]).is_none());
    assert!(!record(&drives[0]).shared && record(&drives[0]).owner.is_none());
}

#[test]
fn nobody_has_a_shared_array_who_has_no_name() {
    let drives = drives(3, 3, false);
    let rig = Rig::new(3, 1);
    let refused = create(&rig, Level::Raid5, &drives);
    assert!(matches!(refused, Err(ManageError::NoIdentity(_))), "{refused:?}");
    let named = server(4, (1, 11));
    create(&named, Level::Raid5, &drives).unwrap();
    named.stop();
    let refused = rig.assemble(&references(&drives), StartOptions::NONE);
    assert!(matches!(refused, Err(ManageError::NoIdentity(_))), "{refused:?}");
}

#[test]
fn while_the_owner_lives_nobody_takes_it() {
    for seed in 0..4 {
        let drives = drives(4, 10 + seed, false);
        let (one, other) = (server(10 + seed, (1, 11)), server(20 + seed, (2, 12)));
        create(&one, Level::Raid6, &drives).unwrap();
        let volume = one.volume(MIB);
        for options in [StartOptions::NONE, TAKES_OFF] {
            let refused = beside(&other, &one, &start(&other, &drives, options));
            assert!(is_owned(&refused, "host-1"), "{refused:?}");
        }
        // The owner has seen nothing of it.
        write(&one, &volume[0], 0, &[7; 4096]).unwrap();
        assert!(!own(&one).is_held && own(&one).taken_by.is_none());
        assert_eq!(record(&drives[0]).owner.map(|own| own.host), Some(uuid(1)));
    }
}

#[test]
fn one_that_stands_still_is_taken_over_and_sees_it() {
    for (seed, level) in [(30, Level::Raid5), (31, Level::Raid10), (32, Level::Raid0)] {
        let drives = drives(4, seed, false);
        let (one, other) = (server(seed, (1, 11)), server(seed + 10, (2, 12)));
        create(&one, level, &drives).unwrap();
        let volume = one.volume(MIB);
        write(&one, &volume[0], 0, &[1; 8192]).unwrap();
        one.world.run_for(PERIOD);
        // From here on it stands still.
        let refused = other.assemble(&references(&drives), StartOptions::NONE);
        assert!(is_owned(&refused, "host-1"), "{refused:?}");
        let refused = other.assemble(&references(&drives), TAKES);
        assert!(matches!(refused, Err(ManageError::NeedsOthersOff(_))), "{refused:?}");
        let before = other.world.now();
        other.assemble(&references(&drives), TAKES_OFF).unwrap();
        let waited = other.world.now().since(before);
        assert!(waited >= Nanos(1_000_000_000 + 4 * PERIOD.0), "{waited:?}");
        let taken = other.open_volume();
        assert_eq!(read(&other, &taken[0], 0, 8192).unwrap(), [1; 8192]);
        write(&other, &taken[0], 0, &[2; 4096]).unwrap();
        // It wakes, and sees whose pages these are.
        one.world.run_for(Nanos(2 * PERIOD.0));
        assert_eq!(own(&one).taken_by.as_deref(), Some("host-2"));
        assert!(write(&one, &volume[0], 4096, &[3; 4096]).is_err());
        assert!(read(&one, &volume[0], 0, 4096).is_err(), "what it reads may be old");
        one.stop();
        for (drive, page) in drives.iter().zip(pages(&drives)) {
            assert_eq!(page.owner.map(|own| own.host), Some(uuid(2)));
            assert_eq!(record(drive).owner.map(|own| own.host), Some(uuid(2)));
        }
        assert_eq!(read(&other, &taken[0], 4096, 4096).unwrap(), [1; 4096]);
        if level != Level::Raid0 {
            assert_eq!(other.scrub(false).mismatches, 0);
        }
        other.world.run_for(Nanos(8 * PERIOD.0));
        assert!(!own(&other).is_held && own(&other).taken_by.is_none());
    }
}

#[test]
fn another_boot_of_the_host_waits_and_a_dead_process_need_not() {
    for (seed, boot, waits) in [(40, 12, true), (41, 11, false)] {
        let drives = drives(4, seed, false);
        let one = server(seed, (1, 11));
        create(&one, Level::Raid5, &drives).unwrap();
        one.world.run_for(PERIOD);
        let next = server(seed + 10, (1, boot));
        let before = next.world.now();
        next.assemble(&references(&drives), StartOptions::NONE).unwrap();
        let waited = next.world.now().since(before);
        assert_eq!(waited >= Nanos(1_000_000_000 + 4 * PERIOD.0), waits, "{waited:?}");
        assert_eq!(record(&drives[0]).owner.map(|own| own.boot), Some(uuid(boot)));
    }
}

/// It was under way when its server ended. A second one of the same drive shows that it lives.
#[test]
fn a_page_of_a_dead_owner_may_land_late_and_no_two() {
    let moves = |drive: &SharedSimDrive, term: u64| {
        let page = page(drive).expect("has one");
        let moved = OwnerPage { heartbeat: page.heartbeat + 4, term: page.term + term, ..page };
        drive.overwrite(OWNER_AT, &owner::encode(&moved));
    };
    for (late, is_taken) in [
        (&[(0, 0)][..], true),
        (&[(0, 0), (3, 0), (1, 0)], true),
        (&[(0, 0), (2, 0), (0, 0)], false),
        (&[(1, 1)], false),
    ] {
        let drives = drives(4, 45, false);
        let one = server(45, (1, 11));
        create(&one, Level::Raid5, &drives).unwrap();
        one.world.run_for(PERIOD);
        one.world.kill();
        let next = server(46, (1, 12));
        let before = next.world.now();
        let started = start(&next, &drives, StartOptions::NONE);
        for (drive, term) in late {
            next.world.run_for(Nanos(3 * PERIOD.0));
            assert!(started.lock().unwrap().is_none(), "{late:?}: it waits");
            moves(&drives[*drive], *term);
        }
        let waits = Nanos(1_000_000_000 + 4 * PERIOD.0 + 3 * PERIOD.0 * late.len() as u64);
        let started = next.answered(&started);
        match is_taken {
            true => assert!(started.is_ok() && next.world.now().since(before) >= waits),
            false => assert!(is_owned(&started, "host-1"), "{late:?}: {started:?}"),
        }
    }
}

/// It was reached by another way last, and what it sent by that may take longer.
#[test]
fn what_a_late_page_says_counts() {
    let drives = drives(4, 48, false);
    let one = server(48, (1, 11));
    create(&one, Level::Raid5, &drives).unwrap();
    one.world.run_for(PERIOD);
    one.world.kill();
    let next = server(49, (1, 12));
    let started = start(&next, &drives, StartOptions::NONE);
    next.world.run_for(PERIOD);
    let page = page(&drives[1]).expect("has one");
    let late = OwnerPage { heartbeat: page.heartbeat + 4, fence_ms: 5_000, ..page };
    drives[1].overwrite(OWNER_AT, &owner::encode(&late));
    let before = next.world.now();
    next.answered(&started).unwrap();
    assert!(next.world.now().since(before) >= Nanos::from_millis(6_000));
}

/// A host id that two machines have by mistake.
#[test]
fn another_boot_that_lives_is_not_taken_for_dead() {
    let drives = drives(4, 50, false);
    let (one, other) = (server(50, (1, 11)), server(51, (1, 12)));
    create(&one, Level::Raid5, &drives).unwrap();
    let refused = beside(&other, &one, &start(&other, &drives, StartOptions::NONE));
    assert!(is_owned(&refused, "host-1"), "{refused:?}");
}

#[test]
fn of_two_that_start_it_at_a_time_one_has_it_at_most() {
    let mut had = 0;
    for seed in 60..80 {
        // Of a mirror each can have half of the pages.
        let (level, count) = [(Level::Raid5, 4), (Level::Raid1, 2)][seed as usize % 2];
        let drives = drives(count, seed, false);
        let maker = server(seed, (3, 13));
        create(&maker, level, &drives).unwrap();
        maker.stop();
        let (one, other) = (server(seed, (1, 11)), server(seed + 100, (2, 12)));
        let first = start(&one, &drives, StartOptions::NONE);
        one.world.run_for(Nanos::from_micros(seed % 5 * 100));
        let second = start(&other, &drives, StartOptions::NONE);
        for _ in 0..200_000 {
            if first.lock().unwrap().is_some() && second.lock().unwrap().is_some() {
                break;
            }
            one.world.run_for(Nanos::from_micros(50));
            other.world.run_for(Nanos::from_micros(50));
        }
        let first = first.lock().unwrap().take().expect("answered");
        let second = second.lock().unwrap().take().expect("answered");
        assert!(first.is_err() || second.is_err(), "seed {seed}");
        had += usize::from(first.is_ok() || second.is_ok());
    }
    assert!(had > 5, "{had} of 20 had an owner");
}

/// Changes wait while too few drives confirm, and go on when enough do.
#[test]
fn what_is_not_confirmed_is_held() {
    let drives = drives(4, 80, false);
    let rig = server(80, (1, 11));
    create(&rig, Level::Raid5, &drives).unwrap();
    let volume = rig.volume(MIB);
    write(&rig, &volume[0], 0, &[1; 4096]).unwrap();
    // Nothing that they are asked is answered.
    drives[..2].iter().for_each(|drive| drive.hold(0, u64::MAX));
    rig.world.run_for(Nanos(6 * PERIOD.0));
    drives[..2].iter().for_each(|drive| drive.hold(0, 0));
    assert!(own(&rig).is_held);
    let (volume, mut data) = (volume[0].clone(), io::Pool::single(4096));
    data.fill(2);
    let written = std::rc::Rc::new(core::cell::Cell::new(None));
    let slot = written.clone();
    io::Env::spawn(&rig.env(), io::Priority::First, async move {
        let done = io::Blocks::write(&volume, 0, data.freeze(), false).await;
        slot.set(Some(done));
    });
    rig.world.run_for(Nanos::from_micros(500));
    assert_eq!(written.get(), None);
    drives[..2].iter().for_each(SharedSimDrive::release);
    rig.world.run_for(Nanos(3 * PERIOD.0));
    assert_eq!(written.get(), Some(Ok(())));
    assert!(!own(&rig).is_held);
}

/// One drive that does not confirm holds nothing up where the group can do without it.
#[test]
fn a_slow_drive_holds_nothing_up() {
    let drives = drives(4, 81, false);
    let rig = server(81, (1, 11));
    create(&rig, Level::Raid5, &drives).unwrap();
    drives[0].hold(0, u64::MAX);
    rig.world.run_for(Nanos(6 * PERIOD.0));
    assert!(!own(&rig).is_held);
}

#[test]
fn a_drive_that_is_put_in_says_so_too() {
    let drives = drives(5, 82, false);
    let rig = server(82, (1, 11));
    create(&rig, Level::Raid5, &drives[..4]).unwrap();
    rig.fail(1).unwrap();
    rig.world.run_for(Nanos(6 * PERIOD.0));
    assert!(!own(&rig).is_held);
    rig.replace(1, &drives[4]).unwrap();
    rig.wait();
    rig.world.run_for(Nanos(2 * PERIOD.0));
    assert_eq!(page(&drives[4]).unwrap().term, page(&drives[0]).unwrap().term);
    rig.fail(2).unwrap();
    rig.give_back(2, &drives[2]).unwrap();
    rig.wait();
    assert_eq!(rig.status().slots[2].health, SlotHealth::InSync);
    assert!(own(&rig).taken_by.is_none());
    // Not one that another server has meanwhile.
    rig.fail(2).unwrap();
    let page = OwnerPage {
        owner: Some(format::Owner { host: uuid(9), boot: uuid(9) }),
        term: 4,
        name: "host-9".into(),
        ..page(&drives[2]).unwrap()
    };
    drives[2].overwrite(OWNER_AT, &owner::encode(&page));
    let refused = rig.give_back(2, &drives[2]);
    assert!(is_owned(&refused, "host-9"), "{refused:?}");
    assert!(rig.status().slots[2].slot == Slot(2) && own(&rig).taken_by.is_none());
}

/// Halves of a mirror could be with two servers that don't see each other.
#[test]
fn half_of_a_mirror_starts_when_the_others_are_off() {
    let drives = drives(2, 83, false);
    let one = server(83, (1, 11));
    create(&one, Level::Raid1, &drives).unwrap();
    one.stop();
    let other = server(84, (2, 12));
    let degraded = StartOptions { start_degraded: true, ..StartOptions::NONE };
    let refused = other.assemble(&references(&drives[..1]), degraded);
    assert!(matches!(refused, Err(ManageError::NeedsOthersOff(_))), "{refused:?}");
    let off = StartOptions { others_are_off: true, ..degraded };
    other.assemble(&references(&drives[..1]), off).unwrap();
}

/// Whatever waits because its drives are gone ends, and the array can be stopped.
#[test]
fn an_array_that_lacks_too_many_drives_can_be_stopped() {
    for (seed, level, gone, hangs) in [
        (90, Level::Raid5, 2, false),
        (91, Level::Raid5, 2, true),
        (92, Level::Raid0, 1, true),
        (93, Level::Raid6, 4, true),
    ] {
        let drives = drives(4, seed, false);
        let rig = server(seed, (1, 11));
        create(&rig, level, &drives).unwrap();
        let volume = rig.volume(MIB);
        write(&rig, &volume[0], 0, &[1; 4096]).unwrap();
        for drive in &drives[..gone] {
            if hangs { drive.hang() } else { drive.vanish() }
        }
        rig.world.run_for(Nanos(6 * PERIOD.0));
        assert!(write(&rig, &volume[0], 0, &[2; 4 * STRIP as usize]).is_err());
        rig.stop();
    }
}

/// It stood still while another server had the array, and has let it go: it is that server's to say
/// who has it next.
#[test]
fn one_that_wakes_when_the_array_is_nobodys_has_it_no_more() {
    let drives = drives(4, 95, false);
    let (one, other) = (server(95, (1, 11)), server(96, (2, 12)));
    create(&one, Level::Raid5, &drives).unwrap();
    let volume = one.volume(MIB);
    write(&one, &volume[0], 0, &[1; 4096]).unwrap();
    other.assemble(&references(&drives), TAKES_OFF).unwrap();
    other.stop();
    one.world.run_for(Nanos(2 * PERIOD.0));
    assert!(own(&one).taken_by.is_some());
    assert!(write(&one, &volume[0], 0, &[3; 4096]).is_err());
    one.stop();
    assert!(pages(&drives).iter().all(|page| page.owner.is_none()));
    other.assemble(&references(&drives), StartOptions::NONE).unwrap();
}

#[test]
fn a_page_that_is_damaged_is_written_anew() {
    let drives = drives(4, 85, false);
    let rig = server(85, (1, 11));
    create(&rig, Level::Raid5, &drives).unwrap();
    drives[3].overwrite(OWNER_AT, &[5; OWNER_BYTES]);
    rig.world.run_for(Nanos(3 * PERIOD.0));
    assert_eq!(page(&drives[3]).unwrap().term, page(&drives[0]).unwrap().term);
    assert!(own(&rig).taken_by.is_none() && !own(&rig).is_held);
}

/// Each runs for a while in turn, until both are answered.
fn both<T, U>(rigs: [&Rig; 2], first: &Answer<T>, second: &Answer<U>) {
    for _ in 0..200_000 {
        if first.lock().unwrap().is_some() && second.lock().unwrap().is_some() {
            return;
        }
        rigs.iter().for_each(|rig| rig.world.run_for(Nanos::from_micros(50)));
    }
    panic!("never answered");
}

/// Who is refused has erased nothing of the other's.
#[test]
fn of_two_that_make_arrays_of_the_same_drives_one_has_them() {
    let mut refused = 0;
    for step in 0..40 {
        let drives = drives(4, 200 + step, false);
        let (one, other) = (server(200 + step, (1, 11)), server(300 + step, (2, 12)));
        let new = || NewArray {
            shared: true,
            name: "a".into(),
            level: Level::Raid5,
            strip_bytes: STRIP,
            block_bytes: None,
        };
        let second = other.send(|reply| Request::Create(new(), references(&drives), reply));
        other.world.run_for(Nanos::from_micros(step * 50));
        let first = one.send(|reply| Request::Create(new(), references(&drives), reply));
        one.world.run_for(Nanos::from_micros(step % 7 * 5_000));
        both([&one, &other], &first, &second);
        let first = first.lock().unwrap().take().unwrap();
        let second = second.lock().unwrap().take().unwrap();
        assert!(first.is_err() || second.is_err(), "step {step}");
        let ((Ok(made), _) | (_, Ok(made))) = (&first, &second) else { continue };
        refused += 1;
        for drive in &drives {
            let record = record(drive);
            assert_eq!((record.array, record.zeroed), (made.uuid, true), "step {step}");
            assert_eq!(page(drive).map(|page| page.array), Some(made.uuid), "step {step}");
        }
    }
    assert!(refused > 10, "{refused} of 40 had an owner");
}

/// Runs a server until it has erased the first drive of the array that it is deleting.
fn delete_half(rig: &Rig, drives: &[SharedSimDrive]) -> Answer<()> {
    let answer = rig.send(|reply| Request::Delete("a".into(), reply));
    for _ in 0..100_000 {
        if page(&drives[0]).is_none() {
            return answer;
        }
        rig.world.run_for(Nanos::from_micros(5));
    }
    panic!("it is never erased");
}

/// What is still to be erased must not be another's array by then.
#[test]
fn an_array_that_is_being_deleted_is_still_this_servers() {
    let drives = drives(4, 97, false);
    let (one, other) = (server(97, (1, 11)), server(98, (2, 12)));
    create(&one, Level::Raid5, &drives).unwrap();
    let deleted = delete_half(&one, &drives);
    assert!(is_owned(&create(&other, Level::Raid5, &drives), "host-1"));
    one.world.run_for(Nanos(PERIOD.0));
    deleted.lock().unwrap().take().unwrap().unwrap();
    assert!(drives.iter().all(|drive| page(drive).is_none()));
    create(&other, Level::Raid5, &drives).unwrap();
}

#[test]
fn who_stands_still_as_he_deletes_an_array_erases_nothing_of_anothers() {
    for stops in [false, true] {
        let drives = drives(4, 99, false);
        let (one, other) = (server(99, (1, 11)), server(100, (2, 12)));
        create(&one, Level::Raid5, &drives).unwrap();
        let deleted = delete_half(&one, &drives);
        let degraded = StartOptions { start_degraded: true, ..TAKES_OFF };
        other.assemble(&references(&drives), degraded).unwrap();
        let taken = record(&drives[2]);
        if stops {
            other.stop();
        }
        one.world.run_for(Nanos(PERIOD.0));
        let refused = deleted.lock().unwrap().take().unwrap();
        let words = refused.unwrap_err().to_string();
        assert!(words.contains(if stops { "another server" } else { "host-2" }), "{words}");
        // What it was erasing was asked before, and no more than that.
        assert!(drives[2..].iter().all(|drive| record(drive).array == taken.array));
    }
}

/// Two servers put the same drive in: one has it, and the other erases nothing of it.
#[test]
fn of_two_that_put_the_same_drive_in_one_has_it() {
    let mut had = 0;
    for step in 0..20 {
        let (mine, others) = (drives(3, 400 + step, false), drives(3, 500 + step, false));
        let spare = drives(1, 600 + step, false);
        let (one, other) = (server(400 + step, (1, 11)), server(500 + step, (2, 12)));
        for (rig, own) in [(&one, &mine), (&other, &others)] {
            create(rig, Level::Raid5, own).unwrap();
            own[0].vanish();
            rig.world.run_for(Nanos(6 * PERIOD.0));
        }
        let put_in = |rig: &Rig| {
            let new = references(&spare).remove(0);
            rig.send(|reply| Request::Replace("a".into(), Slot(0), new, reply))
        };
        let first = put_in(&one);
        one.world.run_for(Nanos::from_micros(step * 40));
        let second = put_in(&other);
        both([&one, &other], &first, &second);
        let first = first.lock().unwrap().take().unwrap();
        let second = second.lock().unwrap().take().unwrap();
        assert!(first.is_err() || second.is_err(), "step {step}");
        let ((Ok(made), _) | (_, Ok(made))) = (&first, &second) else { continue };
        had += 1;
        assert_eq!(record(&spare[0]).array, made.uuid, "step {step}");
        assert_eq!(page(&spare[0]).map(|page| page.array), Some(made.uuid), "step {step}");
    }
    assert!(had > 5, "{had} of 20 had an owner");
}
