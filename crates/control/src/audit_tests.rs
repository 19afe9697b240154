//! Lines that are durable stay, in order, whatever happens; what was changed is found.

use super::chain::{self, Hash, Line};
use super::files::{Files, Sink, Sizes, verify};
use super::*;
use crate::caller::Role;
use core::future::Future;
use proptest::prelude::*;
use std::path::Path;
use std::sync::mpsc;

/// Small, so that few lines fill files.
const SIZES: Sizes = Sizes { file: 2048, files: 4 };

fn entry(number: u64, what: &str) -> Entry {
    Entry {
        number,
        time: 1_795_511_640 + number,
        who: "root".into(),
        from: "socket".into(),
        request: "POST /redfish/v1/Systems".into(),
        what: what.into(),
        result: Ending::Ok,
        message: None,
        of: None,
    }
}

/// The oracle: all lines that were said to be durable, in order.
#[derive(Default)]
struct Oracle {
    lines: Vec<Arc<Line>>,
    last: (u64, Hash),
}

impl Oracle {
    /// Lines that follow from those that are there.
    fn next(&self, count: u64, what: &str) -> Vec<Arc<Line>> {
        let mut last = self.last;
        let line = |_| {
            let line = chain::line(&entry(last.0 + 1, what), &last.1);
            last = (line.number, line.hash);
            Arc::new(line)
        };
        (0..count).map(line).collect()
    }

    fn take(&mut self, lines: &[Arc<Line>]) {
        self.lines.extend(lines.iter().cloned());
        self.last = self.lines.last().map_or(self.last, |line| (line.number, line.hash));
    }
}

/// The files of the log, the oldest first.
fn paths(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("one").path());
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
    let mut all: Vec<_> = all.filter(is_log).collect();
    all.sort();
    all
}

/// All lines in the files.
fn texts(dir: &Path) -> Vec<String> {
    let texts = paths(dir).into_iter().map(|path| std::fs::read_to_string(path).expect("text"));
    texts
        .flat_map(|text| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// What may happen.
#[derive(Clone, Debug)]
enum Step {
    /// So many lines are written.
    Append(u64, String),
    /// A crash, when so many bytes of so many lines were written.
    Crash(u64, usize),
    /// A crash that left zeros where so many bytes were to come.
    Zeros(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1_u64..6, "[a-z\"\\\\é\u{1b} ]{0,40}").prop_map(|(count, what)| Step::Append(count, what)),
        (1_u64..4, 0_usize..1200).prop_map(|(count, bytes)| Step::Crash(count, bytes)),
        (0_usize..300).prop_map(Step::Zeros),
    ];
    proptest::collection::vec(step, 1..24)
}

/// Writes behind the last file what no one said to be durable.
fn leave(dir: &Path, bytes: &[u8]) {
    use std::io::Write;
    if let Some(last) = paths(dir).last() {
        let mut file = std::fs::OpenOptions::new().append(true).open(last).expect("opened");
        file.write_all(bytes).expect("written");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_line_that_is_durable_is_lost(steps in steps()) {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path();
        let mut oracle = Oracle::default();
        let (mut files, _) = Files::open(dir, SIZES, 8).expect("opened");
        for step in steps {
            match step {
                Step::Append(count, what) => {
                    let lines = oracle.next(count, &what);
                    let (done, outcome) = files.append(&lines);
                    prop_assert!(outcome.is_ok() && done == lines.len());
                    oracle.take(&lines);
                    continue;
                }
                Step::Crash(count, bytes) => {
                    let lines = oracle.next(count, "torn");
                    let text: String = lines.iter().map(|line| line.text.as_str()).collect();
                    let cut = bytes.min(text.len());
                    if !paths(dir).is_empty() {
                        leave(dir, &text.as_bytes()[..cut]);
                        // What was wholly written is as good as durable.
                        let whole = text.as_bytes()[..cut].iter().filter(|b| **b == b'\n').count();
                        oracle.take(&lines[..whole]);
                    }
                }
                Step::Zeros(bytes) => leave(dir, &vec![0; bytes]),
            }
            let (again, found) = Files::open(dir, SIZES, 8).expect("opened again");
            files = again;
            prop_assert_eq!(found.last.unwrap_or_default(), oracle.last);
            let newest = oracle.lines.iter().rev().take(8).rev().map(|line| line.number);
            let told: Vec<u64> = found.entries.iter().map(|entry| entry.number).collect();
            // Of older ones only the last files are there.
            prop_assert!(newest.collect::<Vec<_>>().ends_with(&told), "{:?}", told);
        }
        let kept = texts(dir);
        let all: Vec<&String> = oracle.lines.iter().map(|line| &line.text).collect();
        prop_assert!(all.iter().rev().zip(kept.iter().rev()).all(|(own, kept)| *own == kept));
        prop_assert!(kept.len() == all.len() || paths(dir).len() == SIZES.files);
        let found = verify(dir, Some(oracle.last).filter(|last| last.0 > 0)).expect("read");
        prop_assert!(found.breaks.is_empty(), "{:?}", found);
        prop_assert_eq!(found.lines, kept.len() as u64);
    }

    #[test]
    fn what_was_changed_is_found(at in 0.0..1.0, bit in 0_u32..8, is_cut in any::<bool>()) {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path();
        let mut oracle = Oracle::default();
        let (mut files, _) = Files::open(dir, SIZES, 8).expect("opened");
        for _ in 0..12 {
            let lines = oracle.next(1, "a line");
            prop_assert!(files.append(&lines).1.is_ok());
            oracle.take(&lines);
        }
        prop_assert_eq!(verify(dir, Some(oracle.last)).expect("read").breaks, Vec::<String>::new());
        let paths = paths(dir);
        prop_assert!(paths.len() > 1);
        let sizes = paths.iter().map(|path| std::fs::metadata(path).expect("there").len());
        let total: u64 = sizes.sum();
        let mut at = (at * total as f64) as u64;
        for path in paths {
            let mut bytes = std::fs::read(&path).expect("read");
            if at >= bytes.len() as u64 {
                at -= bytes.len() as u64;
                continue;
            }
            if is_cut {
                bytes.truncate(at as usize);
            } else {
                bytes[at as usize] ^= 1 << bit;
            }
            std::fs::write(&path, bytes).expect("written");
            break;
        }
        let found = verify(dir, Some(oracle.last)).expect("read");
        prop_assert!(!found.breaks.is_empty());
    }
}

#[test]
fn a_line_that_was_taken_away_is_missed() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut files, _) = Files::open(place.path(), Sizes::default(), 8).expect("opened");
    let mut oracle = Oracle::default();
    let lines = oracle.next(5, "a line");
    files.append(&lines).1.expect("written");
    oracle.take(&lines);
    let path = paths(place.path()).remove(0);
    let write = |lines: &[usize]| {
        let text: String = lines.iter().map(|at| oracle.lines[*at].text.as_str()).collect();
        std::fs::write(&path, text).expect("written");
    };
    let breaks = || verify(place.path(), Some(oracle.last)).expect("read").breaks.join("; ");
    write(&[0, 1, 3, 4]);
    assert!(breaks().contains("numbers 3 to 3 are missing"), "{}", breaks());
    write(&[0, 2, 1, 3, 4]);
    assert!(breaks().contains("number 2 comes after number 3"), "{}", breaks());
    write(&[0, 1, 2]);
    assert_eq!(breaks(), "the end is missing: numbers 4 to 5");
    // Only the oldest may be gone, as files are.
    write(&[2, 3, 4]);
    assert_eq!(breaks(), "");
}

#[test]
fn zeros_within_lines_are_found_and_cut_nothing_off() {
    for (at, place_of_zero) in [(1, 20), (4, 0)] {
        let place = tempfile::tempdir().expect("a directory");
        let (mut files, _) = Files::open(place.path(), Sizes::default(), 8).expect("opened");
        let mut oracle = Oracle::default();
        let lines = oracle.next(5, "a line");
        files.append(&lines).1.expect("written");
        oracle.take(&lines);
        let path = paths(place.path()).remove(0);
        let mut bytes = std::fs::read(&path).expect("read");
        let before: usize = lines[..at].iter().map(|line| line.text.len()).sum();
        bytes[before + place_of_zero] = 0;
        std::fs::write(&path, &bytes).expect("written");
        // What is torn is behind all of that, however much it is.
        leave(place.path(), &vec![0; 200 << 10]);
        let (_, found) = Files::open(place.path(), Sizes::default(), 8).expect("opened again");
        assert_eq!((found.torn, found.entries.len()), (200 << 10, 4));
        assert!(std::fs::read(&path).expect("read") == bytes, "nothing else is cut off");
        let breaks = verify(place.path(), Some(oracle.last)).expect("read").breaks.join("; ");
        assert!(breaks.contains(&format!("line {} is no line", at + 1)), "{breaks}");
    }
}

fn run(test: impl Future<Output = ()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime").block_on(test);
}

fn caller() -> Caller {
    Caller {
        name: "root".into(),
        role: Some(Role::Administrator),
        from: "socket".into(),
        ..Caller::default()
    }
}

fn opened(state: &State) -> Result<Audit, Error> {
    Audit::go_on(state, Audit::read(state)?)
}

/// What the log says, in short.
fn said(audit: &Audit) -> Vec<(u64, Ending, Option<u64>)> {
    audit.log().entries.iter().map(|entry| (entry.number, entry.result, entry.of)).collect()
}

#[test]
fn a_change_that_a_crash_met_is_told_as_not_known() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let state = State::open(place.path()).expect("opened");
        let audit = opened(&state).expect("opened");
        let done = audit.begin(&caller(), "POST /a", "create array a").await;
        done.end(Ok(()));
        let failed = audit.begin(&caller(), "POST /b", "create array b").await;
        let why = Error::new(&say::STOPPING, &[]);
        failed.end(Err(&Refusal::from(why)));
        let open = audit.begin(&caller(), "POST /c", "create array c").await;
        // As a crash leaves it: what is durable, and no end.
        let copy = tempfile::tempdir().expect("a directory");
        for path in paths(place.path()) {
            let name = path.file_name().expect("a name");
            std::fs::copy(&path, copy.path().join(name)).expect("copied");
        }
        drop(open);
        audit.close();
        let own = [(2, Ending::Intent, None), (3, Ending::Ok, Some(2))];
        assert_eq!(said(&audit)[1..3], own);
        assert_eq!(
            said(&audit)[4..],
            [
                (5, Ending::Failed, Some(4)),
                (6, Ending::Intent, None),
                (7, Ending::NotKnown, Some(6)),
            ]
        );
        let again = State::open(copy.path()).expect("opened");
        let audit = opened(&again).expect("opened");
        let all = said(&audit);
        let last = all.last().expect("a line");
        assert_eq!((last.1, last.2), (Ending::NotKnown, Some(6)), "{all:?}");
        let text = audit.log().entries.back().map(|entry| entry.what.clone());
        assert_eq!(text.as_deref(), Some("create array c"));
        audit.close();
        assert_eq!(audit.verify().expect("read").breaks, Vec::<String>::new());
    });
}

#[test]
fn a_log_in_memory_has_the_newest_lines_and_their_chain() {
    run(async {
        let audit = Audit::in_memory(None);
        assert_eq!(audit.verify().expect("none"), Verified::default());
        for number in 0..=IN_MEMORY {
            audit.note(&caller(), "POST /s", &format!("log in {number}")).await;
        }
        let log = audit.log();
        assert_eq!((log.entries.len(), log.is_kept), (IN_MEMORY, false));
        assert_eq!(log.entries.front().map(|entry| entry.number), Some(2));
        assert!(log.entry(1).is_none() && log.entry(2).is_some() && log.entry(1002).is_none());
        let found = audit.verify().expect("in memory");
        assert_eq!((found.lines, found.first, found.breaks.len()), (1000, Some(2), 0));
    });
}

/// Files that fail, or hang, while they are told to.
struct Faulty {
    files: Files,
    /// What happens to the next write: nothing, or it fails; it waits for the word.
    next: mpsc::Receiver<bool>,
}

impl Sink for Faulty {
    fn append(&mut self, lines: &[Arc<Line>]) -> (usize, std::io::Result<()>) {
        match self.next.recv() {
            Ok(false) => (0, Err(std::io::ErrorKind::StorageFull.into())),
            _ => self.files.append(lines),
        }
    }
}

#[test]
fn a_full_file_system_keeps_nobody_from_a_change_and_is_told() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (files, _) = Files::open(place.path(), SIZES, 8).expect("opened");
        let log = Log { most: AT_HAND, is_kept: true, ..Log::default() };
        let dir = Some(place.path().to_owned());
        let audit = Audit::of(dir, Default::default(), log, None);
        let (tell, next) = mpsc::channel();
        audit.write_with(Box::new(Faulty { files, next })).expect("a thread");
        tell.send(false).expect("taken");
        let open = audit.begin(&caller(), "POST /a", "create array a").await;
        open.end(Ok(()));
        let problem = audit.problem().expect("told");
        assert!(problem.ends_with("; 2 lines wait in memory"), "{problem}");
        assert_eq!(audit.log().entries.len(), 2);
        // There is room again.
        let mut progress = audit.shared.progress.subscribe();
        drop(tell);
        audit.close();
        progress.wait_for(|own| own.durable == 2 && !own.is_failing).await.expect("written");
        assert_eq!(audit.problem(), None);
        assert_eq!(audit.verify().expect("read").lines, 2);
    });
}

#[test]
fn a_change_waits_until_its_line_is_durable_but_not_for_ever() {
    run(async {
        let place = tempfile::tempdir().expect("a directory");
        let (files, _) = Files::open(place.path(), SIZES, 8).expect("opened");
        let log = Log { most: AT_HAND, is_kept: true, ..Log::default() };
        let mut audit = Audit::of(Some(place.path().into()), Default::default(), log, None);
        let shared = Arc::get_mut(&mut audit.shared).expect("nobody else has it");
        shared.patience = Duration::from_millis(20);
        let (tell, next) = mpsc::channel();
        audit.write_with(Box::new(Faulty { files, next })).expect("a thread");
        // The file system hangs.
        let open = audit.begin(&caller(), "POST /a", "create array a").await;
        assert!(audit.problem().expect("told").starts_with("no answer within 0.02 s"));
        // Nobody waits any more.
        drop(audit.begin(&caller(), "POST /b", "create array b").await);
        open.end(Ok(()));
        let mut progress = audit.shared.progress.subscribe();
        drop(tell);
        progress.wait_for(|own| own.durable == 4 && !own.is_failing).await.expect("written");
        assert_eq!(audit.verify().expect("read").lines, 4);
        assert_eq!(audit.problem(), None);
    });
}

#[test]
fn who_waited_until_just_now_does_not_say_that_the_log_fails() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = Some(place.path().to_owned());
    let audit = Audit::of(dir, Default::default(), Log::default(), None);
    audit.say("a line", Ending::Ok);
    audit.shared.written(Some(1), true);
    audit.shared.late(1);
    assert_eq!(audit.problem(), None);
    assert!(!audit.shared.progress.borrow().is_failing);
    audit.shared.late(2);
    assert!(audit.problem().is_some() && audit.shared.progress.borrow().is_failing);
}

#[test]
fn the_log_is_verified_once_at_a_time_and_not_for_ever() {
    let place = tempfile::tempdir().expect("a directory");
    // A file whose reader waits.
    let file = place.path().join("audit-00000000000000000001.log");
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("runs");
    assert!(made.success());
    let dir = Some(place.path().to_owned());
    let mut audit = Audit::of(dir, Default::default(), Log::default(), None);
    let shared = Arc::get_mut(&mut audit.shared).expect("nobody else has it");
    shared.verified = Duration::from_millis(20);
    let told = audit.verify().expect_err("nothing can be read");
    assert_eq!(told.kind(), ErrorKind::TimedOut);
    assert_eq!(audit.verify().expect_err("busy").kind(), ErrorKind::ResourceBusy);
    // Its end comes.
    drop(std::fs::OpenOptions::new().write(true).open(&file).expect("somebody reads"));
    while audit.shared.verifying.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(audit.verify().expect("read"), Verified::default());
}

#[test]
fn a_log_that_can_not_be_read_is_left_as_it_is() {
    let place = tempfile::tempdir().expect("a directory");
    let state = State::open(place.path()).expect("opened");
    // Files can be opened, directories not read as such.
    std::fs::create_dir(place.path().join("audit-00000000000000000001.log")).expect("made");
    assert!(opened(&state).is_err_and(|error| error.is(&say::AUDIT_NOT_READ)));
}

#[test]
fn texts_are_cut_between_letters() {
    let text = "é".repeat(MOST_BYTES);
    let cut = clipped(&text);
    assert!(cut.ends_with('…') && cut.len() <= MOST_BYTES + 3);
    assert_eq!(clipped("short"), "short");
}
