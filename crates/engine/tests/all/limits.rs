//! Requests beyond what a record holds are refused, and the array goes on.

use crate::common;

use common::{Rig, drives, record, reference, references};
use engine::manage::command::{ManageError, NewArray, Request};
use format::ExportAddress;
use format::limits::{ADDRESS_MAX, EXPORTS_MAX, SERIAL_MAX, VOLUMES_MAX};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use units::{MIB, Slot};

const STRIP: u32 = 16 << 10;

fn impossible<T>(result: Result<T, ManageError>) -> bool {
    matches!(result, Err(ManageError::Impossible(_)))
}

#[test]
fn too_many_exports_are_refused() {
    let drives = drives(3, 1, false);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    rig.volume(MIB);
    let export = |path: String| {
        let address = ExportAddress::NbdUnix(path);
        rig.ask(|r| Request::ExportCreate("a".into(), "v".into(), address, r))
    };
    for i in 0..EXPORTS_MAX {
        export(format!("/run/{i}")).unwrap();
    }
    assert!(impossible(export("/run/more".into())));
    assert_eq!(rig.status().exports.len(), EXPORTS_MAX);
    rig.ask(|r| Request::ExportDelete("a".into(), 7, r)).unwrap();
    assert!(impossible(export("x".repeat(ADDRESS_MAX + 1))));
    assert!(impossible(export(String::new())));
    assert!(impossible(export("/run/\n".into())));
    export("x".repeat(ADDRESS_MAX)).unwrap();
    rig.stop();
    assert_eq!(record(&drives[0]).exports.len(), EXPORTS_MAX);
}

#[test]
fn too_many_volumes_are_refused() {
    let bytes = (VOLUMES_MAX as u64 / 2 + 6) * MIB;
    let config = |i| DriveConfig::new(bytes, i);
    let drives: Vec<_> = (0..2).map(|i| SharedSimDrive::new(config(i))).collect();
    let rig = Rig::new(2, 1);
    rig.create(Level::Jbod, &drives, 1 << 20).unwrap();
    let create = |name: String| rig.ask(|r| Request::VolumeCreate("a".into(), name, MIB, r));
    for i in 0..VOLUMES_MAX {
        create(format!("v{i}")).unwrap();
    }
    let free = rig.status().free_bytes;
    assert!(free >= MIB && impossible(create("more".into())));
    assert_eq!((rig.status().volumes.len(), rig.status().free_bytes), (VOLUMES_MAX, free));
    rig.ask(|r| Request::VolumeResize("a".into(), "v3".into(), (2 * MIB).into(), r)).unwrap();
    rig.ask(|r| Request::VolumeDelete("a".into(), "v9".into(), r)).unwrap();
    create("more".into()).unwrap();
}

#[test]
fn serial_numbers_are_kept_as_far_as_they_can_be() {
    let all = drives(4, 3, false);
    let rig = Rig::new(3, 1);
    let mut list = references(&all[..3]);
    list[0].serial = "WD\u{1}12\n3".into();
    list[1].serial = "é".repeat(100);
    list[2].serial = String::new();
    let level = Level::Raid5;
    let new =
        NewArray { shared: false, name: "a".into(), level, strip_bytes: STRIP, block_bytes: None };
    let made = rig.ask(|r| Request::Create(new, list, r)).unwrap();
    assert_eq!(made.slots[0].serial, "WD?12?3");
    assert_eq!(made.slots[1].serial, "é".repeat(SERIAL_MAX / 2));
    rig.fail(2).unwrap();
    let mut spare = reference(&all[3], 9);
    spare.serial = format!("\u{7f}{}é", "x".repeat(SERIAL_MAX - 2));
    rig.ask(|r| Request::Replace("a".into(), Slot(2), spare, r)).unwrap();
    assert_eq!(record(&all[0]).slots[2].serial, format!("?{}", "x".repeat(SERIAL_MAX - 2)));
}

#[test]
fn blocks_that_no_record_holds_are_refused() {
    let drives = drives(3, 4, false);
    let before: Vec<_> = drives.iter().map(SharedSimDrive::contents).collect();
    let rig = Rig::new(4, 1);
    for block in [1024, 4095, 8192] {
        let new = NewArray {
            shared: false,
            name: "a".into(),
            level: Level::Raid5,
            strip_bytes: STRIP,
            block_bytes: Some(block),
        };
        let made = rig.ask(|r| Request::Create(new, references(&drives), r));
        assert!(matches!(made, Err(ManageError::BadBlock(bytes)) if bytes == block));
    }
    assert!(drives.iter().zip(before).all(|(drive, bytes)| drive.contents() == bytes));
}
