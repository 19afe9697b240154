//! Where a thread panics, what it ran is found, what others came to meanwhile counts, and the
//! process ends.

use std::process::Command;
use std::sync::Barrier;
use trials::course::{self, take_panics};
use trials::tally::Tally;

/// Says to this program that it is the process that is to end.
const CHILD: &str = "PALISADE_TEST_PANICS";

#[test]
fn a_panic_ends_the_process_once_no_thread_runs_a_seed() {
    if std::env::var_os(CHILD).is_some() {
        return end();
    }
    let program = std::env::current_exe().expect("this program has a path");
    let child = Command::new(program).arg("--nocapture").env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert_eq!(child.status.code(), Some(1), "{said}");
    let wanted = "found 7 --one-core: [assertion] on purpose";
    assert!(said.contains(wanted) && said.contains("; 3 points"), "{said}");
}

/// A thread panics while another runs a seed, which is over only after that.
fn end() {
    take_panics(|sum| {
        let found = sum.found.as_ref().expect("a panic is something found");
        println!("found {}: {}; {} points", found.called, found.failure, sum.tally.points);
    });
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            course::begins("8".into());
            both.wait();
            while !course::over() {
                std::thread::yield_now();
            }
            course::add(&Tally { points: 3, ..Tally::default() }, None);
            course::ends();
        });
        course::begins("7 --one-core".into());
        both.wait();
        panic!("on purpose");
    });
}
