//! Volumes: made, resized and deleted under I/O; bounds; zeros where zeros are promised.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Machine, Rig, drives, flush, read, record, references};
use engine::Volume;
use engine::manage::command::{
    ExportStatus, ManageError, NewSize, Request, Shrink, StartOptions, VolumeStatus,
};
use format::ExportAddress;
use io::{BlockError, Blocks, Pool};
use layout::Level;
use sim::{DiscardContent, DriveConfig, SharedSimDrive};
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;
const MIX: Mix = Mix { tasks: 6, operations: 60, blocks_most: 200, read_percent: 40 };
const LEVELS: &[(Level, usize)] = &[
    (Level::Raid5, 4),
    (Level::Raid6, 5),
    (Level::Raid1, 2),
    (Level::Raid10, 4),
    (Level::Raid0, 3),
    (Level::Jbod, 3),
];

fn create(rig: &Rig, name: &str, bytes: u64) -> Result<VolumeStatus, ManageError> {
    rig.ask(|r| Request::VolumeCreate("a".into(), name.into(), bytes, r))
}

fn open(rig: &Rig, name: &str) -> Vec<Volume<Machine>> {
    let status = rig.status();
    let uuid = status.volumes.iter().find(|v| v.name == name).unwrap().uuid;
    rig.cores.iter().map(|core| Volume::new(core.array(status.id).unwrap(), uuid)).collect()
}

fn is_zero(rig: &Rig, volume: &Volume<Machine>, at: u64, bytes: u64) -> bool {
    read(rig, volume, at, bytes).unwrap().iter().all(|b| *b == 0)
}

/// Volumes come, grow, shrink and go beside one that is in use; rows of a deleted volume read as
/// zeros in the next, and nothing reaches the neighbour.
#[test]
fn volumes_change_beside_each_other_under_load() {
    for (i, (level, width)) in LEVELS.iter().copied().enumerate() {
        let seed = i as u64;
        let drives = drives(width, seed, seed % 2 == 0);
        drives.iter().for_each(|d| d.set_write_zeroes(seed % 2 == 0));
        let rig = Rig::new(seed, 1 + (seed % 2) as u16);
        let made = rig.create(level, &drives, STRIP).unwrap();
        let row = made.size_bytes / 4;
        create(&rig, "one", row - 512).unwrap();
        let one = open(&rig, "one");
        let oracle = Oracle::new(row - 512, seed % 2 == 0);
        oracle.start(&rig, &one, Mix { operations: 400, ..MIX }, seed);
        for round in 0..3 {
            create(&rig, "two", row / 2).unwrap();
            let two = open(&rig, "two");
            assert!(is_zero(&rig, &two[0], 0, row / 2), "{level}: a new volume is zero");
            let filled = Oracle::new(2 * row, seed % 2 == 0);
            filled.start(&rig, &two, MIX, seed + round);
            rig.world.run_for(Nanos::from_micros(300));
            rig.ask(|r| Request::VolumeResize("a".into(), "two".into(), (2 * row).into(), r))
                .unwrap();
            filled.finish(&rig);
            filled.verify(&rig, &two[0], false);
            filled.errors.set(true);
            // Requests of many stripes, whose later parts begin late.
            let long = Mix { operations: 5, blocks_most: 6000, read_percent: 0, ..MIX };
            filled.start(&rig, &two, long, seed + round);
            rig.world.run_for(Nanos::from_micros(100));
            rig.ask(|r| Request::VolumeResize("a".into(), "two".into(), 4096.into(), r)).unwrap();
            // What it gave up is another's at once, whatever still runs.
            create(&rig, "three", row * 2).unwrap();
            let three = open(&rig, "three");
            assert!(is_zero(&rig, &three[0], 0, row * 2), "{level}: given-up rows are zero");
            filled.finish(&rig);
            assert!(is_zero(&rig, &three[0], 0, row * 2), "{level}: nothing came late");
            assert_eq!(two[0].bytes(), 4096);
            rig.ask(|r| Request::VolumeResize("a".into(), "two".into(), 8192.into(), r)).unwrap();
            assert!(is_zero(&rig, &two[0], 4096, 4096), "{level}: the gained tail is zero");
            for name in ["two", "three"] {
                rig.ask(|r| Request::VolumeDelete("a".into(), name.into(), r)).unwrap();
            }
            assert_eq!(read(&rig, &two[0], 0, 512), Err(BlockError::Stopped));
        }
        oracle.finish(&rig);
        oracle.verify(&rig, &one[0], false);
    }
}

/// Zeros of a new volume are durable before the volume is: a power cut right behind its creation
/// never shows what was in its rows.
#[test]
fn zeros_of_a_new_volume_survive_a_power_cut() {
    for seed in 0..6 {
        let drives = drives(4, seed, true);
        let rig = Rig::new(seed, 1);
        let size = rig.create(Level::Raid5, &drives, STRIP).unwrap().size_bytes;
        create(&rig, "old", size).unwrap();
        let old = open(&rig, "old");
        let oracle = Oracle::new(size, true);
        oracle.start(&rig, &old, Mix { operations: 20, read_percent: 0, ..MIX }, seed);
        oracle.finish(&rig);
        flush(&rig, &old[0]).unwrap();
        rig.ask(|r| Request::VolumeDelete("a".into(), "old".into(), r)).unwrap();
        create(&rig, "new", size).unwrap();
        rig.world.crash();
        drop(old);
        let rig = Rig::new(seed + 1, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        let new = open(&rig, "new");
        assert!(is_zero(&rig, &new[0], 0, size), "seed {seed}");
    }
}

#[test]
fn requests_outside_a_volume_touch_nothing() {
    let drives = drives(4, 1, false);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let volume = rig.volume(MIB).remove(0);
    let before: Vec<_> = drives.iter().map(SharedSimDrive::contents).collect();
    let v = volume.clone();
    rig.world.block_on(CoreId(0), async move {
        let cases = [
            (MIB, 512),
            (MIB - 512, 1024),
            (256, 512),
            (0, 100),
            (u64::MAX - 511, 512),
            (u64::MAX, 1),
            (0, 2 * MIB),
        ];
        for (at, bytes) in cases {
            let data = Pool::single(bytes as usize).freeze();
            assert_eq!(v.write(at, data, true).await, Err(BlockError::Bounds), "{at}+{bytes}");
            assert_eq!(v.write_zeroes(at, bytes, true).await, Err(BlockError::Bounds));
            assert_eq!(v.discard(at, bytes).await, Err(BlockError::Bounds));
            let (result, _) = v.read(at, Pool::single(bytes as usize)).await;
            assert_eq!(result, Err(BlockError::Bounds));
        }
        // Nothing at the very end is fine.
        assert_eq!(v.write(MIB, Pool::single(0).freeze(), true).await, Ok(()));
        assert_eq!(v.read(MIB, Pool::single(0)).await.0, Ok(()));
    });
    assert!(drives.iter().zip(before).all(|(d, b)| d.contents() == b));
    let refused = create(&rig, "x", 100);
    assert!(matches!(refused, Err(ManageError::BadSize(100, 512))));
    assert!(matches!(create(&rig, "v", 512), Err(ManageError::NameTaken(_))));
    assert!(matches!(create(&rig, "a/b", 512), Err(ManageError::BadName(_))));
    assert!(matches!(create(&rig, "x", 1 << 40), Err(ManageError::NoSpace { .. })));
}

/// Discarded rows and zeroed ranges read as zeros, and parity agrees, whatever drives do.
#[test]
fn discarded_blocks_are_zero_whatever_drives_return() {
    use DiscardContent::{Changing, Old, Random, Unsupported, Zero};
    for (i, discard) in [Old, Zero, Random, Changing, Unsupported].into_iter().enumerate() {
        for (level, width) in LEVELS.iter().copied() {
            let config = |d| {
                let config = DriveConfig::new(common::DRIVE_BYTES, (i * 10 + d) as u64);
                DriveConfig { discard, write_zeroes: i % 2 == 0, ..config }
            };
            let drives: Vec<_> = (0..width).map(|d| SharedSimDrive::new(config(d))).collect();
            let rig = Rig::new(i as u64, 1);
            rig.create(level, &drives, STRIP).unwrap();
            let row = record(&drives[0]).layout().unwrap().row_bytes(0);
            let (volume, size) = (rig.volume(2 * row).remove(0), 2 * row);
            let oracle = Oracle::new(size, false);
            let mix = Mix { operations: 10, read_percent: 0, ..MIX };
            oracle.start(&rig, core::slice::from_ref(&volume), mix, i as u64);
            oracle.finish(&rig);
            let v = volume.clone();
            rig.world.block_on(CoreId(0), async move {
                v.discard(0, row + 4096).await.unwrap();
                v.write_zeroes(row + (600 << 10), 100 << 10, false).await.unwrap();
            });
            assert!(is_zero(&rig, &volume, 0, row));
            assert!(is_zero(&rig, &volume, row + (600 << 10), 100 << 10));
            oracle.forgive(0, row);
            oracle.forgive(row + (600 << 10), 100 << 10);
            oracle.verify(&rig, &volume, false);
            if !matches!(level, Level::Raid0 | Level::Jbod) {
                assert_eq!(rig.scrub(false).mismatches, 0);
            }
        }
    }
}

/// Who means a volume by its identity never meets another that has its name by now.
#[test]
fn a_volume_is_not_taken_for_the_next_of_its_name() {
    let drives = drives(3, 1, false);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let made = |name: &str| rig.ask(|r| Request::VolumeCreate("a".into(), name.into(), 4096, r));
    let first = made("v").unwrap();
    let said = |error: ManageError| error.to_string();
    let gone =
        || rig.ask(|r| Request::VolumeDelete("a".into(), first.uuid.into(), r)).map_err(said);
    let sized = || {
        let sized = |r| Request::VolumeResize("a".into(), first.uuid.into(), 8192.into(), r);
        rig.ask(sized).map(|volume| volume.bytes).map_err(said)
    };
    let served = || {
        let address = ExportAddress::NbdUnix("/run/v".into());
        let served = |r| Request::ExportCreate("a".into(), first.uuid.into(), address, r);
        rig.ask(served).map(|export| export.id).map_err(said)
    };
    assert_eq!(sized(), Ok(8192));
    gone().unwrap();
    let second = made("v").unwrap();
    // Nor does a name that reads as an identity stand for it.
    made(&first.uuid.to_string()).unwrap();
    let missing = format!("array \"a\" has no volume \"{}\"", first.uuid);
    assert_eq!(gone(), Err(missing.clone()));
    assert_eq!(sized(), Err(missing.clone()));
    assert_eq!(served(), Err(missing));
    assert_eq!(rig.status().volumes[0], second);
}

#[test]
fn an_export_is_another_from_now_on_or_stays_what_it_is() {
    let drives = drives(3, 1, false);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let volume = rig.ask(|r| Request::VolumeCreate("a".into(), "v".into(), 4096, r)).unwrap();
    let unix = |path: &str| ExportAddress::NbdUnix(path.into());
    let made = |r| Request::ExportCreate("a".into(), volume.uuid.into(), unix("/run/v"), r);
    let made = rig.ask(made).unwrap();
    let set = |id, address| {
        let set = |r| Request::ExportSet("a".into(), id, address, r);
        rig.ask(set).map_err(|error| error.to_string())
    };
    let now = ExportStatus { address: unix("/run/w"), ..made.clone() };
    assert_eq!(set(made.id, unix("/run/w")), Ok(now.clone()));
    assert_eq!(rig.status().exports, std::slice::from_ref(&now));
    assert!(set(made.id, unix("")).is_err(), "such a record can't be");
    assert!(set(made.id + 1, unix("/run/x")).is_err(), "there is none");
    assert_eq!(rig.status().exports, [now]);
}

#[test]
fn a_volume_becomes_smaller_only_if_that_was_meant() {
    let drives = drives(3, 1, false);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let volume = rig.ask(|r| Request::VolumeCreate("a".into(), "v".into(), 4096, r)).unwrap();
    let send = |bytes: u64, shrink: Shrink| {
        let size = NewSize { bytes, shrink };
        rig.send(|r| Request::VolumeResize("a".into(), volume.uuid.into(), size, r))
    };
    let said = |answer: common::Answer<VolumeStatus>| {
        rig.answered(&answer).map(|volume| volume.bytes).map_err(|error| error.to_string())
    };
    // Of two that were to make it larger the second would make it smaller.
    let first = send(MIB, Shrink::Never);
    rig.world.run_for(Nanos::from_micros(20));
    assert!(first.lock().unwrap().is_none(), "it is under way");
    let second = send(65536, Shrink::Never);
    let third = send(8192, Shrink::From(4096));
    let lost = |bytes: u64| Err(format!("this destroys the last {bytes} bytes of the volume"));
    assert_eq!(said(first), Ok(MIB));
    assert_eq!(said(second), lost(MIB - 65536));
    assert_eq!(said(third), lost(MIB - 8192), "it was agreed to for another size");
    assert_eq!(said(send(8192, Shrink::From(MIB))), Ok(8192));
    assert_eq!(said(send(8192, Shrink::Never)), Ok(8192), "as large as it is");
}
