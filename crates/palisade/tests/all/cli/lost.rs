//! Blocks that nobody can give back, from the drives to a host and to a person: refused, shown,
//! kept over restarts, and data again once they are written.
//!
//! A RAID 5 of three drives lacks the one in slot 0. Another one is a loop device, the file behind
//! which is cut off ahead of the last block that was written: the device stays as large as it was,
//! and a read behind the file's end is an error of these blocks. A write behind it, as that of a
//! record, makes the file as long as it was, with zeros between, which are wrong and no error: so
//! no more than one block lies there, and only until it is written.
//!
//! Of the last stripe of a volume of 2 MiB slot 0 has the first strip, slot 1 the second and slot 2
//! parity (docs/format.md, left-symmetric: stripe 15 of three drives).

use super::nvme::{HOST, host_of};
use super::place::{DRIVE_BYTES, Place, eventually, random};
use crate::common::loops::{self, Loop};
use crate::common::nvme::Queue;
use crate::common::tools_are_there;
use ::nvme::status::Status;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::File;

/// Bytes of a strip, and of a write.
const STRIP: usize = 64 << 10;
/// Bytes of a block.
const BLOCK: usize = 512;
/// Bytes of the volume: a band of each drive.
const VOLUME: usize = 2 << 20;
/// The last block that slot 0 has, and slot 1.
const FIRST: usize = VOLUME - STRIP - BLOCK;
const SECOND: usize = VOLUME - BLOCK;
/// Where on a drive they lie: the band begins behind 3 MiB.
const CUT: u64 = (4 << 20) - BLOCK as u64;

struct Lost {
    place: Place,
    /// What is behind the device.
    backing: File,
    _device: Loop,
    export: Value,
    /// What the volume holds, where it holds anything.
    data: Vec<u8>,
}

impl Lost {
    /// The volume is written, a drive out, and another one cut off.
    fn with(cut: usize) -> Self {
        let mut place = Place::new(4);
        let backing = place.dir.path().join("backing");
        std::fs::rename(place.drive(cut), &backing).expect("renamed");
        let device = Loop::new(&backing, "512");
        std::os::unix::fs::symlink(&device.0, place.drive(cut)).expect("a link");
        place.start();
        let made = place.create("data", "5", &[0, 1, 2]);
        assert_eq!(
            (&made["slots"][1]["drive"], made["strip_bytes"].as_u64()),
            (&place.name(1).into(), Some(STRIP as u64))
        );
        place.json(&["volume", "create", "data/v", "--size", "2M"]);
        let export = place.export("data/v", &["--any-host"]);
        let data = random(7)[..VOLUME].to_vec();
        let backing = File::options().write(true).open(backing).expect("opened");
        let lost = Self { place, backing, _device: device, export, data };
        lost.write(0, VOLUME);
        lost.place.json(&["array", "fail", "data", "--drive", "slot:0"]);
        let show = || lost.place.json(&["array", "show", "data"]);
        eventually("guarded", || show()["crash_safe"] == true);
        lost.backing.set_len(CUT).expect("cut off");
        lost
    }

    /// A host's two queues; it is gone without the first.
    fn host(&self) -> (Queue, Queue) {
        host_of(&self.export, HOST).enter().expect("connected")
    }

    /// Writes what the volume is to hold there.
    fn write(&self, from: usize, bytes: usize) {
        let (_admin, mut queue) = self.host();
        for at in (from..from + bytes).step_by(STRIP) {
            let part = &self.data[at..(at + STRIP).min(from + bytes)];
            queue.write(1, at as u64 / 512, part).expect("written");
        }
    }

    /// All bytes are right but those of these blocks, which can't be read; and that is what is
    /// shown.
    fn is_lost(&self, blocks: &[usize], reason: &str) {
        let (_admin, mut queue) = self.host();
        let told = format!("{:?}", Status::UNRECOVERED_READ);
        let mut at = 0;
        while at < VOLUME {
            // Block by block only where one is lost.
            let beside = blocks.iter().any(|block| at / 4096 == block / 4096);
            let bytes = if beside { BLOCK } else { 4096 };
            let read = queue.read(1, (at / BLOCK) as u64, (bytes / BLOCK) as u64);
            match blocks.contains(&at) {
                true => assert_eq!(read.map(drop).expect_err("lost").to_string(), told, "{at}"),
                false => assert!(read.expect("no error") == self.data[at..at + bytes], "{at}"),
            }
            at += bytes;
        }
        let range = |at: &usize| {
            let (offset, length) = (*at, BLOCK);
            json!({"volume": "v", "offset": offset, "length": length, "reason": reason})
        };
        let expected: Vec<Value> = blocks.iter().map(range).collect();
        let shown = self.place.json(&["array", "show", "data"]);
        assert_eq!(shown["unreadable"], Value::Array(expected));
        let next = self.place.json(&["status"])["next"].to_string();
        assert_eq!(next.contains("can't read"), !blocks.is_empty(), "{next}");
    }

    /// Nothing that is refused changes what is lost.
    fn refuse(&self, blocks: &[usize], reason: &str) {
        let (_admin, mut queue) = self.host();
        let end = (VOLUME / BLOCK) as u64;
        assert!(queue.write(1, end - 1, &[1; 2 * BLOCK]).is_err(), "half of it is behind the end");
        assert!(queue.write(1, u64::MAX, &[1; 2 * BLOCK]).is_err(), "its end is no number");
        assert!(queue.read(1, end - 256, 256).is_err(), "a block of it is lost");
        let spare = self.place.name(3);
        self.place.refuses(3, &["array", "replace", "data", "--slot", "1", "--with", &spare]);
        self.place.refuses(3, &["array", "fail", "data", "--drive", "slot:1"]);
        self.place.refuses(3, &["volume", "delete", "data/v"]);
        self.place.refuses(1, &["array", "assemble", "data"]);
        self.is_lost(blocks, reason);
    }
}

/// `noted` is what can't be read before anything is written.
fn lost_and_written_anew(cut: usize, noted: &[usize]) {
    if !tools_are_there(&["losetup"]) || !loops::are_to_be_had() {
        return;
    }
    let mut lost = Lost::with(cut);
    lost.is_lost(noted, "media");
    lost.refuse(noted, "media");
    // The other block of the column is written: now nothing will ever give the first.
    lost.data[SECOND..].fill(9);
    lost.write(SECOND, BLOCK);
    lost.backing.set_len(DRIVE_BYTES as u64).expect("as long as it was");
    lost.is_lost(&[FIRST], "write");
    lost.refuse(&[FIRST], "write");
    let text = lost.place.run(&["array", "show", "data"]).stdout;
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains(&format!("v at {FIRST}, {BLOCK} bytes (write)")), "{text}");
    lost.place.restart();
    lost.is_lost(&[FIRST], "write");
    lost.place.end(Signal::KILL);
    lost.place.start();
    lost.is_lost(&[FIRST], "write");
    let record = lost.place.json(&["drive", "inspect", &lost.place.name(3 - cut)]);
    assert_eq!(record["lost_ranges"], 1);

    // What is written beside it leaves it lost, and what is written over it is data.
    lost.data[FIRST - BLOCK..FIRST].fill(3);
    lost.write(FIRST - BLOCK, BLOCK);
    lost.data[FIRST + BLOCK..FIRST + 2 * BLOCK].fill(4);
    lost.write(FIRST + BLOCK, BLOCK);
    lost.refuse(&[FIRST], "write");
    lost.data[FIRST..FIRST + BLOCK].fill(5);
    lost.write(FIRST, BLOCK);
    lost.is_lost(&[], "");
    lost.place.restart();
    lost.is_lost(&[], "");
    lost.place.json(&["array", "replace", "data", "--slot", "0", "--with", &lost.place.name(3)]);
    lost.place.json(&["array", "wait", "data", "--timeout", "60"]);
    lost.place.json(&["array", "scrub", "data", "--check"]);
    let whole = lost.place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(
        (&whole["state"], &whole["last_scrub"]["mismatches"]),
        (&"optimal".into(), &0.into())
    );
    lost.is_lost(&[], "");
}

#[test]
fn what_a_drive_and_parity_can_not_give_is_lost_until_it_is_written() {
    lost_and_written_anew(2, &[FIRST]);
}

#[test]
fn what_two_drives_can_not_give_is_lost_until_it_is_written() {
    lost_and_written_anew(1, &[FIRST, SECOND]);
}
