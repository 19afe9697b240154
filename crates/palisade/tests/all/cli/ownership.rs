//! Whose a drive is: names, records that are left over, and what the configuration names.

use super::place::{DRIVE_BYTES, Place, program, random, scribble};
use rustix::process::Signal;
use std::fs::File;
use std::process::Stdio;

/// Whether another process could have the drive now.
fn is_free(place: &Place, number: usize) -> bool {
    let file = File::options().read(true).write(true).open(place.drive(number)).expect("opened");
    file.try_lock().is_ok()
}

#[test]
fn what_a_drive_held_before_an_array_took_it_is_forgotten() {
    let mut place = Place::running(6);
    place.create("old", "5", &[0, 1, 2]);
    place.json(&["array", "stop", "old"]);
    place.create_over("new", "5", &[0, 1, 2]);
    assert_eq!(place.arrays(), [("new".into(), "optimal".into())]);
    place.refuses(1, &["array", "delete", "old", "--yes"]);

    // The same through a replacement: the other half of the old mirror stays.
    place.create("mirror", "1", &[3, 4]);
    place.json(&["array", "stop", "mirror"]);
    place.json(&["array", "fail", "new", "--drive", "slot:0"]);
    let third = place.name(3);
    place.json(&[
        "array",
        "replace",
        "new",
        "--slot",
        "0",
        "--with",
        &third,
        "--overwrite",
        &third,
    ]);
    place.json(&["array", "wait", "new", "--timeout", "60"]);
    let mirror = place.json(&["array", "show", "mirror"]);
    assert_eq!(mirror["slots"][0]["state"], "missing");
    assert_eq!(mirror["slots"][1]["drive"], place.name(4));
    place.json(&["array", "delete", "mirror", "--yes"]);
    place.restart();
    assert_eq!(place.arrays(), [("new".into(), "optimal".into())]);
    assert_eq!(place.json(&["array", "show", "new"])["slots"][0]["drive"], place.name(3));
}

#[test]
fn two_arrays_of_one_name_are_told_apart_by_their_uuids() {
    let place = Place::running(4);
    place.create("data", "1", &[0, 1]);
    place.json(&["array", "stop", "data"]);
    let paths = [place.name(2), place.name(3)];
    let create = ["array", "create", "data", "--level", "1", "--drives", &paths[0], &paths[1]];
    assert!(place.refuses(1, &create).contains("taken"));
    assert!(place.refuses(1, &[&create[..], &["--dry-run"]].concat()).contains("taken"));

    let away = [place.dir.path().join("a"), place.dir.path().join("b")];
    for (number, away) in away.iter().enumerate() {
        std::fs::rename(place.drive(number), away).expect("moved");
    }
    place.json(&["drive", "list"]);
    let running = place.create("data", "1", &[2, 3])["uuid"].as_str().expect("text").to_owned();
    for (number, away) in away.iter().enumerate() {
        std::fs::rename(away, place.drive(number)).expect("moved back");
    }
    place.json(&["drive", "list"]);
    let said = place.refuses(3, &["array", "delete", "data", "--yes"]);
    assert!(said.contains("two arrays") && said.contains(&running), "{said}");
    place.refuses(3, &["array", "show", "data"]);
    // What only a running array can do is clear.
    place.json(&["volume", "create", "data/v", "--size", "1M"]);
    place.json(&["volume", "create", &format!("{running}/w"), "--size", "1M"]);

    let list = place.json(&["array", "list"]);
    let arrays = list["arrays"].as_array().expect("a list");
    let other = arrays.iter().find(|a| a["uuid"] != running.as_str()).expect("is listed");
    assert_eq!(other["state"], "stopped");
    let other = other["uuid"].as_str().expect("text");
    place.json(&["array", "delete", other, "--yes"]);
    assert_eq!(place.state("data"), "optimal");
    assert_eq!(place.state(&running), "optimal");
    assert_eq!(place.listed(0)["state"], "free");
    // A name that reads as a UUID would be one of two.
    let create = ["array", "create", other, "--level", "1", "--drives"];
    place.refuses(2, &[&create[..], &[&place.name(0), &place.name(1)]].concat());
}

#[test]
fn an_array_may_be_made_anew_on_its_own_drives() {
    let place = Place::running(2);
    let first = place.create("data", "1", &[0, 1]);
    place.json(&["array", "stop", "data"]);
    let second = place.create_over("data", "1", &[0, 1]);
    assert_ne!(first["uuid"], second["uuid"]);
    place.json(&["array", "delete", "data", "--yes"]);
    place.create("data", "0", &[0, 1]);
}

#[test]
fn a_drive_that_the_configuration_does_not_name_is_warned_of() {
    let mut place = Place::running(3);
    let stranger = place.dir.path().join("stranger.img");
    std::fs::write(&stranger, random(9)).expect("written");
    let stranger = stranger.to_str().expect("text");
    let made = place.create("data", "1", &[0, 1]);
    assert!(made.get("warnings").is_none(), "{made}");
    place.json(&["array", "fail", "data", "--drive", "slot:1"]);
    let replace = ["array", "replace", "data", "--slot", "1", "--with"];
    let replaced = place.json(&[&replace[..], &[stranger]].concat());
    let warning = replaced["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains(stranger) && warning.contains("drives = ["), "{warning}");
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    // It stays known while this daemon runs.
    place.json(&["array", "stop", "data"]);
    place.json(&["drive", "list"]);
    place.json(&["array", "assemble", "data"]);
    assert_eq!(place.state("data"), "optimal");
    place.json(&["array", "fail", "data", "--drive", stranger]);
    // By another name of a drive that it does name.
    let link = place.dir.path().join("link");
    std::os::unix::fs::symlink(place.drive(2), &link).expect("linked");
    let replaced = place.json(&[&replace[..], &[link.to_str().expect("text")]].concat());
    assert_eq!(replaced["slots"][1]["drive"], place.name(2));
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    place.restart();
    assert_eq!(place.state("data"), "optimal");
}

#[test]
fn a_failed_slot_stays_failed_and_is_said_at_start() {
    let mut place = Place::running(3);
    let made = place.create("data", "5", &[0, 1, 2]);
    let serial = made["slots"][1]["serial"].as_str().expect("text").to_owned();
    place.json(&["array", "fail", "data", "--drive", "slot:1"]);
    place.restart();
    let shown = place.json(&["array", "show", "data"]);
    assert_eq!(shown["slots"][1]["state"], "failed");
    let said = place.said();
    let told = |line: &str| line.contains("\"data\" is degraded") && line.contains("slot 1");
    let line = said.lines().find(|line| told(line)).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(&serial), "{line}");
    assert!(said.contains("palisade array replace data --slot 1"), "{said}");
}

#[test]
fn a_drive_that_is_not_there_at_start_is_missing() {
    let mut place = Place::running(3);
    place.create("data", "5", &[0, 1, 2]);
    assert_eq!(place.end(Signal::TERM), Some(0));
    std::fs::rename(place.drive(2), place.dir.path().join("away")).expect("moved");
    place.start();
    let shown = place.json(&["array", "show", "data"]);
    assert_eq!(
        (&shown["state"], &shown["slots"][2]["state"]),
        (&"degraded".into(), &"missing".into())
    );
    assert!(place.said().contains("\"data\" is degraded: slot 2"), "{}", place.said());
}

#[test]
fn an_excluded_drive_is_listed_as_failed_and_not_looked_at() {
    let mut place = Place::running(4);
    place.create("data", "5", &[0, 1, 2]);
    place.json(&["array", "fail", "data", "--drive", "slot:1"]);
    // Swap space: its signature ends the first page (mkswap(8)).
    scribble(&place.drive(1), 4086, b"SWAPSPACE2");
    let failed = place.listed(1);
    assert_eq!((&failed["state"], &failed["array"]), (&"failed".into(), &"data".into()));
    assert_eq!((&failed["slot"], &failed["signature"]), (&1.into(), &serde_json::Value::Null));
    place.restart();
    let failed = place.listed(1);
    assert_eq!((&failed["state"], &failed["slot"]), (&"failed".into(), &1.into()));
    // Nor is it a free one when another has its place.
    place.json(&["array", "replace", "data", "--slot", "1", "--with", &place.name(3)]);
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(place.listed(1)["state"], "failed");
    place.json(&["drive", "wipe", &place.name(1), "--yes"]);
    assert_eq!(place.listed(1)["array"], serde_json::Value::Null);
}

#[test]
fn a_deleted_array_does_not_come_back_from_a_drive_it_had_excluded() {
    let mut place = Place::running(4);
    place.create("data", "5", &[0, 1, 2]);
    place.json(&["array", "fail", "data", "--drive", "slot:0"]);
    place.json(&["array", "replace", "data", "--slot", "0", "--with", &place.name(3)]);
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    let deleted = place.json(&["array", "delete", "data", "--yes"]);
    assert_eq!((&deleted["done"], &deleted["left"]), (&true.into(), &serde_json::Value::Null));
    assert!(place.arrays().is_empty());
    place.restart();
    assert!(place.arrays().is_empty());
    assert_eq!(place.listed(0)["state"], "free");

    // What is not there can't be erased; it is said.
    let made = place.create("data", "1", &[1, 2]);
    assert_eq!(place.end(Signal::TERM), Some(0));
    std::fs::rename(place.drive(1), place.dir.path().join("away")).expect("moved");
    place.start();
    let left = place.json(&["array", "delete", "data", "--yes"])["left"].clone();
    let left = left[0].as_str().expect("names the slot");
    assert!(left.contains("slot 0") && left.contains(made["slots"][0]["serial"].as_str().unwrap()));
}

#[test]
fn drives_that_nobody_has_are_open_to_others() {
    let place = Place::running(3);
    place.json(&["drive", "list"]);
    let paths = [place.name(0), place.name(1)];
    let create = ["array", "create", "data", "--level", "1", "--drives", &paths[0], &paths[1]];
    place.json(&[&create[..], &["--dry-run"]].concat());
    assert!(is_free(&place, 0) && is_free(&place, 1) && is_free(&place, 2));
    let other = File::options().write(true).open(place.drive(0)).expect("opened");
    other.lock().expect("locked");
    assert!(place.refuses(3, &create).contains("in use by another process"));
    assert!(is_free(&place, 1), "let go where another was refused");
    drop(other);

    place.json(&create);
    assert!(!is_free(&place, 0) && !is_free(&place, 1) && is_free(&place, 2));
    assert!(place.refuses(3, &["drive", "wipe", &paths[0], "--yes"]).contains("slot 0"));
    place.json(&["array", "stop", "data"]);
    assert!(!is_free(&place, 0), "a record is guarded");
    place.json(&["drive", "wipe", &paths[0], "--yes"]);
    assert_eq!(place.listed(0)["state"], "free");
    assert!(is_free(&place, 0));
    place.json(&["array", "delete", "data", "--yes"]);
    assert!(is_free(&place, 0) && is_free(&place, 1));
    // A path that the configuration names no more is forgotten.
    std::fs::remove_file(place.drive(2)).expect("removed");
    let list = place.json(&["drive", "list"]);
    assert_eq!(list["drives"].as_array().expect("a list").len(), 2);
}

#[test]
fn a_daemon_told_to_stop_while_an_array_is_made_ends() {
    let mut place = Place::running(3);
    let paths: Vec<String> = (0..3).map(|number| place.name(number)).collect();
    let mut words = vec!["array", "create", "data", "--level", "5", "--drives"];
    words.extend(paths.iter().map(String::as_str));
    for _ in 0..4 {
        let mut command = program(&words);
        command.env("PALISADE_SOCKET", place.socket()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut making = command.spawn().expect("started");
        // At whatever moment of the creation.
        assert_eq!(place.end(Signal::TERM), Some(0), "{}", place.said());
        making.wait().expect("ended");
        place.start();
        let arrays = place.arrays();
        assert!(arrays.is_empty() || arrays[0].1 == "optimal", "{arrays:?} {}", place.said());
        if !arrays.is_empty() {
            place.json(&["array", "delete", "data", "--yes"]);
        }
    }
    place.create("data", "5", &[0, 1, 2]);
}

/// A superblock of ext4, as far as it is looked at.
fn ext4() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    for (at, value) in [(0, 16), (24, 2), (56, 0x53), (57, 0xef), (58, 1), (76, 1), (96, 0x42)] {
        bytes[at] = value;
    }
    bytes
}

#[test]
fn a_question_to_wipe_says_what_is_lost_and_what_is_foreign_needs_a_second_word() {
    let mut place = Place::new(5);
    scribble(&place.drive(0), 0, b"LUKS\xba\xbe\0\x02");
    scribble(&place.drive(1), 1024, &ext4());
    let paths: Vec<String> = (0..5).map(|number| place.name(number)).collect();
    for (number, what) in [(0, "LUKS"), (1, "ext4")] {
        let path = &paths[number];
        let was = std::fs::read(path).expect("read");
        let yes = ["drive", "wipe", path, "--yes"];
        for words in [&yes[..3], &yes[..]] {
            let said = place.refuses(3, words);
            assert!(said.contains(what), "{said}");
            assert!(said.contains(&format!("--yes --overwrite {path}")), "{said}");
        }
        place.refuses(2, &[&yes[..], &["--overwrite", &paths[2]]].concat());
        assert!(std::fs::read(path).expect("read") == was, "{what} is as it was");
        place.json(&[&yes[..], &["--overwrite", path]].concat());
        assert_eq!(std::fs::read(path).expect("read")[..4096], [0; 4096]);
    }
    // What holds nothing known, and what is ours.
    assert!(place.refuses(3, &["drive", "wipe", &paths[2]]).contains("nothing known"));
    place.json(&["drive", "wipe", &paths[2], "--yes"]);
    place.start();
    place.create("data", "1", &[3, 4]);
    for stop in [false, true] {
        if stop {
            place.json(&["array", "stop", "data"]);
        }
        let said = place.refuses(3, &["drive", "wipe", &paths[4]]);
        assert!(said.contains("slot 1 of Palisade array \"data\""), "{said}");
    }
    place.json(&["drive", "wipe", &paths[4], "--yes"]);
    assert_eq!(place.listed(4)["state"], "free");
}

#[test]
fn data_of_an_unknown_kind_is_not_taken_for_nothing() {
    let mut place = Place::new(4);
    let text = b"Minutes of the general meeting, 14 March. Present: all but one.\n";
    std::fs::write(place.drive(1), text.repeat(DRIVE_BYTES / text.len())).expect("written");
    std::fs::write(place.drive(2), vec![0; DRIVE_BYTES]).expect("written");
    scribble(&place.drive(2), DRIVE_BYTES as u64 - 8192, text);
    place.start();
    let paths: Vec<String> = (0..4).map(|number| place.name(number)).collect();
    for number in [1, 2] {
        let path = &paths[number];
        assert_eq!(place.listed(number)["state"], "foreign");
        let create = ["array", "create", "data", "--level", "1", "--drives", &paths[0], path];
        let said = place.refuses(3, &create);
        assert!(said.contains("unknown data") && said.contains("--overwrite"), "{said}");
        assert!(place.refuses(3, &["drive", "wipe", path, "--yes"]).contains("unknown data"));
    }
    place.create("data", "1", &[0, 3]);
    place.json(&["array", "fail", "data", "--drive", "slot:0"]);
    let replace = ["array", "replace", "data", "--slot", "0", "--with", &paths[2]];
    assert!(place.refuses(3, &replace).contains("unknown data"));
    place.json(&[&replace[..], &["--overwrite", &paths[2]]].concat());
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    // What an array leaves is nobody's.
    place.json(&["array", "delete", "data", "--yes"]);
    for number in [0, 2, 3] {
        assert_eq!(place.listed(number)["state"], "free");
    }
    place.create("data", "5", &[0, 2, 3]);
}

/// Puts another version in the header of every record slot of a drive (docs/format.md).
fn of_version(path: &std::path::Path, version: u8) {
    let bytes = std::fs::read(path).expect("read");
    let tail = bytes.len() - (1 << 20);
    for slot in [0, 256 << 10, tail, tail + (256 << 10)] {
        let mut header = bytes[slot..slot + 124].to_vec();
        if header.starts_with(b"PALISADE") {
            header[8] = version;
            let crc = header.iter().fold(u32::MAX, |crc, byte| {
                let step = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
                (0..8).fold(crc ^ u32::from(*byte), step)
            });
            header.extend((!crc).to_le_bytes());
            scribble(path, slot as u64, &header);
        }
    }
}

/// Drives of another version of the format hold an array, which nobody reads and nobody overwrites
/// without a word.
#[test]
fn an_array_of_another_version_is_named_and_not_overwritten() {
    let mut place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    for version in [1, 2] {
        let what = format!("format version {version}");
        (0..2).for_each(|number| of_version(&place.drive(number), version));
        let before = std::fs::read(place.drive(0)).expect("read");
        let said = place.refuses(1, &["drive", "inspect", &place.name(0)]);
        assert!(said.contains(&what) && said.contains("use the release that wrote it"), "{said}");
        assert!(!said.contains("wipe"), "{said}");
        place.start();
        let listed = place.listed(0);
        assert_eq!(listed["state"], "foreign", "{listed}");
        assert!(listed["signature"].as_str().expect("text").contains(&what), "{listed}");
        assert!(listed["problem"].as_str().expect("text").contains(&what), "{listed}");
        assert!(place.arrays().is_empty());
        place.refuses(1, &["array", "assemble", "data"]);
        let paths = [place.name(0), place.name(1)];
        let create = ["array", "create", "new", "--level", "1", "--drives", &paths[0], &paths[1]];
        let said = place.refuses(3, &create);
        assert!(said.contains(&what) && said.contains("--overwrite"), "{said}");
        let said = place.refuses(3, &["drive", "wipe", &paths[0], "--yes"]);
        assert!(said.contains(&what), "{said}");
        assert!(std::fs::read(place.drive(0)).expect("read") == before, "nothing was written");
        assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    }
    place.start();
    place.create_over("new", "1", &[0, 1]);
}

/// The smallest size that works is said, and works.
#[test]
fn drives_without_room_for_map_and_journal_are_refused() {
    let place = Place::running(3);
    let sized = |bytes: u64| {
        for number in 0..3 {
            let file = std::fs::File::create(place.drive(number)).expect("made");
            file.set_len(bytes).expect("sized");
        }
        let paths = [0, 1, 2].map(|number| place.name(number));
        let create = ["array", "create", "data", "--level", "5", "--drives"];
        [&create[..], &paths.each_ref().map(String::as_str)].concat().join(" ")
    };
    let words = sized((5 << 20) - 512);
    let words: Vec<&str> = words.split(' ').collect();
    let said = place.refuses(1, &words);
    let least = 5 << 20;
    assert!(said.contains(&place.name(0)) && said.contains(&format!("{least} (5 MiB)")), "{said}");
    assert!(place.refuses(1, &[&words[..], &["--dry-run"]].concat()).contains("5 MiB"));
    sized(least);
    place.json(&words);
}
