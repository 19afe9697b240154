//! Golden images: small arrays of every level and state, as the engine left them.
//!
//! `PALISADE_WRITE_GOLDEN=1 cargo test -p palisade-engine --test all the_engine_still_leaves`
//! writes them anew.
//! Until the first release they are replaced wherever the engine makes arrays in another way than
//! before (`the_engine_still_leaves_such_arrays` says so); those of a release are kept for ever,
//! and every later one opens them.

mod archive;
mod courses;

use crate::common;
use archive::{Archive, BLOCK, block};
use common::{Rig, record, reference, references};
use engine::manage::command::{ArrayState, Request, StartOptions};
use format::SlotState;
use io::{Blocks, Pool};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::{CoreId, MIB, Slot};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// All images whose name has `part` in it, by name.
fn images(part: &str) -> Vec<(String, Archive)> {
    let mut found: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().contains(part))
        .collect();
    found.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    found.iter().map(|p| (name(p), Archive::decode(&std::fs::read(p).unwrap()))).collect()
}

fn drives(image: &Archive) -> Vec<SharedSimDrive> {
    let drive = |(i, bytes): (usize, &Vec<u8>)| {
        let config = DriveConfig::new(bytes.len() as u64, i as u64);
        let drive = SharedSimDrive::new(DriveConfig { littered: true, ..config });
        drive.overwrite(0, bytes);
        drive
    };
    image.drives.iter().enumerate().map(drive).collect()
}

/// What the volume holds, and which of its blocks can't be read. The end is read first: what is
/// behind the border of a rebuild, before the rebuild comes there.
fn read(rig: &Rig) -> (Vec<u8>, Vec<usize>) {
    let volume = rig.open_volume().remove(0);
    rig.world.block_on(CoreId(0), async move {
        let mut all = vec![0; volume.bytes() as usize];
        let mut lost = Vec::new();
        for (part, into) in all.chunks_mut(MIB as usize).enumerate().rev() {
            let begin = part as u64 * MIB;
            let (result, got) = volume.read(begin, Pool::single(into.len())).await;
            if result.is_ok() {
                into.copy_from_slice(&got);
                continue;
            }
            for (i, into) in into.chunks_mut(BLOCK).enumerate() {
                let at = begin + (i * BLOCK) as u64;
                let (result, got) = volume.read(at, Pool::single(BLOCK)).await;
                match result {
                    Ok(()) => into.copy_from_slice(&got),
                    Err(_) => lost.push(at as usize / BLOCK),
                }
            }
        }
        (all, lost)
    })
}

/// Writes lost blocks anew.
fn heal(rig: &Rig, lost: &[usize], found: &mut [u8]) {
    let volume = rig.open_volume().remove(0);
    for number in lost {
        let (volume, mut data) = (volume.clone(), Pool::single(BLOCK));
        let at = number * BLOCK;
        data.copy_from_slice(&block(*number, 1));
        found[at..at + BLOCK].copy_from_slice(&data);
        let write = async move { volume.write(at as u64, data.freeze(), false).await };
        rig.world.block_on(CoreId(0), write).unwrap();
    }
}

/// The slots of an array, with the drive in each that the newest record names.
fn seats(drives: &[SharedSimDrive]) -> Vec<SharedSimDrive> {
    let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
    let named = |uuid| drives.iter().find(|d| record(d).this_drive == uuid).unwrap().clone();
    newest.slots.iter().map(|slot| named(slot.drive)).collect()
}

/// Opens an image, has everything made whole, and compares it all the way.
fn open(name: &str, image: &Archive) -> Vec<SharedSimDrive> {
    println!("{name}: {}", image.about);
    let drives = drives(image);
    let seats = seats(&drives);
    let rig = Rig::new(5, 2);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    let (mut found, lost) = read(&rig);
    image.compare(name, &found);
    assert_eq!(lost, image.lost(), "{name}: what can't be read");
    heal(&rig, &lost, &mut found);
    for slot in &image.failed {
        if record(&drives[0]).slots[*slot].state == SlotState::Failed {
            let back = reference(&seats[*slot], *slot);
            rig.ask(|r| Request::Replace("a".into(), Slot(*slot as u16), back, r)).unwrap();
        }
    }
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal, "{name}");
    assert!(rig.status().unreadable.is_empty(), "{name}");
    assert!(read(&rig).0 == found, "{name}: it reads otherwise once it is whole");
    // What redundancy is for: as many drives as may be lost are gone.
    let lose = match record(&seats[0]).level {
        Level::Jbod | Level::Raid0 => 0,
        Level::Raid6 => 2,
        _ => 1,
    };
    if lose > 0 {
        assert_eq!(rig.scrub(false).mismatches, 0, "{name}");
    }
    rig.stop();
    if lose > 0 {
        let rig = Rig::new(6, 1);
        let options =
            StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
        rig.assemble(&references(&seats[lose..]), options).unwrap();
        assert!(read(&rig).0 == found, "{name}: it reads otherwise without its first drives");
    }
    seats
}

fn open_all(level: &str) {
    let found = images(&format!("-{level}-"));
    assert!(found.len() >= 2, "images of level {level}");
    found.iter().for_each(|(name, image)| drop(open(name, image)));
}

#[test]
fn golden_arrays_of_levels_without_redundancy_open() {
    open_all("jbod");
    open_all("0");
}

#[test]
fn golden_arrays_of_level_1_open() {
    open_all("1");
}

#[test]
fn golden_arrays_of_level_10_open() {
    open_all("10");
}

#[test]
fn golden_arrays_of_level_5_open() {
    open_all("5");
}

#[test]
fn golden_arrays_of_level_6_open() {
    open_all("6");
}

/// What an image looks like to who decides how to open it.
fn look(image: &Archive) -> String {
    let drives = drives(image);
    let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
    let offsets = format::slot_offsets(drives[0].info().bytes);
    let slots = offsets.map(|at| drives[0].peek(at, format::SLOT_BYTES));
    let (slot, _) = format::newest([&slots[0], &slots[1], &slots[2], &slots[3]]).unwrap();
    // Version and flags.
    let header = &slots[slot][8..28];
    let states = newest.slots.iter().map(|slot| match slot.state {
        SlotState::InSync => 's',
        SlotState::Rebuilding { .. } => 'r',
        SlotState::Failed => 'f',
    });
    let group = |g: &format::GroupRecord| (g.unclean, g.loss_accepted, g.guarded);
    format!(
        "header {header:x?}, data {}+{}, areas {:?}, slots {}, since {:?}, key {}, groups {:?}",
        newest.data_offset,
        newest.data_bytes,
        newest.areas,
        states.collect::<String>(),
        newest.slots.iter().map(|s| s.since > 0).collect::<Vec<_>>(),
        newest.journal_key > 0,
        newest.groups.iter().map(group).collect::<Vec<_>>(),
    )
}

/// Makes every kind of array anew. What comes out opens as the golden images do, and looks like
/// them in what a reader must know before it reads. Bytes may differ: ids are random, and what was
/// cut off depends on the order of requests.
#[test]
fn the_engine_still_leaves_such_arrays() {
    for course in courses::all() {
        let name = course.name();
        let made = course.make();
        let path = folder().join(format!("{name}.image"));
        let file = made.encode();
        if std::env::var_os("PALISADE_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &file).unwrap();
        }
        let stored = Archive::decode(&std::fs::read(&path).unwrap());
        assert!(Archive::decode(&file) == made, "{name}: encoded and decoded");
        assert_eq!(look(&made), look(&stored), "{name}: another format? write the images anew");
        open(&name, &made);
    }
}

/// What `script/read-array` prints of drives, ending with `status`; `None` where there is no
/// Python.
pub fn outside(arguments: &[&str], name: &str, drives: &[Vec<u8>], status: i32) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../script/read-array"));
    command.args(arguments).stdin(Stdio::null());
    for (i, bytes) in drives.iter().enumerate() {
        let path = folder.join(i.to_string());
        std::fs::write(&path, bytes).unwrap();
        command.arg(path);
    }
    let output = command.output();
    std::fs::remove_dir_all(&folder).unwrap();
    match output {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{name}: {arguments:?}: {errors}");
            Some(output.stdout)
        }
        Err(error) => {
            let says = |name, value| std::env::var(name).is_ok_and(|found| found == value);
            let required = says("PALISADE_REQUIRE_TOOLS", "1") || says("CI", "true");
            assert!(!required, "python3: {error}");
            println!("skipped: no python3: {error}");
            None
        }
    }
}

/// The reader that knows docs/format.md alone reads the same from the images, carries out their
/// journal, and finds all redundancy right once the engine has made them whole.
#[test]
fn the_outside_reader_agrees_on_golden_arrays() {
    for (name, image) in images("") {
        let lost = image.lost();
        let status = i32::from(!lost.is_empty());
        let read = outside(&["--volume", "v"], &name, &image.drives, status);
        let Some(found) = read else { return };
        image.compare(&name, &found);
        let zeros = |number: &usize| found[number * BLOCK..][..BLOCK].iter().all(|b| *b == 0);
        assert!(lost.iter().all(zeros), "{name}: lost blocks");
        let whole: Vec<_> = open(&name, &image).iter().map(SharedSimDrive::contents).collect();
        outside(&["--check"], &name, &whole, 0);
    }
}

/// Of an array that was cut off whole, and whose drives then go, it says what the engine says: the
/// same blocks are lost, and the others hold the same.
#[test]
fn the_outside_reader_agrees_on_what_lost_drives_leave() {
    let mut lost_any = 0;
    for (level, gone) in [("5", &[0u32, 1, 2, 4][..]), ("6", &[1, 3, 5, 6, 9, 10])] {
        for (name, image) in images(&format!("-{level}-dirty")) {
            for gone in gone {
                let left = |i: &usize| gone >> i & 1 == 0;
                let bytes: Vec<_> = (0..image.drives.len()).filter(left).collect();
                let bytes: Vec<_> = bytes.iter().map(|i| image.drives[*i].clone()).collect();
                let drives: Vec<_> = drives(&image).into_iter().enumerate().collect();
                let drives = drives.into_iter().filter(|(i, _)| left(i)).map(|(_, d)| d);
                let rig = Rig::new(7, 1);
                let options =
                    StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
                rig.assemble(&references(&drives.collect::<Vec<_>>()), options).unwrap();
                let (held, lost) = read(&rig);
                let mut known = held.clone();
                for number in &lost {
                    let one = image.blocks[*number].first().copied().unwrap_or(0);
                    known[number * BLOCK..][..BLOCK].copy_from_slice(&block(*number, one));
                }
                image.compare(&name, &known);
                lost_any += lost.len();
                let status = i32::from(!lost.is_empty());
                let found = outside(&["--volume", "v"], &name, &bytes, status);
                let Some(found) = found else { return };
                assert!(found == held, "{name} without {gone:#b}: {} are lost", lost.len());
            }
        }
    }
    assert!(lost_any > 0, "something is lost in some of them");
}
