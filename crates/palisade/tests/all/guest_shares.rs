//! Shares of a volume's file system: Debian's Linux 6.12 in an emulated machine, in which the
//! daemon, `palisade services`, Samba and NFS-Ganesha run, and whose kernel is the client, by SMB
//! 3.1.1 that is sealed, and by NFS 4.0 and 4.1.
//!
//! The checks are those of `script/guest.d/shares.sh`, which run in the guest. `script/long-run
//! shares` kills daemon, services and servers more often.
//!
//! As the tests of [`crate::guest`] it has a name that ends with `is_a_host`.

use crate::common::count_of;
use crate::guest::succeed_in;

/// The checks that are run, in order, and those that a long run has besides.
const CHECKS: &[&str] = &["smb", "nfs40", "nfs41", "full", "server_killed", "drive_lost", "moved"];
const MORE: &[&str] = &["read_only", "daemon_killed", "services_killed", "interrupted", "left"];
/// Those of them all that kill something.
const KILLERS: usize = 4;

#[test]
fn linux_6_12_with_shares_is_a_host() {
    // How often something is killed.
    let kills = count_of("PALISADE_SHARES_KILLS", 1);
    let is_long = std::env::var_os("PALISADE_SHARES_KILLS").is_some();
    let rounds = if is_long { kills.div_ceil(KILLERS) } else { kills };
    let more = if is_long { MORE } else { &[] };
    let checks = [CHECKS, more].concat();
    succeed_in(&["run", "6.12", "--time-limit", "43200"], "shares", rounds, &checks);
}
