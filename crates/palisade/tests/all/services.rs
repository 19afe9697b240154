//! Volumes as block devices and files of the machine, by `palisade services`.

use crate::common::loops::Mount;
use crate::common::place::{Daemon, Place};
use crate::common::services::{Services, export};
use crate::common::targets;
use crate::common::{Rng, count_of, output, program, random_file, run, tools_are_there, until};
use crate::filesystem::{can_mount, verify_by};
use serde_json::Value;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TOOLS: &[&str] = &[
    "fio",
    "losetup",
    "mount",
    "umount",
    "mke2fs",
    "e2fsck",
    "mkfs.xfs",
    "xfs_repair",
    "blkdiscard",
    "fallocate",
    "blockdev",
];
/// How long one stage may take.
const STAGE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

/// An array whose name nobody else on this machine has, with its daemon and who serves the machine.
pub struct Life {
    pub array: String,
    pub drives: Vec<String>,
    // Ended before the place goes, and after what stands on it.
    pub services: Option<Services>,
    pub daemon: Option<Daemon>,
    pub place: Place,
}

impl Life {
    pub fn new(what: &str, drive_mib: u64) -> Option<Self> {
        if !tools_are_there(TOOLS) || !can_mount() {
            return None;
        }
        let mut place = Place::new(what, drive_mib);
        let state = place.file("state");
        place.more = format!("state = {}\n", Value::from(state.to_string_lossy()));
        let drives = place.drives(4);
        let array = format!("t{:08x}", place.rng.next() as u32);
        let daemon = Daemon::start(&place, 2);
        daemon.create(&array, "5", &drives, &[]);
        let services = Some(Services::start(&place));
        Some(Self { array, drives, services, daemon: Some(daemon), place })
    }

    pub fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("runs")
    }

    pub fn volume(&self, name: &str, size: &str) -> String {
        let name = format!("{}/{name}", self.array);
        self.daemon().call(&["volume", "create", &name, "--size", size]);
        name
    }

    fn link(&self, volume: &str) -> PathBuf {
        Path::new("/dev/palisade").join(&self.array).join(volume)
    }

    /// Ends all of it; nothing is left.
    pub fn end(mut self) {
        let daemon = self.daemon.take().expect("runs");
        let exports = daemon.call(&["export", "list"]);
        for export in exports["exports"].as_array().expect("a list") {
            daemon.call(&["export", "delete", export["id"].as_str().expect("an id")]);
        }
        assert_eq!(Services::made(&self.place), Vec::<String>::new());
        let left = std::fs::read_dir(self.place.file("services")).expect("its folder");
        // Who asks targets stays the same.
        let left: Vec<_> = left.flatten().map(|file| file.file_name()).collect();
        assert!(left.iter().all(|name| name == "asker"), "files are left: {left:?}");
        assert_eq!(
            targets::servers(&self.place.file("services")),
            Vec::<i32>::new(),
            "a server is left"
        );
        assert!(!Path::new("/dev/palisade").join(&self.array).exists(), "a link is left");
        daemon.scrub(&self.array);
        daemon.stop();
        Place::read_array(&["--check"], &self.drives);
    }
}

fn bytes_of(device: &Path) -> u64 {
    run(program("blockdev").arg("--getsize64").arg(device)).trim().parse().expect("a number")
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// Loses a drive, and has another rebuilt.
pub fn lose_a_drive(life: &mut Life, begun: impl FnOnce()) {
    let array = life.array.clone();
    life.daemon().call(&["array", "fail", &array, "--drive", &life.drives[1]]);
    begun();
    life.place.spoil(&life.drives[1].clone());
    std::fs::remove_file(&life.drives[1]).expect("removed");
    life.drives[1] = life.place.drive();
    let replace = ["array", "replace", &array, "--slot", "1", "--with", &life.drives[1]];
    life.daemon().call(&replace);
    assert_eq!(life.daemon().settle(&array)["state"], "optimal");
}

#[test]
fn a_device_and_a_file_are_written_through_a_drives_loss() {
    let Some(mut life) = Life::new("device and file", 64) else { return };
    let (one, other) = (life.volume("one", "64M"), life.volume("other", "64M"));
    let made = life.daemon().call(&["export", "create", &one, "--local"]);
    let link = life.link("one");
    assert_eq!((text(&made, "kind"), Path::new(text(&made, "link"))), ("loop", &*link));
    assert_eq!(text(&made["health"], "state"), "ok");
    let device = std::fs::canonicalize(&link).expect("leads to it");
    assert_eq!(device, Path::new(text(&made, "device")));
    assert!(std::fs::metadata(&device).expect("is there").file_type().is_block_device());
    let file = life.place.file("volume");
    let made = life.daemon().call(&["export", "create", &other, "--fuse", file.to_str().unwrap()]);
    assert_eq!((text(&made, "kind"), text(&made, "file")), ("fuse", file.to_str().unwrap()));
    let passes = |life: &Life| {
        for (block, size) in [("4k", "8m"), ("64k", "32m"), ("1m", "64m")] {
            verify_by(&link, block, size, true);
            verify_by(&link, block, size, false);
            verify_by(&file, block, size, true);
            verify_by(&file, block, size, false);
        }
        for id in [1, 2] {
            let shown = export(life.daemon(), &format!("{}:{id}", life.array));
            assert_eq!(text(&shown["health"], "state"), "ok", "{shown}");
        }
    };
    passes(&life);
    let (worked, own) = (link.clone(), file.clone());
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            verify_by(&worked, "64k", "64m", true);
            verify_by(&own, "64k", "64m", true);
        });
        lose_a_drive(&mut life, || ());
        worker.join().expect("verified");
    });
    passes(&life);
    // A file that was not there is made, and only root may use it.
    let about = std::fs::metadata(&file).expect("is there");
    assert_eq!((about.len(), about.mode() & 0o777, about.uid()), (64 * MIB, 0o600, 0));
    life.daemon().call(&["export", "delete", &format!("{}:2", life.array)]);
    assert!(!file.exists(), "it was made for the volume");
    life.end();
}

/// Random files in a folder, and their sums.
fn files(folder: &Path, rng: &mut Rng) -> String {
    std::fs::create_dir_all(folder).expect("a folder");
    for number in 0..24 {
        let mib = 1 + rng.below(4);
        random_file(&folder.join(format!("file {number}")), mib * MIB, rng);
    }
    sums(folder)
}

fn sums(folder: &Path) -> String {
    let words = "find . -name 'file *' | sort | tr '\\n' '\\0' | xargs -0 sha256sum";
    run(program("sh").args(["-c", words]).current_dir(folder))
}

#[test]
fn file_systems_on_devices_outlive_a_drive() {
    let Some(mut life) = Life::new("file systems on devices", 256) else { return };
    let source = life.place.file("source");
    let known = files(&source, &mut life.place.rng.clone());
    for (volume, kind) in [("x", "xfs"), ("e", "ext4")] {
        let name = life.volume(volume, "320M");
        life.daemon().call(&["export", "create", &name, "--local"]);
        let link = life.link(volume);
        match kind {
            "xfs" => run(program("mkfs.xfs").arg("-q").arg(&link)),
            _ => run(program("mke2fs").args(["-q", "-t", "ext4"]).arg(&link)),
        };
        let device = link.to_str().expect("text");
        let at = life.place.file(volume);
        let mount = Mount::of(device, kind, at.clone());
        let copy = |to: &str| {
            run(program("cp").arg("-r").arg(&source).arg(at.join(to)));
            run(program("sync").arg("-f").arg(&at));
        };
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| ["before", "meanwhile"].map(copy));
            lose_a_drive(&mut life, || ());
            worker.join().expect("copied");
        });
        // It is in use: nothing of it goes.
        let id = format!("{}:{}", life.array, if kind == "xfs" { 1 } else { 2 });
        let array = life.array.clone();
        for words in [&["export", "delete", &id][..], &["array", "stop", &array]] {
            let said = life.daemon().ends(3, words);
            assert!(said.contains(&at.display().to_string()), "{said}");
        }
        mount.end();
        let mount = Mount::of(device, kind, at.clone());
        for folder in ["before", "meanwhile"] {
            assert!(sums(&at.join(folder)) == known, "{kind}: {folder} reads otherwise");
        }
        mount.end();
        match kind {
            "xfs" => run(program("xfs_repair").arg("-n").arg(&link)),
            _ => run(program("e2fsck").args(["-f", "-n"]).arg(&link)),
        };
    }
    life.end();
}

#[test]
fn devices_have_the_volumes_size_and_give_up_what_is_discarded() {
    let Some(life) = Life::new("sizes of devices", 64) else { return };
    let name = life.volume("v", "96M");
    let file = life.place.file("volume");
    std::fs::write(&file, "").expect("made");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("set");
    life.daemon().call(&["export", "create", &name, "--local"]);
    life.daemon().call(&["export", "create", &name, "--fuse", file.to_str().unwrap()]);
    let link = life.link("v");
    let sizes = || (bytes_of(&link), std::fs::metadata(&file).expect("is there").len());
    assert_eq!(sizes(), (96 * MIB, 96 * MIB));
    assert_eq!(std::fs::metadata(&file).expect("is there").mode() & 0o777, 0o640);
    let map = || life.daemon().show(&life.array)["region_map"].clone();
    let written = || map()["written_bytes"].as_u64().expect("a number");
    run(program("fio")
        .args(["--name=fill", "--rw=write", "--bs=1m", "--direct=1"])
        .args([format!("--filename={}", link.display()), "--size=96m".to_owned()]));
    // Of what is written in order more than that counts as written, until it is clean.
    until("it is clean", STAGE, || (map()["dirty_regions"] == 0 && written() > 0).then_some(()));
    let all = written();
    assert!(all >= 96 * MIB, "{all}");
    // What is shown is a moment old.
    let gives_up = |mib: u64| {
        until("bands are given up", STAGE, || (written() == all - mib * MIB).then_some(()));
    };
    // A band of each of three drives' data.
    let name_of = std::fs::canonicalize(&link).expect("leads to it");
    let queue = Path::new("/sys/block").join(name_of.file_name().unwrap()).join("queue");
    let unit = std::fs::read_to_string(queue.join("discard_granularity")).expect("told");
    assert_eq!(unit.trim(), (3 * MIB).to_string());
    let discard = |offset: u64, length: u64| {
        let (offset, length) = (offset.to_string(), length.to_string());
        run(program("blkdiscard").args(["--offset", &offset, "--length", &length]).arg(&link));
    };
    discard(3 * MIB, 30 * MIB);
    gives_up(30);
    discard(0, 96 * MIB);
    gives_up(96);
    // A hole reads as zeros, be it ever so small.
    verify_by(&link, "64k", "6m", true);
    let punch = |at: &Path, offset: &str| {
        let words = ["--punch-hole", "--offset", offset, "--length", "20480"];
        run(program("fallocate").args(words).arg(at));
        let mut all = vec![1; 20480];
        let open = std::fs::File::open(at).expect("opened");
        open.read_exact_at(&mut all, offset.parse().expect("a number")).expect("read");
        assert!(all.iter().all(|byte| *byte == 0), "{} at {offset}", at.display());
    };
    punch(&link, "8192");
    punch(&file, "1048576");
    for (size, more) in [(120, None), (60, Some("--yes"))] {
        let size_text = format!("{size}M");
        let mut words = vec!["volume", "resize", &name, "--size", &size_text];
        words.extend(more);
        life.daemon().call(&words);
        assert_eq!(sizes(), (size * MIB, size * MIB));
        verify_by(&link, "64k", &format!("{size}m"), true);
        verify_by(&file, "64k", &format!("{size}m"), true);
    }
    life.daemon().call(&["export", "delete", &format!("{}:2", life.array)]);
    assert_eq!(std::fs::metadata(&file).expect("stays").len(), 0, "it was there before");
    life.end();
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_left_of_it() {
    let Some(mut life) = Life::new("refused exports", 16) else { return };
    let name = life.volume("v", "16M");
    let full = life.place.file("full");
    std::fs::write(&full, "not empty").expect("written");
    let nowhere = life.place.file("no/such/folder");
    for path in [&full, &nowhere, &life.place.file("services")] {
        let path = path.to_str().unwrap();
        let said = life.daemon().ends(1, &["export", "create", &name, "--fuse", path]);
        assert!(said.contains("ServicesFailed") && said.contains(path), "{said}");
        let listed = life.daemon().call(&["export", "list"]);
        assert_eq!(listed["exports"], serde_json::json!([]));
    }
    assert_eq!(std::fs::read(&full).expect("read"), b"not empty");
    let said = life.daemon().ends(2, &["export", "create", &name, "--fuse", "/a/../b"]);
    assert!(said.contains("BadFile"), "{said}");
    let said = life.daemon().ends(1, &["export", "create", &name, "--ublk"]);
    assert!(said.contains("load ublk_drv"), "{said}");
    // What a link would be made of leads nowhere else.
    life.daemon().ends(2, &["volume", "create", &format!("{}/..", life.array), "--size", "1M"]);
    // The system is left alone.
    let said = life.daemon().ends(1, &["export", "create", &name, "--fuse", "/etc/ld.so.preload"]);
    assert!(said.contains("directory of the system"), "{said}");
    assert!(!Path::new("/etc/ld.so.preload").exists());
    life.daemon().ends(2, &["export", "create", &name, "--local", "--nbd", "127.0.0.1:0"]);
    // Another process of it has no place beside the first.
    let said = Services::refused(&life.place);
    assert!(said.contains("another `palisade services`"), "{said}");
    // Without it there is nobody to do it, or to undo it.
    let file = life.place.file("volume");
    let create = ["export", "create", &name, "--fuse", file.to_str().unwrap()];
    life.daemon().call(&create);
    let id = format!("{}:1", life.array);
    let other = life.volume("w", "16M");
    let said = life.daemon().ends(1, &["export", "create", &other, "--fuse", create[4]]);
    assert!(said.contains("FileTaken"), "{said}");
    // Whoever has a device open is told, and it stays theirs.
    life.daemon().call(&["export", "create", &other, "--local"]);
    let open = std::fs::File::open(life.link("w")).expect("opened");
    let own = format!("{}:2", life.array);
    let said = life.daemon().ends(3, &["export", "delete", &own]);
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    drop(open);
    life.daemon().call(&["export", "delete", &own]);
    life.services.take().expect("runs").kill();
    let failed = || (export(life.daemon(), &id)["health"]["state"] == "failed").then_some(());
    until("it is told", STAGE, failed);
    for words in [&["export", "create", &name, "--local"][..], &["export", "delete", &id]] {
        let said = life.daemon().ends(1, words);
        assert!(said.contains("systemctl start palisade-services"), "{said}");
    }
    verify_by(&file, "4k", "1m", true);
    life.services = Some(Services::start(&life.place));
    life.end();
}

/// Waits until an export can be used.
pub fn served(daemon: &Daemon, id: &str) -> Value {
    until("it is served", STAGE, || {
        let shown = export(daemon, id);
        (shown["serving"] == true && shown["health"]["state"] == "ok").then_some(shown)
    })
}

#[test]
fn each_process_may_be_killed_and_goes_on_where_it_was() {
    let Some(mut life) = Life::new("killed services", 32) else { return };
    let name = life.volume("v", "32M");
    // By another name of its folder it is the same file.
    let folder = life.place.file("folder");
    std::fs::create_dir(&folder).expect("made");
    std::os::unix::fs::symlink(&folder, life.place.file("way")).expect("linked");
    let (file, way) = (folder.join("volume"), life.place.file("way/volume"));
    life.daemon().call(&["export", "create", &name, "--local"]);
    life.daemon().call(&["export", "create", &name, "--fuse", way.to_str().unwrap()]);
    let (link, array) = (life.link("v"), life.array.clone());
    let ids = [1, 2].map(|id| format!("{array}:{id}"));
    verify_by(&link, "64k", "32m", true);
    let known = std::fs::read(&file).expect("read");
    let made = Services::made(&life.place);
    // All that it made stays, and is found again.
    life.services.take().expect("runs").kill();
    assert!(std::fs::read(&file).expect("read") == known);
    life.services = Some(Services::start(&life.place));
    ids.iter().for_each(|id| drop(served(life.daemon(), id)));
    assert_eq!(Services::made(&life.place), made);
    // Whoever has the file open has an error, and does not wait.
    let open = std::fs::File::open(&file).expect("opened");
    life.daemon.take().expect("runs").kill();
    let error = open.read_at(&mut [0; 4096], 0);
    assert!(error.is_err(), "{error:?}");
    life.daemon = Some(Daemon::start(&life.place, 2));
    ids.iter().for_each(|id| drop(served(life.daemon(), id)));
    life.daemon().settle(&array);
    drop(open);
    assert!(std::fs::read(&file).expect("read") == known);
    assert!(std::fs::read(&link).expect("read") == known);
    // A daemon that is stopped leaves nothing behind that would take what is for the volume.
    life.daemon.take().expect("runs").stop();
    assert!(std::fs::OpenOptions::new().write(true).open(&file).is_err());
    let mut read = program("dd");
    read.arg(format!("if={}", link.display())).args(["of=/dev/null", "bs=4k", "count=1"]);
    assert!(!output(read.arg("iflag=direct")).status.success());
    life.daemon = Some(Daemon::start(&life.place, 2));
    ids.iter().for_each(|id| drop(served(life.daemon(), id)));
    assert!(std::fs::read(&link).expect("read") == known);
    // The same where both go.
    life.services.take().expect("runs").kill();
    life.daemon.take().expect("runs").stop();
    life.daemon = Some(Daemon::start(&life.place, 1));
    life.services = Some(Services::start(&life.place));
    ids.iter().for_each(|id| drop(served(life.daemon(), id)));
    assert!(std::fs::read(&file).expect("read") == known);
    assert_eq!(Services::made(&life.place).len(), 3, "{:?}", Services::made(&life.place));
    // Somebody unmounts it: it is mounted again.
    run(program("umount").arg("--lazy").arg(&file));
    until("it is mounted", STAGE, || {
        std::fs::metadata(&file).is_ok_and(|about| about.len() == 32 * MIB).then_some(())
    });
    served(life.daemon(), &ids[1]);
    life.end();
}

/// What has no daemon any more is ended by who says so, and by nobody else.
#[test]
fn a_device_without_a_daemon_is_released() {
    let Some(mut life) = Life::new("released", 16) else { return };
    let name = life.volume("v", "16M");
    let release = ["export", "release", &name];
    let said = life.daemon().ends(1, &release);
    assert!(said.contains("ReleaseFailed") && said.contains("no device is at"), "{said}");
    life.daemon().call(&["export", "create", &name, "--local"]);
    verify_by(&life.link("v"), "64k", "16m", true);
    let known = std::fs::read(life.link("v")).expect("read");
    let said = life.daemon().ends(3, &release);
    assert!(said.contains("ReleaseServed"), "{said}");
    let device = std::fs::canonicalize(life.link("v")).expect("leads to it");
    // It is of no program of ours, whatever the link says.
    std::fs::remove_file(life.link("v")).expect("removed");
    std::os::unix::fs::symlink("/dev/null", life.link("v")).expect("linked");
    let said = life.daemon().ends(1, &release);
    assert!(said.contains("/dev/null is not Palisade's"), "{said}");
    std::fs::remove_file(life.link("v")).expect("removed");
    std::os::unix::fs::symlink(&device, life.link("v")).expect("linked");
    life.daemon.take().expect("runs").kill();
    let said = run(program(env!("CARGO_BIN_EXE_palisade")).args(release));
    assert!(said.contains(&format!("{} of {name} is released", device.display())), "{said}");
    assert!(!life.link("v").exists() && Services::made(&life.place).is_empty());
    life.daemon = Some(Daemon::start(&life.place, 2));
    served(life.daemon(), &format!("{}:1", life.array));
    life.daemon().settle(&life.array.clone());
    assert!(std::fs::read(life.link("v")).expect("read") == known);
    life.end();
}

/// What the first MiB of a volume holds.
fn pattern(volume: usize) -> Vec<u8> {
    (0..MIB as usize / 4).flat_map(|at| ((at << 3 | volume) as u32).to_le_bytes()).collect()
}

fn place_of(shown: &Value) -> PathBuf {
    shown["link"].as_str().or(shown["file"].as_str()).expect("a place").into()
}

/// These can be used, hold what their volumes hold, and nothing else is there.
fn each_shows_its_own(life: &Life, exports: &[Value]) {
    let mut made = 0;
    for own in exports {
        let shown = served(life.daemon(), text(own, "id"));
        made += if shown["kind"] == "loop" { 2 } else { 1 };
        let number = text(&shown, "volume").trim_start_matches('v').parse().expect("a number");
        let mut first = vec![0; MIB as usize];
        let open = std::fs::File::open(place_of(&shown)).expect("opened");
        open.read_exact_at(&mut first, 0).expect("read");
        assert!(first == pattern(number), "{shown} shows another volume");
    }
    until("nothing is twice", STAGE, || (Services::made(&life.place).len() == made).then_some(()));
}

/// Exports are made and deleted, and `palisade services` is killed at random moments of that: once
/// it runs again, all is as it should be, each shows its own volume, and nothing is there twice.
/// `PALISADE_SERVICES_KILLS` says how often, 12 without it.
#[test]
fn killed_while_exports_come_and_go_nothing_is_lost_or_twice() {
    let Some(mut life) = Life::new("services killed at random", 16) else { return };
    let names: Vec<String> =
        (0..4).map(|number| life.volume(&format!("v{number}"), "6M")).collect();
    for (number, name) in names.iter().enumerate() {
        let made = life.daemon().call(&["export", "create", name, "--local"]);
        let open = std::fs::OpenOptions::new().write(true).open(place_of(&made)).expect("opened");
        open.write_all_at(&pattern(number), 0).expect("written");
        open.sync_all().expect("synced");
        drop(open);
        life.daemon().call(&["export", "delete", made["id"].as_str().expect("an id")]);
    }
    let list = |life: &Life| {
        let listed = life.daemon().call(&["export", "list"]);
        listed["exports"].as_array().expect("a list").clone()
    };
    let mut rng = life.place.rng.clone();
    life.daemon().call(&["export", "create", &names[0], "--local"]);
    for round in 0..count_of("PALISADE_SERVICES_KILLS", 12) {
        let name = &names[rng.below(4) as usize];
        let file = life.place.file(&format!("file {}", rng.below(4)));
        let before = list(&life);
        let mut deleted = None;
        let words: Vec<&str> = match (rng.below(3), before.is_empty()) {
            (0, false) => {
                let own = &before[rng.below(before.len() as u64) as usize];
                deleted = own["id"].as_str();
                vec!["export", "delete", deleted.expect("an id")]
            }
            (1, _) => vec!["export", "create", name, "--local"],
            _ => vec!["export", "create", name, "--fuse", file.to_str().unwrap()],
        };
        let child = life.daemon().start_call(&words);
        // A moment, not a condition.
        std::thread::sleep(Duration::from_micros(rng.below(40_000)));
        life.services.take().expect("runs").kill();
        let ended = child.wait_with_output().expect("waited for");
        let is_done = ended.status.success();
        life.services = Some(Services::start(&life.place));
        let after = list(&life);
        let has = |id: &str| after.iter().any(|own| own["id"] == id);
        // What was told is so; what was cut off may be so.
        if is_done {
            assert!(deleted.is_none_or(|id| !has(id)), "{deleted:?} is back");
            assert_eq!(
                after.len(),
                if deleted.is_some() { before.len() - 1 } else { before.len() + 1 }
            );
        }
        each_shows_its_own(&life, &after);
        println!("round {round}: {words:?}: {is_done}, {} exports", after.len());
    }
    life.end();
}
