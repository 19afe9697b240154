//! The file of a drive is cut off under the daemon: whoever may write to it takes it for another.
//!
//! Writes make it longer again, and what it held then reads as zeros without an error. No host may
//! ever see those.

use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place, Served};
use crate::common::{LIMIT, MIB, Rng, until};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the volume, and of a block.
const VOLUME: usize = 8 << 20;
const BLOCK: usize = 16 << 10;

/// A volume on new drives, full of what is returned.
fn written(
    place: &mut Place,
    daemon: &Daemon,
    level: &str,
    drives: &[String],
) -> (Served, Vec<u8>) {
    daemon.create("a", level, drives, &["--strip", "16K"]);
    let served = daemon.volume(place, "a/v", "8M");
    let mut data = vec![0; VOLUME];
    place.rng.fill(&mut data);
    let mut client = client(&served);
    for (at, part) in (0..).step_by(MIB as usize).zip(data.chunks(MIB as usize)) {
        client.write(at, part).expect("written");
    }
    (served, data)
}

fn client(served: &Served) -> Client {
    Client::connect(&served.socket, &served.name).expect("connects")
}

fn file(drive: &str) -> File {
    File::options().write(true).open(drive).expect("opened")
}

/// Writes here and reads there until it is to end; every byte that is read must be right.
fn load(served: &Served, data: &mut [u8], rng: &mut Rng, is_enough: &AtomicBool) {
    let mut client = client(served);
    let mut back = vec![0; BLOCK];
    while !is_enough.load(Ordering::Relaxed) {
        let [to, from] = [(); 2].map(|()| rng.below((VOLUME / BLOCK) as u64) as usize * BLOCK);
        rng.fill(&mut data[to..to + BLOCK]);
        client.write(to as u64, &data[to..to + BLOCK]).expect("written");
        client.read(from as u64, &mut back).expect("read");
        assert!(back == data[from..from + BLOCK], "other data at {from}");
    }
}

/// All is right, by each level, though a drive is cut to `bytes` under load.
fn cut_under_load(level: &str, count: usize, bytes: u64) {
    let mut place = Place::new(&format!("cut to {bytes}, level {level}"), 24);
    let drives = place.drives(count);
    let daemon = Daemon::start(&place, 2);
    let (served, mut data) = written(&mut place, &daemon, level, &drives);
    let (is_enough, mut rng) = (AtomicBool::new(false), Rng(place.rng.below(u64::MAX)));
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&served, &mut data, &mut rng, &is_enough));
        let before = daemon.written("a");
        until("writes", LIMIT, || (daemon.written("a") > before + 50).then_some(()));
        file(&drives[1]).set_len(bytes).expect("cut off");
        let is_over =
            || (daemon.show("a")["state"] != "optimal" || loading.is_finished()).then_some(());
        until("the drive is out", LIMIT, is_over);
        is_enough.store(true, Ordering::Relaxed);
        loading.join().expect("every byte was right");
    });
    let shown = daemon.show("a");
    let slot = &shown["slots"][1];
    assert_eq!(
        (&shown["state"], &slot["state"]),
        (&"degraded".into(), &"failed".into()),
        "{shown}"
    );
    assert_eq!(slot["reason"], "drive is smaller than it was");
    let mut back = vec![0; VOLUME];
    for (at, part) in (0..).step_by(MIB as usize).zip(back.chunks_mut(MIB as usize)) {
        client(&served).read(at, part).expect("read");
    }
    assert!(back == data, "other data in the end");
    // It is as good as any other file once it is a drive again.
    place.spoil(&drives[1]);
    daemon.call(&["array", "replace", "a", "--slot", "1", "--with", &drives[1]]);
    assert_eq!(daemon.settle("a")["state"], "optimal");
    daemon.scrub("a");
    daemon.stop();
}

#[test]
fn a_drive_that_is_cut_to_nothing_under_load_is_failed() {
    cut_under_load("5", 4, 0);
}

#[test]
fn a_mirrored_drive_that_is_cut_to_half_under_load_is_failed() {
    cut_under_load("1", 2, 12 * MIB);
}

#[test]
fn what_a_drive_lost_that_was_cut_off_is_an_error_where_nothing_else_has_it() {
    let mut place = Place::new("cut, level 0", 24);
    let drives = place.drives(2);
    let daemon = Daemon::start(&place, 2);
    let (served, data) = written(&mut place, &daemon, "0", &drives);
    // As a write makes it longer that came behind the cut.
    let file = file(&drives[1]);
    file.set_len(0).expect("cut off");
    file.set_len(23 * MIB).expect("made longer");
    let (mut client, mut back, mut errors) = (client(&served), vec![0; BLOCK], 0);
    for (at, part) in (0..).step_by(BLOCK).zip(data.chunks(BLOCK)) {
        match client.can_read(at, &mut back).expect("answered") {
            true => assert!(back == part, "other data at {at}"),
            false => errors += 1,
        }
    }
    assert!(errors > 0, "what is gone was read");
    let shown = daemon.show("a");
    assert_eq!(shown["slots"][1]["reason"], "drive is smaller than it was", "{shown}");
}
