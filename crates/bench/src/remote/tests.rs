//! Scales that are found, parts that are named, and the system's counters.

use super::scaling::idle_of;
use super::{Part, SLOWEST, slower};
use crate::scale::Scale;

#[test]
fn drives_are_as_slow_as_leaves_cores_time() {
    let found = |scale, busy: f64| slower(scale, || Ok(busy)).expect("no look fails");
    assert_eq!([0.4, 0.5, 0.6].map(|busy| found(Scale::Auto, busy)), [1, 1, 2]);
    assert_eq!([40.0, 1e9].map(|busy| found(Scale::Auto, busy)), [128, SLOWEST]);
    let said = slower(Scale::Part(3), || panic!("nobody has to look"));
    assert_eq!(said.expect("it is said"), 3);
}

#[test]
fn parts_are_called_by_their_names() {
    for (name, part) in Part::ALL {
        assert_eq!((name.parse(), part.to_string()), (Ok(part), name.to_owned()));
    }
    let told = "disk".parse::<Part>().expect_err("there is none");
    assert!(told.contains("silence-timed"), "{told}");
}

#[test]
fn cores_that_wait_for_drives_are_idle() {
    let text = "cpu  10 0 5 60 20 1 2 2 9 9\ncpu0 1 1 1 1\n";
    assert_eq!(idle_of(text), (80.0, 100.0), "guests are in the times of users");
    assert_eq!(idle_of(""), (0.0, 0.0));
}
