//! `palisade bench services`, small: its results are those that are promised, whatever this machine
//! reaches, and nothing is left of it.

use crate::common::{run, tools_are_there};
use crate::filesystem::can_mount;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const TOOLS: &[&str] = &[
    "fio",
    "nbdfuse",
    "tgtd",
    "tgtadm",
    "qemu-img",
    "losetup",
    "mkfs.ext4",
    "smbd",
    "smbclient",
    "smbpasswd",
    "ganesha.nfsd",
    "nfs-cat",
];
const SMALL: &[&str] = &[
    "--rounds",
    "1",
    "--seconds",
    "0.05",
    "--idle-seconds",
    "0.2",
    "--size",
    "4M",
    "--exports",
    "2",
    "--shares",
    "2",
];

fn can_be() -> bool {
    tools_are_there(TOOLS) && can_mount()
}

/// Runs it with these words, in a folder of its own, with programs of these folders alone: its
/// status, its report, if there is one, and what it said.
fn bench(dir: &Path, path: Option<&str>, words: &[&str]) -> (Option<i32>, Value, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.args(["bench", "services", "--json", "--dir"]).arg(dir).args(words);
    // Guests have devices of ublk, with tests of their own.
    command.env("PALISADE_UBLK", "off");
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let ended = command.output().expect("palisade runs");
    let report = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    (ended.status.code(), report, String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn names(report: &Value, list: &str) -> BTreeSet<String> {
    let all = report[list].as_array().cloned().unwrap_or_default();
    all.iter().map(|own| own["name"].as_str().expect("a name").to_owned()).collect()
}

/// What is left of a run in a folder: files, mounts, loop devices, and processes.
fn left(dir: &Path) -> Vec<String> {
    let own = dir.to_str().expect("text");
    let mut all: Vec<String> = std::fs::read_dir(dir)
        .expect("read")
        .map(|file| file.expect("read").path().display().to_string())
        .collect();
    let text = std::fs::read_to_string("/proc/self/mountinfo").expect("read");
    all.extend(text.lines().filter(|line| line.contains(own)).map(str::to_owned));
    let loops = run(Command::new("losetup").args(["--list", "--noheadings"]));
    all.extend(loops.lines().filter(|line| line.contains(own)).map(str::to_owned));
    for process in std::fs::read_dir("/proc").expect("read").flatten() {
        let read = |name: &str| {
            let bytes = std::fs::read(process.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let is_process = process.file_name().to_str().is_some_and(|id| id.parse::<u32>().is_ok());
        if is_process && (read("environ").contains(own) || read("cmdline").contains(own)) {
            all.push(read("cmdline"));
        }
    }
    all
}

fn folder() -> tempfile::TempDir {
    let builder = tempfile::Builder::new().prefix("palisade-bs-").to_owned();
    let dir = builder.tempdir_in("/dev/shm").expect("a folder");
    // Users of shares come through it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(dir.path(), open).expect("opened");
    dir
}

#[test]
fn every_way_in_is_measured_and_nothing_is_left() {
    if !can_be() {
        return;
    }
    let dir = folder();
    let only = ["--only", "nbdfuse,iscsi,smb,nfs,idle"];
    let (status, report, said) = bench(dir.path(), None, &[SMALL, &only].concat());
    assert_eq!(status, Some(0), "{said}");
    let found = names(&report, "results");
    let sides = |name: &str, sides: [&str; 2], rate: &str| {
        let side = |side: &str| [rate, "cpu-us"].map(|what| format!("{name}-{side}-{what}"));
        let all = sides.map(side).concat();
        [vec![name.to_owned()], all].concat()
    };
    let wanted: BTreeSet<String> = [
        sides("fuse-vs-nbdfuse-4k-read", ["fuse", "nbdfuse"], "iops"),
        sides("iscsi-tgt-4k-read", ["volume", "memory"], "iops"),
        sides("smb-1m-read", ["volume", "memory"], "gbps"),
        sides("nfs-1m-read", ["volume", "memory"], "gbps"),
        ["services-idle-cpu", "services-idle-daemon-cpu"].map(str::to_owned).to_vec(),
    ]
    .concat()
    .into_iter()
    .collect();
    assert_eq!(found, wanted, "{said}");
    for result in report["results"].as_array().expect("a list") {
        let number = |key: &str| result[key].as_f64().expect("a number");
        assert!(number("low") <= number("value") && number("value") <= number("high"), "{result}");
        assert!(result["goal"].is_null() && result["met"].is_null(), "so small a run: {result}");
    }
    assert_eq!(left(dir.path()), Vec::<String>::new());
}

#[test]
fn what_can_not_be_measured_stays_open_and_nothing_is_left() {
    if !can_be() {
        return;
    }
    let dir = folder();
    // A program that is missing, and one that does not serve.
    let programs = dir.path().join("programs");
    std::fs::create_dir(&programs).expect("made");
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    for name in TOOLS.iter().filter(|name| **name != "nbdfuse") {
        let at = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|at| at.is_file());
        std::os::unix::fs::symlink(at.expect("is there"), programs.join(name)).expect("linked");
    }
    for name in ["sh", "timeout", "dd", "blkid", "wipefs", "e2fsck", "resize2fs", "testparm"] {
        let at = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|at| at.is_file());
        std::os::unix::fs::symlink(at.expect("is there"), programs.join(name)).expect("linked");
    }
    let nfs = programs.join("ganesha.nfsd");
    std::fs::remove_file(&nfs).expect("removed");
    std::os::unix::fs::symlink("/bin/false", &nfs).expect("linked");
    let only = ["--only", "nbdfuse,nfs"];
    let words = [SMALL, &only].concat();
    let (status, report, said) = bench(dir.path(), programs.to_str(), &words);
    assert_eq!(status, Some(1), "{said}");
    let open = names(&report, "open");
    let wanted = ["fuse-vs-nbdfuse-4k-read", "nfs-1m-read"].map(str::to_owned);
    assert_eq!(open, BTreeSet::from(wanted), "{said}");
    let told = "not measured: fuse-vs-nbdfuse-4k-read: there is no nbdfuse; install libnbd-bin";
    assert!(said.contains(told), "{said}");
    assert!(said.contains("not measured: nfs-1m-read: "), "{said}");
    std::fs::remove_dir_all(&programs).expect("removed");
    assert_eq!(left(dir.path()), Vec::<String>::new());
}

#[test]
fn a_part_that_there_is_not_is_refused() {
    let dir = folder();
    for (words, told) in [
        (&["--only", "disk"][..], "front-ends, nbdfuse"),
        (&["--size", "1000"], "1M to 1G"),
        (&["--exports", "0"], "1 to 64 exports"),
    ] {
        let (status, report, said) = bench(dir.path(), None, words);
        assert_eq!((status, report), (Some(2), Value::Null), "{said}");
        assert!(said.contains(told), "{said}");
    }
    let (status, report, said) = bench(Path::new("/nowhere"), None, &["--only", "idle"]);
    assert_eq!((status, report), (Some(1), Value::Null), "{said}");
}
