//! A drive that does not answer. While the daemon is told to end: the others are free, and another
//! daemon has the array. While a host's connection breaks: what that asked for comes first.
//!
//! The drive is a file on a file system that is frozen: the kernel makes who writes there wait
//! where no signal reaches it, as it does with a device that hangs.

use crate::common::loops::{self, Frozen, Loop, Mount};
use crate::common::nbd::{Client, Kind};
use crate::common::place::{Daemon, Place};
use crate::common::{MIB, program, run, tools_are_there, until};
use std::time::Duration;

const TOOLS: &[&str] = &["losetup", "mke2fs", "mount", "umount", "fsfreeze"];
/// Within what the daemon says that it has ended: the bounds of a stop, of what is in flight and of
/// a look at the drive together, and what a busy machine needs.
const END: Duration = Duration::from_secs(60);
/// How long something is looked at that must not come.
const LOOK: Duration = Duration::from_millis(300);
/// What is written at a time.
const PART: usize = 64 << 10;
/// Requests of a connection that are in progress at once.
const JOBS: u64 = 64;

/// A drive's file and the device that it is by now.
fn as_device(place: &Place, drive: &str, n: usize) -> Loop {
    let backing = place.file(&format!("backing-{n}"));
    std::fs::rename(drive, &backing).expect("renamed");
    let device = Loop::new(&backing, "512");
    std::os::unix::fs::symlink(&device.0, drive).expect("a link");
    device
}

/// Moves a drive to a file system of its own.
fn aside(place: &Place, drive: &str) -> (Loop, Mount) {
    let image = place.file("aside");
    let file = std::fs::File::create(&image).expect("a file");
    file.set_len(64 * MIB).expect("sized");
    let device = Loop::new(&image, "512");
    run(program("mke2fs").args(["-q", "-t", "ext4", &device.0]));
    let mount = Mount::new(&device, place.file("mounted"));
    let moved = mount.0.join("drive");
    std::fs::copy(drive, &moved).expect("copied");
    std::fs::remove_file(drive).expect("removed");
    std::os::unix::fs::symlink(&moved, drive).expect("a link");
    (device, mount)
}

/// What `drive list` says of a drive.
fn listed(daemon: &Daemon, drive: &str) -> serde_json::Value {
    let list = daemon.call(&["drive", "list"]);
    let mut all = list["drives"].as_array().expect("a list").iter();
    all.find(|known| known["path"] == drive).expect("is listed").clone()
}

/// Ends a daemon while a drive of its array hangs, and goes on with another.
fn end_while_a_drive_hangs(by: &[&str]) {
    if !tools_are_there(TOOLS) || !loops::are_to_be_had() {
        return;
    }
    let mut place = Place::new("hung", 24);
    place.drive_deadline_ms = 2_000;
    let drives = place.drives(3);
    // Of all kinds: a file in memory, a device, and what will hang.
    let _device = as_device(&place, &drives[1], 1);
    let (_below, mount) = aside(&place, &drives[2]);
    let first = Daemon::start_by(&place, 2, by, &[]);
    first.create("a", "5", &drives, &["--strip", "16K"]);
    let served = first.volume(&place, "a/v", "16M");
    let mut parts = vec![vec![0; PART]; 8];
    parts.iter_mut().for_each(|part| place.rng.fill(part));
    let mut client = Client::connect(&served.socket, "a/v").expect("connects");
    client.write(0, &parts[0]).expect("written");

    let frozen = Frozen::new(&mount);
    for (at, part) in (0..).zip(&parts) {
        client.write(at * PART as u64, part).expect("written without the drive");
    }
    assert_eq!(first.show("a")["state"], "degraded");
    first.tell_to_stop();
    until("the end of the first daemon", END, || (!first.listens()).then_some(()));

    let second = Daemon::start_by(&place, 2, by, &[]);
    assert_eq!(second.show("a")["state"], "degraded", "{}", second.said());
    // What was asked of it may still happen: nobody else may have it.
    assert_eq!(listed(&second, &drives[2])["state"], "unusable");
    let mut client = Client::connect(&served.socket, "a/v").expect("connects");
    let mut back = vec![0; PART];
    for (at, part) in (0..).zip(&parts) {
        client.read(at * PART as u64, &mut back).expect("read");
        assert!(back == *part, "part {at}");
    }
    client.write(0, &parts[1]).expect("written");

    drop(frozen);
    first.wait();
    // The kernel closes what requests had kept open behind the end of the process.
    let is_free = || (listed(&second, &drives[2])["state"] != "unusable").then_some(());
    until("the drive that hung", END, is_free);
    second.call(&["array", "replace", "a", "--slot", "2", "--with", &drives[2]]);
    assert_eq!(second.settle("a")["state"], "optimal");
    second.scrub("a");
    second.stop();
    mount.end();
}

#[test]
fn a_daemon_ends_while_a_drive_hangs() {
    end_while_a_drive_hangs(&[]);
}

#[test]
fn a_daemon_ends_while_a_drive_hangs_without_io_uring() {
    end_while_a_drive_hangs(&["env", "PALISADE_IO=blocking"]);
}

/// Reads by a connection until it has to wait for another: `late`, if it may ask before the end of
/// that is seen.
fn wait_begins(next: &mut Client, late: bool) {
    let mut back = vec![0; PART];
    until("what is left is waited for", END, || {
        next.send(Kind::Read, 0, 2, (30 * MIB, PART as u32), &[]).expect("sent");
        let Some(answered) = next.receive_within(LOOK).expect("looked") else { return Some(()) };
        assert_eq!((answered, late), (2, true), "it was not waited for");
        next.receive_data(&mut back).expect("read");
        None
    });
}

/// Breaks a connection with so many writes that a drive holds up, and asks by another on the other
/// core, `early`: that was there before. Without redundancy nothing but the fence of its
/// connections puts a volume's writes in order.
fn break_off(writes: u64, early: bool) {
    if !tools_are_there(TOOLS) || !loops::are_to_be_had() {
        return;
    }
    let mut place = Place::new("broken", 24);
    let drives = place.drives(2);
    let (_below, mount) = aside(&place, &drives[0]);
    let daemon = Daemon::start(&place, 2);
    daemon.create("a", "jbod", &drives, &[]);
    let served = daemon.volume(&place, "a/v", "32M");
    let connect = || Client::connect(&served.socket, "a/v").expect("connects");
    let [old, new] = [1, 2].map(|fill| vec![fill; PART]);

    // Its place on the drive is known, so that nothing but the write itself is to be done.
    let mut broken = connect();
    let there = early.then(connect);
    broken.write(0, &new).expect("written");
    let frozen = Frozen::new(&mount);
    let before = daemon.written("a");
    for cookie in 0..writes {
        broken.send(Kind::Write, 0, cookie, (0, PART as u32), &old).expect("sent");
    }
    until("the write has begun", END, || (daemon.written("a") > before).then_some(()));
    drop(broken);

    // From the drive that answers.
    let mut next = there.unwrap_or_else(connect);
    let mut back = vec![0; PART];
    wait_begins(&mut next, early);
    drop(frozen);
    assert_eq!(next.receive().expect("answered"), 2);
    next.receive_data(&mut back).expect("read");
    next.write(0, &new).expect("written");
    next.read(0, &mut back).expect("read");
    assert!(back == new, "the older write came last");
    drop(next);
    daemon.stop();
    mount.end();
}

#[test]
fn what_a_broken_connection_left_comes_first_on_all_cores() {
    break_off(1, false);
}

/// More than a connection may have in progress: it takes no more, and reads no end.
#[test]
fn a_connection_that_was_there_waits_for_one_that_is_full() {
    break_off(JOBS + 1, true);
}

/// A client that asks, says that it sends nothing more, and receives nothing.
#[test]
fn who_receives_nothing_holds_others_up_for_a_while_only() {
    let mut place = Place::new("silent", 24);
    let drives = place.drives(2);
    let daemon = Daemon::start(&place, 2);
    daemon.create("a", "jbod", &drives, &[]);
    let served = daemon.volume(&place, "a/v", "32M");
    let connect = || Client::connect(&served.socket, "a/v").expect("connects");
    let (mut silent, mut next) = (connect(), connect());
    for cookie in 0..JOBS + 1 {
        silent.send(Kind::Read, 0, cookie, (0, MIB as u32), &[]).expect("sent");
    }
    silent.finish().expect("open");
    wait_begins(&mut next, true);
    assert_eq!(next.receive().expect("answered"), 2);
    drop((silent, next));
    daemon.stop();
}
