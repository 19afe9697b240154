//! The daemon on NVMe drives that can be unplugged: it runs in an emulated machine with them.
//!
//! The checks are those of `script/guest.d/drives.sh`, which run in the guest, beside the daemon.
//! What has to happen to the drives they ask `script/guest` for. All of them have one boot, which
//! takes long.
//!
//! As the tests of [`crate::guest`] it has a name that ends with `is_a_host`.

use crate::guest::guest;

/// The checks that are run, in order.
const CHECKS: &[&str] = &[
    "inventory",
    "smart",
    "smart_warning",
    "power",
    "write_read",
    "unplug_under_load",
    "unplug_idle",
    "cable",
];

#[test]
fn linux_6_12_with_nvme_drives_is_a_host() {
    let machine = ["run", "6.12", "--nvme", "4", "--nvme-size", "128", "--time-limit", "900"];
    let program = ["--palisade", env!("CARGO_BIN_EXE_palisade"), "--", "drives"];
    let words = [&machine[..], &program, CHECKS].concat();
    let Some(said) = guest(&words, |_, _| ()) else { return };
    for check in CHECKS {
        assert!(said.contains(&format!("ok {check} ")), "{check}: {said}");
    }
}
