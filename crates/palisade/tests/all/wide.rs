//! An array of as many drives as there can be: made, degraded, rebuilt and scrubbed.

use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place};
use crate::common::{MIB, Rng, tools_are_there};

/// Most drives of an array.
const DRIVES: usize = 64;
/// Bytes of the volume: stripes of 62 strips don't divide it.
const BYTES: u64 = 24 * MIB;
/// Bytes of a request.
const PART: usize = MIB as usize;

/// Writes parts of a volume with bytes that nobody wrote before, and keeps them.
fn write(client: &mut Client, rng: &mut Rng, all: &mut [u8], parts: impl Iterator<Item = usize>) {
    for n in parts {
        let part = &mut all[n * PART..][..PART];
        rng.fill(part);
        client.write((n * PART) as u64, part).expect("written");
    }
}

/// Reads all of it; it must hold what was written.
fn verify(client: &mut Client, all: &[u8]) {
    let mut read = vec![0; PART];
    for (at, part) in (0..).step_by(PART).zip(all.chunks(PART)) {
        client.read(at, &mut read).expect("read");
        assert!(read == part, "the MiB at {at} is not what was written");
    }
}

#[test]
fn an_array_of_64_drives_is_degraded_rebuilt_and_scrubbed() {
    if !tools_are_there(&["python3"]) {
        return;
    }
    let mut place = Place::new("wide", 8);
    let mut drives = place.drives(DRIVES);
    let daemon = Daemon::start(&place, 2);
    let made = daemon.create("a", "6", &drives, &["--strip", "16K"]);
    assert_eq!(made["slots"].as_array().map(Vec::len), Some(DRIVES), "{made}");
    let served = daemon.volume(&place, "a/v", "24M");
    let mut client = Client::connect(&served.socket, "a/v").expect("connects");
    let mut all = vec![0; BYTES as usize];
    let parts = all.len() / PART;
    write(&mut client, &mut place.rng, &mut all, 0..parts);
    // The first and the last slot.
    for slot in [0, DRIVES - 1] {
        daemon.call(&["array", "fail", "a", "--drive", &format!("slot:{slot}")]);
        write(&mut client, &mut place.rng, &mut all, (slot % 3..parts).step_by(3));
    }
    assert_eq!(daemon.show("a")["state"], "degraded");
    verify(&mut client, &all);
    for slot in [0, DRIVES - 1] {
        let spare = place.drive();
        let number = slot.to_string();
        daemon.call(&["array", "replace", "a", "--slot", &number, "--with", &spare]);
        drives[slot] = spare;
    }
    write(&mut client, &mut place.rng, &mut all, (1..parts).step_by(4));
    assert_eq!(daemon.settle("a")["state"], "optimal");
    daemon.scrub("a");
    verify(&mut client, &all);
    drop(client);
    daemon.stop();
    Place::read_array(&["--check"], &drives);
    let outside = std::fs::read(place.read_volume("v", &drives)).expect("read");
    assert!(outside == all, "read from outside");
    // Of its drives any two may be absent at a start.
    place.keep(&drives[2..]);
    let daemon = Daemon::start(&place, 1);
    assert_eq!(daemon.show("a")["state"], "degraded");
    let mut client = Client::connect(&served.socket, "a/v").expect("connects");
    verify(&mut client, &all);
    daemon.stop();
}
