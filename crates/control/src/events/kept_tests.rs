//! Events over restarts, crashes and file systems that are full.

use super::*;
use redfish::messages as say;
use std::path::Path;

fn event(number: u64) -> Event {
    Event::new(&say::ARRAY_STOPPED, &[&number], "")
}

/// A daemon's ring, and its file.
fn start(dir: &Path) -> Arc<Ring> {
    let state = Arc::new(State::open(dir).expect("opened"));
    let (begin, writer) = read(&state).expect("read").split();
    let ring = Arc::new(Ring::new(begin));
    go_on(&ring, writer).expect("a thread");
    ring
}

fn ids(ring: &Ring) -> Vec<u64> {
    ring.entries().iter().map(|event| event.id).collect()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn events_and_their_identifiers_go_on_after_a_stop() {
    let place = tempfile::tempdir().expect("a directory");
    let ring = start(place.path());
    ring.put((0..3).map(event).collect(), 1);
    ring.close(LONG);
    drop(ring);
    let ring = start(place.path());
    ring.put((0..2).map(event).collect(), 2);
    let ids = ids(&ring);
    assert!(ids.len() == 5 && ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    ring.close(LONG);
}

#[test]
fn a_file_that_is_lost_takes_no_identifier_with_it() {
    let place = tempfile::tempdir().expect("a directory");
    let ring = start(place.path());
    ring.put((0..3).map(event).collect(), 1);
    let told = ids(&ring);
    ring.close(LONG);
    drop(ring);
    // As a loss of power leaves it.
    std::fs::write(place.path().join(FILE), [0; 300]).expect("written");
    let ring = start(place.path());
    assert_eq!(ring.place_after(told[1]), (0, true), "who had one is told that more are missing");
    ring.put(vec![event(1)], 2);
    assert!(ids(&ring)[0] > told[2], "{:?} after {told:?}", ids(&ring));
    ring.close(LONG);
}

#[test]
fn a_file_does_not_grow_beyond_what_is_read() {
    let place = tempfile::tempdir().expect("a directory");
    let state = Arc::new(State::open(place.path()).expect("opened"));
    let (begin, mut writer) = read(&state).expect("read").split();
    let ring = Ring::new(begin);
    let text = "\u{1}".repeat(1024);
    for _ in 0..5 {
        let large = |_| Event::new(&say::TEST_EVENT, &[&text, &text], "/redfish/v1/EventService");
        ring.put((0..MOST).map(large).collect(), 1);
        let work = ring.work(writer.kept);
        writer.keep(&ring, &work, true).expect("kept");
        let bytes = state.read(FILE).expect("it is not too large").expect("there");
        assert!(bytes.len() <= BYTES, "{}", bytes.len());
        assert_eq!(parse(&bytes).0.len(), MOST);
    }
}

#[test]
fn an_identifier_is_told_once_whatever_a_crash_takes() {
    let place = tempfile::tempdir().expect("a directory");
    let mut last = 0;
    for torn in [0, 1, 7, 40, 100_000] {
        let state = Arc::new(State::open(place.path()).expect("opened"));
        let (begin, mut writer) = read(&state).expect("read").split();
        let ring = Ring::new(begin);
        ring.put((0..5).map(event).collect(), 1);
        let told = ids(&ring);
        let new: Vec<u64> = told.into_iter().filter(|id| *id > last).collect();
        assert_eq!(new.len(), 5, "after {last}");
        last = *new.last().expect("some");
        // Some of it comes to the file, and the daemon is killed.
        let work = ring.work(writer.kept);
        writer.keep(&ring, &work, true).expect("kept");
        let path = place.path().join(FILE);
        let length = std::fs::metadata(&path).expect("there").len();
        // What was replaced at one stroke is whole: only what was appended can be torn.
        let appended = 5 * line(&*ring.entries()[0]).expect("a line").len() as u64;
        let file = OpenOptions::new().write(true).open(&path).expect("opened");
        file.set_len(length - appended.min(torn)).expect("cut");
    }
}

#[test]
fn a_torn_line_costs_nothing_but_itself() {
    let event = |id: u64, name: &str| {
        let rest = r#""at":1,"args":[],"origin":"","kind":"Alert""#;
        format!("{{\"id\":{id},\"name\":\"{name}\",{rest}}}")
    };
    let (three, again, five) = (event(3, "x"), event(3, "Twice"), event(5, "x"));
    let head = r#"{"reserved":9,"gone":2}"#;
    let text = format!("{head}\n{three}\n\0\0\0\n{{\"id\":4,\"at\"\n{again}\n{five}");
    let (events, head) = parse(text.as_bytes());
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(head, Head { reserved: 9, gone: 2 });
}

#[test]
fn a_file_that_grew_long_is_written_anew() {
    let place = tempfile::tempdir().expect("a directory");
    let state = Arc::new(State::open(place.path()).expect("opened"));
    let (begin, mut writer) = read(&state).expect("read").split();
    let ring = Ring::new(begin);
    for round in 0..30 {
        ring.put((0..1000).map(event).collect(), round);
        let work = ring.work(writer.kept);
        writer.keep(&ring, &work, true).expect("kept");
        let bytes = state.read(FILE).expect("read").expect("there");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        assert!(lines <= LINES + 2, "{lines} lines");
        let (events, head) = parse(&bytes);
        let last = events.last().map_or(0, |event| event.id);
        assert_eq!(Some(last), ids(&ring).last().copied());
        assert_eq!(events.len() as u64, ((round + 1) * 1000).min(MOST as u64));
        assert!(head.reserved >= last);
    }
}

#[test]
fn a_file_system_that_can_not_be_written_costs_nothing_but_keeping() {
    let place = tempfile::tempdir().expect("a directory");
    let state = Arc::new(State::open(place.path()).expect("opened"));
    let (begin, mut writer) = read(&state).expect("read").split();
    let ring = Ring::new(begin);
    std::fs::remove_file(place.path().join(FILE)).expect("removed");
    ring.put(vec![event(1)], 1);
    let work = ring.work(writer.kept);
    writer.keep(&ring, &work, true).expect_err("there is no file");
    assert_eq!(ids(&ring).len(), 1);
    // A thread that keeps them says so.
    assert_eq!(ring.problem(), None);
    // Later all of it is kept.
    ring.put(vec![event(2)], 1);
    let work = ring.pause(Duration::ZERO, writer.kept);
    writer.keep(&ring, &work, false).expect("kept");
    let (events, _) = parse(&state.read(FILE).expect("read").expect("there"));
    assert_eq!(events.len(), 2);
}
