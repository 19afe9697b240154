//! `palisade bench services`, small: its results are those that are promised, whatever this machine
//! reaches, and nothing is left of it.

use crate::common::{LIMIT, end, run, tools_are_there, until};
use crate::filesystem::can_mount;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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

/// What came of a run: its status, its report, if there is one, what it said, and its folder.
struct Ran {
    status: Option<i32>,
    report: Value,
    said: String,
    folder: PathBuf,
}

/// Runs it with these words; with programs of this folder alone, if one is named.
fn bench(path: Option<&Path>, words: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.args(["bench", "services", "--json"]).args(words);
    // Guests have devices of ublk, with tests of their own.
    command.env("PALISADE_UBLK", "off");
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let folder = Path::new("/dev/shm").join(format!("palisade-{}", child.id()));
    let ended = child.wait_with_output().expect("waited for");
    let report = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    Ran { status: ended.status.code(), report, said, folder }
}

fn names(report: &Value, list: &str) -> BTreeSet<String> {
    let all = report[list].as_array().cloned().unwrap_or_default();
    all.iter().map(|own| own["name"].as_str().expect("a name").to_owned()).collect()
}

/// What is left of a run: its folder, mounts, loop devices and processes.
fn left(folder: &Path) -> Vec<String> {
    let own = &format!("{}/", folder.display());
    let mut all = Vec::new();
    all.extend(folder.exists().then(|| own.clone()));
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

#[test]
fn every_way_in_is_measured_and_nothing_is_left() {
    if !can_be() {
        return;
    }
    let only = ["--only", "nbdfuse,iscsi,smb,nfs,idle"];
    let Ran { status, report, said, folder } = bench(None, &[SMALL, &only].concat());
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
    assert_eq!(left(&folder), Vec::<String>::new());
}

#[test]
fn what_can_not_be_measured_stays_open_and_nothing_is_left() {
    if !can_be() {
        return;
    }
    // A program that is missing, and one that does not serve.
    let programs = tempfile::tempdir().expect("a folder");
    let link = |name: &str, to: &Path| {
        std::os::unix::fs::symlink(to, programs.path().join(name)).expect("linked");
    };
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let others = ["sh", "timeout", "dd", "blkid", "wipefs", "e2fsck", "resize2fs", "modprobe"];
    for name in TOOLS.iter().chain(&others) {
        let at = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|at| at.is_file());
        match *name {
            "nbdfuse" => {}
            "ganesha.nfsd" => link(name, Path::new("/bin/false")),
            _ => at.iter().for_each(|at| link(name, at)),
        }
    }
    let only = ["--only", "nbdfuse,nfs"];
    let words = [SMALL, &only].concat();
    let Ran { status, report, said, folder } = bench(Some(programs.path()), &words);
    assert_eq!(status, Some(1), "{said}");
    let open = names(&report, "open");
    let wanted = ["fuse-vs-nbdfuse-4k-read", "nfs-1m-read"].map(str::to_owned);
    assert_eq!(open, BTreeSet::from(wanted), "{said}");
    let told = "not measured: fuse-vs-nbdfuse-4k-read: there is no nbdfuse; install libnbd-bin";
    assert!(said.contains(told), "{said}");
    assert!(said.contains("not measured: nfs-1m-read: "), "{said}");
    assert_eq!(left(&folder), Vec::<String>::new());
}

/// A run that ends in order, whatever comes of the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            end(&mut self.0, Signal::TERM, LIMIT);
        }
    }
}

#[test]
fn one_that_is_told_to_end_leaves_nothing() {
    if !can_be() {
        return;
    }
    // As a terminal that is gone, nobody takes what it says.
    for (signal, stderr) in [(Signal::TERM, "/dev/null"), (Signal::HUP, "/dev/full")] {
        let stderr = File::options().write(true).open(stderr).expect("opened");
        // Whoever runs the tests may have them ignore it.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_palisade")]);
        command.args(["bench", "services", "--json", "--only", "smb", "--size", "4M"]);
        command.args(["--rounds", "100000"]).env("PALISADE_UBLK", "off");
        command.stdout(Stdio::null()).stderr(stderr);
        let mut own = Ending(command.spawn().expect("started"));
        let folder = Path::new("/dev/shm").join(format!("palisade-{}", own.0.id()));
        // The server that is compared with runs, or is about to.
        until("a server beside", LIMIT, || {
            let ended = own.0.try_wait().expect("looked");
            assert!(ended.is_none(), "{ended:?}");
            folder.join("memory-smb/smb").exists().then_some(())
        });
        let status = end(&mut own.0, signal, LIMIT);
        assert_eq!(status.code(), Some(130), "{signal:?}");
        assert_eq!(left(&folder), Vec::<String>::new());
    }
}

#[test]
fn a_part_that_there_is_not_is_refused() {
    for (words, told) in [
        (&["--only", "disk"][..], "front-ends, nbdfuse"),
        (&["--size", "1000"], "1M to 1G"),
        (&["--exports", "0"], "1 to 64 exports"),
    ] {
        let Ran { status, report, said, .. } = bench(None, words);
        assert_eq!((status, report), (Some(2), Value::Null), "{said}");
        assert!(said.contains(told), "{said}");
    }
    if can_be() {
        for (dir, status, why) in
            [("/nowhere", 1, "palisade: /nowhere: "), ("/proc", 2, "/proc is not in memory")]
        {
            let ran = bench(None, &["--dir", dir]);
            assert_eq!((ran.status, ran.report), (Some(status), Value::Null), "{}", ran.said);
            assert!(ran.said.contains(why), "{}", ran.said);
        }
    }
}
