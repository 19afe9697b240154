//! Real clients of the daemon: `nbdinfo`, `nbdcopy`, `qemu-img`, `qemu-io` and fio, on arrays
//! whose drives are lost, replaced and rebuilt under them.

use crate::common::place::{Daemon, Place, Served};
use crate::common::{
    MIB, Rng, program, random_file, run, start, succeeded, text, tools_are_there, until, wait,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// How long one load may take.
const LOAD: Duration = Duration::from_secs(100);

fn same_files(one: &Path, other: &Path) -> bool {
    std::fs::read(one).expect("read") == std::fs::read(other).expect("read")
}

/// Bytes without a period, in a file.
fn image(place: &Place, name: &str, bytes: u64) -> std::path::PathBuf {
    let path = place.file(name);
    random_file(&path, bytes, &mut Rng(bytes));
    path
}

#[test]
fn nbdinfo_tells_what_an_export_can_do() {
    if !tools_are_there(&["nbdinfo"]) {
        return;
    }
    let mut place = Place::new("nbdinfo", 16);
    let drives = place.drives(4);
    let daemon = Daemon::start(&place, 1);
    daemon.create("a", "5", &drives, &["--strip", "64K"]);
    let served = daemon.volume(&place, "a/v", "24M");
    let text = run(program("nbdinfo").arg("--json").arg(&served.uri));
    let info: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(info["protocol"], "newstyle-fixed", "{info}");
    assert_eq!(info["structured"], true, "{info}");
    let export = &info["exports"][0];
    assert_eq!(export["export-name"], "a/v", "{info}");
    assert_eq!(export["export-size"], 24 * MIB, "{info}");
    assert_eq!(export["is_read_only"], false, "{info}");
    for can in ["can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"] {
        assert_eq!(export[can], true, "{can}: {info}");
    }
    assert!(export["contexts"].to_string().contains("base:allocation"), "{info}");
    // Strip or stripe: 64 KiB, or three data strips rounded to a power of two.
    let preferred = export["block_size_preferred"].as_u64().expect("a number");
    assert_eq!(preferred, 65536, "{info}");
    daemon.stop();
}

#[test]
fn nbdcopy_copies_in_and_out_at_every_level() {
    if !tools_are_there(&["nbdcopy", "python3"]) {
        return;
    }
    let mut place = Place::new("nbdcopy", 16);
    let data = image(&place, "data", 9 * MIB);
    let back = place.file("back");
    for (level, cores, strip) in
        [("0", 1, "4K"), ("1", 2, "64K"), ("5", 1, "64K"), ("6", 2, "16K"), ("10", 1, "1M")]
    {
        let drives = place.drives(4);
        let daemon = Daemon::start(&place, cores);
        let name = format!("level-{level}");
        daemon.create(&name, level, &drives, &["--strip", strip]);
        let served = daemon.volume(&place, &format!("{name}/v"), "9M");
        for more in [&["--connections=4", "--requests=32", "--flush"][..], &["--synchronous"]] {
            run(program("nbdcopy").args(more).arg(&data).arg(&served.uri));
            run(program("nbdcopy").args(more).arg(&served.uri).arg(&back));
            assert!(same_files(&data, &back), "level {level}, {more:?}");
            std::fs::remove_file(&back).expect("removed");
        }
        daemon.stop();
        Place::read_array(&["--check"], &drives);
        assert!(same_files(&data, &place.read_volume("v", &drives)), "level {level}, outside");
        drives.iter().for_each(|drive| std::fs::remove_file(drive).expect("removed"));
    }
}

#[test]
fn qemu_img_converts_compares_and_tells() {
    if !tools_are_there(&["qemu-img"]) {
        return;
    }
    let mut place = Place::new("qemu-img", 24);
    let drives = place.drives(5);
    let daemon = Daemon::start(&place, 2);
    daemon.create("a", "6", &drives, &[]);
    let served = daemon.volume(&place, "a/v", "32M");
    let data = image(&place, "data", 32 * MIB);
    let raw = ["-n", "-f", "raw", "-O", "raw"];
    run(program("qemu-img").arg("convert").args(raw).arg(&data).arg(&served.uri));
    let same = ["-f", "raw", "-F", "raw"];
    let said = run(program("qemu-img").arg("compare").args(same).arg(&data).arg(&served.uri));
    assert!(said.contains("identical"), "{said}");
    let back = place.file("back.qcow2");
    let out = ["-f", "raw", "-O", "qcow2"];
    run(program("qemu-img").arg("convert").args(out).arg(&served.uri).arg(&back));
    let same = ["-f", "raw", "-F", "qcow2"];
    let said = run(program("qemu-img").arg("compare").args(same).arg(&data).arg(&back));
    assert!(said.contains("identical"), "{said}");
    let text = run(program("qemu-img").args(["info", "--output=json"]).arg(&served.uri));
    let info: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(info["virtual-size"], 32 * MIB, "{info}");
    daemon.scrub("a");
    daemon.stop();
}

/// `qemu-io` with these commands; each must succeed.
fn qemu_io(served: &Served, commands: &[&str]) {
    let mut program = program("qemu-io");
    program.args(["-f", "raw", "-t", "none", "-d", "unmap"]);
    for command in commands {
        program.args(["-c", command]);
    }
    let said = run(program.arg(&served.uri));
    assert!(!said.contains("failed"), "{commands:?}: {said}");
}

#[test]
fn qemu_io_writes_zeroes_discards_and_flushes() {
    if !tools_are_there(&["qemu-io", "python3"]) {
        return;
    }
    let mut place = Place::new("qemu-io", 16);
    let drives = place.drives(4);
    let daemon = Daemon::start(&place, 1);
    daemon.create("a", "5", &drives, &[]);
    let served = daemon.volume(&place, "a/v", "24M");
    qemu_io(
        &served,
        &[
            "read -P 0 0 24M",
            "write -P 0x11 0 24M",
            "write -P 0x22 4k 300k",
            "write -f -P 0x33 12k 4k",
            "write -z 1000k 700k",
            "write -z -f 4M 64k",
            "write -z -u 5M 3M",
            "discard 8900k 7000k",
            "discard 16388k 12k",
            "flush",
        ],
    );
    let want = [
        "read -P 0x11 0 4k",
        "read -P 0x22 4k 8k",
        "read -P 0x33 12k 4k",
        "read -P 0x22 16k 288k",
        "read -P 0x11 304k 696k",
        "read -P 0 1000k 700k",
        "read -P 0x11 1700k 2396k",
        "read -P 0 4M 64k",
        "read -P 0x11 4160k 960k",
        "read -P 0 5M 3M",
        // A discard takes whole bands, here of 3 MiB: the fourth and fifth of the array.
        "read -P 0x11 8M 1M",
        "read -P 0 9M 6M",
        "read -P 0x11 15M 9M",
    ];
    qemu_io(&served, &want);
    daemon.scrub("a");
    daemon.call(&["array", "fail", "a", "--drive", &drives[2]]);
    place.spoil(&drives[2]);
    qemu_io(&served, &want);
    daemon.stop();
    Place::read_array(&["--check"], &drives);
    let daemon = Daemon::start(&place, 2);
    qemu_io(&served, &want);
    daemon.stop();
}

/// Starts fio's `nbd` engine on a part of a volume: random reads and writes of 4 to 256 KiB that
/// keep to no stripe, every block read back and its checksum compared, until [`end_fio`].
fn fio(served: &Served, offset: &str, size: &str, seed: u64) -> Child {
    let mut fio = program("fio");
    fio.args(["--name=load", "--ioengine=nbd", "--iodepth=16", "--rw=randrw"]);
    fio.args(["--bsrange=4k-256k", "--blockalign=4k", "--verify=crc32c", "--verify_fatal=1"]);
    fio.args([
        "--verify_state_save=0",
        "--do_verify=1",
        "--verify_backlog=64",
        "--time_based",
        // Longer than anything may take.
        "--runtime=86400",
    ]);
    fio.arg(format!("--uri={}", served.uri)).arg(format!("--randseed={seed}"));
    start(fio.arg(format!("--offset={offset}")).arg(format!("--size={size}")))
}

/// Ends such a fio, which has found nothing wrong until then: it says so, and that it was ended.
fn end_fio(load: Child) {
    kill_process(Pid::from_child(&load), Signal::INT).expect("told");
    let ended = wait(load, LOAD, "fio");
    let said = text(&ended);
    assert!(ended.status.code() == Some(128) && said.contains("err= 0"), "{said}");
}

/// fio verifies while drives of an array are lost, replaced and rebuilt, one after the other.
fn fio_beside_loss_and_rebuild(level: &str, cores: u16, strip: &str, lost: &[usize]) {
    if !tools_are_there(&["fio", "python3"]) {
        return;
    }
    let mut place = Place::new(&format!("fio, level {level}"), 48);
    let mut drives = place.drives(5);
    let daemon = Daemon::start(&place, cores);
    daemon.create("a", level, &drives, &["--strip", strip]);
    let served = daemon.volume(&place, "a/v", "64M");
    let seed = place.rng.below(1 << 31);
    let mut loads = vec![fio(&served, "0", "40m", seed), fio(&served, "40m", "24m", seed + 1)];
    for slot in lost {
        let writes = || daemon.show("a")["drive_io"][*slot]["writes"].as_u64().expect("a number");
        let before = writes();
        until("fio writes", LOAD, || (writes() > before + 50).then_some(()));
        daemon.call(&["array", "fail", "a", "--drive", &drives[*slot]]);
        place.spoil(&drives[*slot]);
    }
    let shown = daemon.show("a");
    assert_eq!(shown["state"], "degraded", "{shown}");
    for slot in lost {
        std::fs::remove_file(&drives[*slot]).expect("removed");
        drives[*slot] = place.drive();
        let number = slot.to_string();
        daemon.call(&["array", "replace", "a", "--slot", &number, "--with", &drives[*slot]]);
        let running = loads.iter_mut().all(|load| load.try_wait().expect("asked").is_none());
        assert!(running, "fio has found something wrong");
        daemon.settle("a");
    }
    let shown = daemon.show("a");
    assert_eq!(shown["state"], "optimal", "{shown}");
    loads.into_iter().for_each(end_fio);
    daemon.scrub("a");
    daemon.stop();
    Place::read_array(&["--check"], &drives);
}

#[test]
fn fio_verifies_beside_loss_and_rebuild_of_level_5() {
    fio_beside_loss_and_rebuild("5", 1, "64K", &[2]);
}

#[test]
fn fio_verifies_beside_two_losses_of_level_6_on_two_cores() {
    fio_beside_loss_and_rebuild("6", 2, "16K", &[4, 1]);
}

#[test]
fn several_clients_at_once_keep_to_their_parts() {
    if !tools_are_there(&["nbdcopy", "nbdinfo", "qemu-img"]) {
        return;
    }
    let mut place = Place::new("several clients", 24);
    let drives = place.drives(4);
    let daemon = Daemon::start(&place, 2);
    daemon.create("a", "10", &drives, &[]);
    let served: Vec<Served> =
        (0..4).map(|n| daemon.volume(&place, &format!("a/v{n}"), "8M")).collect();
    let images: Vec<_> = (0..4)
        .map(|n| {
            let path = place.file(&format!("data-{n}"));
            random_file(&path, 8 * MIB, &mut Rng(n));
            path
        })
        .collect();
    for _ in 0..2 {
        let copies = served.iter().zip(&images).map(|(served, image)| {
            start(program("nbdcopy").arg("--connections=2").arg(image).arg(&served.uri))
        });
        let copies: Vec<Child> = copies.collect();
        run(program("nbdinfo").arg("--list").arg(&served[0].uri));
        for copy in copies {
            succeeded("nbdcopy", &wait(copy, LOAD, "nbdcopy"));
        }
    }
    let same = ["compare", "-f", "raw", "-F", "raw"];
    let compares = served
        .iter()
        .zip(&images)
        .map(|(served, image)| start(program("qemu-img").args(same).arg(image).arg(&served.uri)));
    for compare in compares.collect::<Vec<Child>>() {
        succeeded("qemu-img", &wait(compare, LOAD, "qemu-img"));
    }
    daemon.scrub("a");
    daemon.stop();
}
