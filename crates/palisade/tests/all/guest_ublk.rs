//! Volumes as ublk devices of the machine that has the array: Debian's Linux 6.12 in an emulated
//! machine, in which the daemon and `palisade services` run.
//!
//! The checks are those of `script/guest.d/ublk.sh`, which run in the guest. `script/long-run
//! ublk` kills the daemon more often.
//!
//! As the tests of [`crate::guest`] it has a name that ends with `is_a_host`.

use crate::common::count_of;
use crate::guest::succeed_in;

/// The checks that are run, in order.
const CHECKS: &[&str] = &[
    "made",
    "verified",
    "discarded",
    "swept",
    "files",
    "killed",
    "restarted",
    "both_gone",
    "resized",
    "stopped",
    "released",
    "services_killed",
];

#[test]
fn linux_6_12_with_ublk_is_a_host() {
    // How often the daemon is killed in mid I/O.
    let kills = count_of("PALISADE_UBLK_KILLS", 20);
    succeed_in(&["run", "6.12", "--time-limit", "14400"], "ublk", kills, CHECKS);
}
