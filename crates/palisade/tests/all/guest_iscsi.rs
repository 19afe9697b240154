//! Volumes as iSCSI targets: Debian's Linux 6.12 in an emulated machine, in which the daemon and
//! `palisade services` run, and whose kernel is the initiator, and by LIO the target.
//!
//! The checks are those of `script/guest.d/iscsi.sh`, which run in the guest. `script/long-run
//! iscsi` kills the daemon more often.
//!
//! As the tests of [`crate::guest`] it has a name that ends with `is_a_host`.

use crate::common::count_of;
use crate::guest::succeed_in;
use crate::iscsi::listed;
use std::collections::BTreeSet;

/// What LIO does not do as the tests of libiscsi want it, as the list of tgt.
const LIO: &str = include_str!("iscsi/lio.txt");

/// The checks that are run, in order, and those that a long run has besides.
const CHECKS: &[&str] = &["made", "verified", "let_in", "killed", "server_killed", "stopped"];
const MORE: &[&str] =
    &["verified_by_tgt", "resized", "stopped_with_tgt", "services_killed", "tested"];

#[test]
fn linux_6_12_with_iscsi_is_a_host() {
    // How often the daemon is killed in mid I/O.
    let kills = count_of("PALISADE_ISCSI_KILLS", 1);
    let is_long = std::env::var_os("PALISADE_ISCSI_KILLS").is_some();
    let more = if is_long { MORE } else { &[] };
    let (machine, checks) = (["run", "6.12", "--time-limit", "14400"], [CHECKS, more].concat());
    let Some(said) = succeed_in(&machine, "iscsi", kills, &checks) else { return };
    let failed = said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" fails"));
    let failed: BTreeSet<String> = failed.map(str::to_owned).collect();
    // Of some it depends on the moment.
    let sometimes = listed(LIO, "sometimes");
    let always: BTreeSet<String> = failed.difference(&sometimes).cloned().collect();
    assert!(!is_long || always == listed(LIO, "fails"), "the list of LIO is another: {failed:?}");
}
