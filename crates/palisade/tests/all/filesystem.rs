//! A mounted file system in real use on a volume, through a drive's loss and rebuild.
//!
//! `nbdfuse` shows the NBD export as a file. First fio writes and verifies that file, with 16
//! requests under way. Then `losetup` makes it a block device, ext4 is mounted from it, and SQLite
//! works on a database in it all the time; fio verifies beside it. At the end SQLite's own check,
//! the row count, `e2fsck` and the outside reader must agree.

use crate::common::loops::{self, Loop, Mount};
use crate::common::place::{Daemon, Place, Served};
use crate::common::{end, output, program, run, skip, start, tools_are_there, until};
use rustix::process::Signal;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const TOOLS: &[&str] = &[
    "nbdfuse",
    "fusermount3",
    "fio",
    "losetup",
    "mke2fs",
    "e2fsck",
    "mount",
    "umount",
    "sqlite3",
    "python3",
];
/// How long one stage may take.
const STAGE: Duration = Duration::from_secs(60);
/// Transactions that must be seen between two events.
const TRANSACTIONS: u64 = 5;
/// Rows that a transaction adds.
const ROWS: u64 = 20;

/// Whether this machine lets us mount: FUSE and loop devices.
pub fn can_mount() -> bool {
    if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        skip("no /dev/fuse");
        return false;
    }
    loops::are_to_be_had()
}

/// The export as a file.
struct Fuse {
    child: Child,
    file: PathBuf,
}

impl Fuse {
    fn new(place: &Place, served: &Served, bytes: u64) -> Self {
        let file = place.file("volume");
        std::fs::write(&file, b"").expect("a file");
        let child = start(program("nbdfuse").arg(&file).arg(&served.uri));
        let mut fuse = Self { child, file };
        until("the FUSE file", STAGE, || {
            let ended = fuse.child.try_wait().expect("asked");
            if let (Some(status), Some(pipe)) = (ended, &mut fuse.child.stderr) {
                let mut said = String::new();
                let _ = pipe.read_to_string(&mut said);
                panic!("nbdfuse: {status}: {said}");
            }
            let size = std::fs::metadata(&fuse.file).map(|about| about.len());
            (size.is_ok_and(|size| size == bytes)).then_some(())
        });
        fuse
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // Nobody uses the file any more, unless the test fails.
        output(program("fusermount3").args(["-u", "-q", "-z"]).arg(&self.file));
        end(&mut self.child, Signal::TERM, STAGE);
    }
}

/// Writes random data to all of the first bytes of a file and reads it back, with 16 requests of
/// this size under way, past the kernel's cache.
pub fn verify(file: &Path, block: &str, size: &str) {
    verify_by(file, block, size, true);
}

/// The same, past the kernel's cache or through it.
pub fn verify_by(file: &Path, block: &str, size: &str, is_direct: bool) {
    let mut fio = program("fio");
    fio.args(["--name=verify", "--ioengine=libaio", "--iodepth=16"]);
    fio.arg(format!("--direct={}", u8::from(is_direct)));
    fio.args(["--rw=randwrite", "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0"]);
    fio.arg(format!("--filename={}", file.display()));
    run(fio.arg(format!("--bs={block}")).arg(format!("--size={size}")));
}

fn sqlite(database: &Path, words: &str) -> String {
    let limit = ["-bail", "-batch"];
    run(program("sqlite3").args(limit).arg(database).arg(words)).trim().to_owned()
}

/// Tells the worker to stop, also when the test fails: its scope waits for it.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Adds and changes rows, transaction after transaction, until told to stop.
fn work(database: &Path, stop: &AtomicBool, done: &AtomicU64) {
    let add = format!(
        "INSERT INTO rows SELECT NULL, randomblob(100 + abs(random()) % 9000), 0 \
         FROM generate_series(1, {ROWS});"
    );
    while !stop.load(Ordering::Relaxed) {
        sqlite(
            database,
            &format!(
                "PRAGMA synchronous=FULL; BEGIN; {add} \
                 UPDATE rows SET data = randomblob(length(data)), changed = changed + 1 \
                 WHERE id % 7 = abs(random()) % 7; COMMIT;"
            ),
        );
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Loses a drive of slot 1, replaces it and waits for the rebuild, while transactions go on.
fn lose_and_rebuild(
    daemon: &Daemon,
    place: &mut Place,
    drives: &mut [String],
    progress: impl Fn(),
) {
    progress();
    daemon.call(&["array", "fail", "a", "--drive", &drives[1]]);
    place.spoil(&drives[1]);
    assert_eq!(daemon.show("a")["state"], "degraded");
    progress();
    std::fs::remove_file(&drives[1]).expect("removed");
    drives[1] = place.drive();
    daemon.call(&["array", "replace", "a", "--slot", "1", "--with", &drives[1]]);
    daemon.settle("a");
    progress();
    assert_eq!(daemon.show("a")["state"], "optimal");
}

#[test]
fn a_database_outlives_a_drive() {
    if !tools_are_there(TOOLS) || !can_mount() {
        return;
    }
    let mut place = Place::new("file system", 64);
    let mut drives = place.drives(5);
    let daemon = Daemon::start(&place, 2);
    daemon.create("a", "5", &drives, &[]);
    let served = daemon.volume(&place, "a/v", "192M");
    let fuse = Fuse::new(&place, &served, 192 << 20);
    for (block, size) in [("4k", "8m"), ("64k", "48m"), ("256k", "64m"), ("1m", "64m")] {
        verify(&fuse.file, block, size);
    }
    let device = Loop::new(&fuse.file, "512");
    run(program("mke2fs").args(["-q", "-t", "ext4", &device.0]));
    let mount = Mount::new(&device, place.file("mounted"));
    let database = mount.0.join("rows.sqlite");
    sqlite(&database, "CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB, changed INTEGER);");
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(&database, &stop, &done));
        let _stop = Stop(&stop);
        let progress = || {
            let before = done.load(Ordering::Relaxed);
            until("transactions", STAGE, || {
                assert!(!worker.is_finished(), "the database gave up");
                (done.load(Ordering::Relaxed) >= before + TRANSACTIONS).then_some(())
            });
        };
        lose_and_rebuild(&daemon, &mut place, &mut drives, progress);
        verify(&mount.0.join("beside"), "64k", "16m");
    });
    assert_eq!(sqlite(&database, "PRAGMA integrity_check;"), "ok");
    let rows = done.load(Ordering::Relaxed) * ROWS;
    let count = sqlite(&database, "SELECT count(*) FROM rows;");
    assert_eq!(count, rows.to_string());
    mount.end();
    run(program("e2fsck").args(["-f", "-n", &device.0]));
    drop(device);
    drop(fuse);
    daemon.scrub("a");
    daemon.stop();
    Place::read_array(&["--check"], &drives);
    let image = place.read_volume("v", &drives);
    run(program("e2fsck").arg("-fn").arg(&image));
    println!("{rows} rows");
}
