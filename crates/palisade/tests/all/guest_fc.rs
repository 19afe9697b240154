//! Volumes at Fibre Channel ports: Debian's Linux 6.12, of the flavour that has FCoE, in an
//! emulated machine, in which the daemon and `palisade services` run, and whose kernel is the
//! target, and by other ports the host.
//!
//! The checks are those of `script/guest.d/fc.sh`, which run in the guest. `script/long-run fc`
//! kills the daemon more often.
//!
//! As the tests of [`crate::guest`] it has a name that ends with `is_a_host`.

use crate::common::count_of;
use crate::guest::succeed_in;

/// The checks that are run, in order, and those that a long run has besides.
const CHECKS: &[&str] = &[
    "made",
    "later",
    "verified",
    "killed",
    "stopped",
    "beside",
    "nvme_made",
    "nvme_verified",
    "nvme_resized",
    "nvme_stopped",
    "services_killed",
];
const MORE: &[&str] = &["resized", "released", "nvme_killed"];

#[test]
fn linux_6_12_with_fibre_channel_is_a_host() {
    // How often the daemon is killed in mid I/O.
    let kills = count_of("PALISADE_FC_KILLS", 1);
    let is_long = std::env::var_os("PALISADE_FC_KILLS").is_some();
    let more = if is_long { MORE } else { &[] };
    let checks = [CHECKS, more].concat();
    succeed_in(&["run", "6.12-generic", "--time-limit", "14400"], "fc", kills, &checks);
}
