//! The watch: sees to it that no ticket waits for a device, or a driver, that is late.
//!
//! Purpose: a call of a driver can block for as long as the machine runs. This thread makes none.

use super::desk::{Desk, Seen};
use crate::fence::Fence;

/// The thread.
pub(super) fn run(desk: &Desk) {
    while let Seen::Stuck = desk.watch() {
        desk.put_fence(Fence::Hung);
    }
}
