//! What the daemon has to say, on its standard error.

use core::fmt::Display;
use std::io::Write;

/// Says `what`, and ends the line. That nobody takes it (a closed pipe, a full disk) is not worth
/// a panic, as `eprintln!` has it: it would end the daemon and leave all arrays unclean.
pub fn say(what: impl Display) {
    // One write: lines of several threads or programs don't mix.
    let _ = std::io::stderr().write_all(format!("{what}\n").as_bytes());
}
