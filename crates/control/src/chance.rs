//! Random bytes of the kernel: for secrets and identities.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// So many.
///
/// # Errors
/// The kernel's, which gives some as soon as the machine has started.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let (mut bytes, mut filled) = ([0; N], 0);
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match getrandom(rest, GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
