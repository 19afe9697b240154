//! The file of the past: over restarts, where it is damaged, and where the directory is.

use super::*;
use redfish::history::rows::Key;
use redfish::history::{Points, Step};
use redfish::view::Counters;
use std::path::Path;

/// A view of which the counters were read so many seconds after the start.
fn view(seconds: u64) -> Arc<View> {
    let (nanos, at) = (seconds * 1_000_000_000, (1_800_000_000 + seconds) * 1000);
    let counters = Arc::new(Counters { is_on: true, nanos, at, ..Counters::default() });
    Arc::new(View { counters, ..View::default() })
}

/// A second each is seen.
fn live(history: &History, seconds: std::ops::Range<u64>) {
    let mut before = View::default();
    for second in seconds {
        let view = view(second);
        history.see(&before, &view);
        // One that shows the same again changes nothing.
        history.see(&view, &view);
        history.tick();
        before = View::clone(&view);
    }
}

fn points(history: &History) -> Option<Points> {
    history.past().lock().points(&Key::Machine, Step::Seconds)
}

fn known(history: &History) -> usize {
    let points = points(history);
    points.map_or(0, |points| points.columns[0].iter().filter(|value| value.is_some()).count())
}

fn start(place: &Path) -> (History, Option<Error>) {
    let state = Arc::new(State::open(place).expect("opened"));
    let mut found = History::read(&state).expect("read");
    let problem = found.problem.take();
    (History::go_on(&state, found), problem)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(test);
    runtime.shutdown_background();
}

/// Waits until nobody writes.
async fn written(history: &History) {
    let keeper = history.keeper.clone().expect("a keeper");
    while keeper.is_writing.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn the_past_outlives_the_daemon_and_a_kill_in_the_middle_of_a_write() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (history, _) = start(place.path());
        live(&history, 1..5);
        history.write();
        written(&history).await;
        live(&history, 5..9);
        assert_eq!(known(&history), 7);
        // It is killed while it writes: what it has written so far is no file yet.
        drop(history);
        let file = place.path().join(state::HISTORY);
        let whole = std::fs::read(&file).expect("there");
        let half = &whole[..whole.len() / 2];
        std::fs::write(place.path().join("history.bin.new"), half).expect("written");
        let (history, problem) = start(place.path());
        assert_eq!((known(&history), problem), (3, None));
        // What comes later goes on behind a gap.
        live(&history, 20..23);
        assert_eq!(known(&history), 5);
        assert_eq!(points(&history).expect("points").columns[0].len(), 21);
        history.close().await;
        drop(history);
        let (history, problem) = start(place.path());
        assert_eq!((known(&history), problem), (5, None));
        assert!(!place.path().join("history.bin.new").exists());
    });
}

#[test]
fn what_is_not_the_past_is_set_aside_and_said_once() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (history, _) = start(place.path());
        live(&history, 1..5);
        history.close().await;
        drop(history);
        let file = place.path().join(state::HISTORY);
        let aside = place.path().join(state::HISTORY_ASIDE);
        let whole = std::fs::read(&file).expect("there");
        let mut damaged = whole.clone();
        *damaged.last_mut().expect("a byte") ^= 1;
        let mut later = whole.clone();
        later[16] = 9;
        let large = vec![0; (16 << 20) + 1];
        for (bytes, why) in [
            (damaged, "it is damaged"),
            (later, "it has version 9, not 1"),
            (b"{}".to_vec(), "it is not what the daemon writes"),
            (large, "it is not what the daemon writes"),
        ] {
            std::fs::write(&file, &bytes).expect("written");
            let (history, problem) = start(place.path());
            let problem = problem.expect("a problem");
            assert!(problem.is(&say::HISTORY_SET_ASIDE), "{problem:?}");
            assert_eq!(problem.args[1], why);
            assert_eq!(known(&history), 0);
            assert!(std::fs::read(&aside).expect("there") == bytes && !file.exists());
            live(&history, 1..4);
            history.close().await;
            drop(history);
            assert_eq!(start(place.path()).1, None, "said once");
        }
        std::fs::remove_file(&file).expect("removed");
        std::fs::create_dir(&file).expect("made");
        let state = State::open(place.path()).expect("opened");
        let problem = History::read(&state).err().expect("it is a directory");
        assert!(problem.is(&say::HISTORY_NOT_READ), "{problem:?}");
    });
}

#[test]
fn a_directory_that_takes_nothing_is_told_until_it_does() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (history, _) = start(place.path());
        live(&history, 1..4);
        // A directory in its place keeps the file from being replaced.
        let new = place.path().join("history.bin.new");
        std::fs::create_dir(&new).expect("made");
        history.write();
        written(&history).await;
        let problem = history.problem().expect("a problem");
        assert!(problem.starts_with("the past can't be written: history.bin: "), "{problem}");
        live(&history, 4..6);
        assert_eq!(known(&history), 4);
        std::fs::remove_dir(&new).expect("removed");
        history.write();
        written(&history).await;
        assert_eq!(history.problem(), None);
    });
}

#[test]
fn a_directory_that_hangs_keeps_nobody_waiting() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (history, _) = start(place.path());
        live(&history, 1..4);
        // To open it waits for its other end.
        let new = place.path().join("history.bin.new");
        let made = std::process::Command::new("mkfifo").arg(&new).status().expect("runs");
        assert!(made.success());
        for _ in 0..3 {
            history.write();
        }
        let keeper = history.keeper.clone().expect("a keeper");
        assert!(keeper.is_writing.load(Ordering::Acquire));
        live(&history, 4..6);
        assert_eq!(known(&history), 4, "samples go on, and can be read");
        // The end of the daemon does not wait for it for ever.
        history.close().await;
        assert!(keeper.is_writing.load(Ordering::Acquire), "it hangs still");
        // Let go, so that the thread ends.
        let mut end = std::fs::File::open(&new).expect("opened");
        let _ = io::copy(&mut end, &mut io::sink());
        drop(end);
        written(&history).await;
    });
}

#[test]
fn it_is_written_when_it_is_time() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (history, _) = start(place.path());
        live(&history, 1..4);
        assert!(!place.path().join(state::HISTORY).exists());
        let before = Instant::now().checked_sub(EACH).expect("a moment");
        *lock(&history.written) = Some(before);
        history.tick();
        written(&history).await;
        assert!(place.path().join(state::HISTORY).exists());
    });
}
