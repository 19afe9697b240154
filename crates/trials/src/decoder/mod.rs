//! A second reader of arrays, written from docs/format.md alone.
//!
//! Purpose: what the engine says of an array is held against what this module reads from the raw
//! images of its drives. It shares no code with the engine's `format`, `layout` and `parity`:
//! tidy forbids their names here. It is slow and plain, byte by byte, on purpose.
//!
//! Invariant: it changes nothing and guesses nothing: what it can't know it says so.

pub mod array;
pub mod code;
pub mod flight;
pub mod journal;
pub mod map;
pub mod record;

/// Bytes of a page of an image.
pub const PAGE: usize = 4096;

/// A page of zeros.
pub const ZERO: [u8; PAGE] = [0; PAGE];

/// The raw content of a drive.
pub trait Raw {
    /// How many bytes it has.
    fn bytes(&self) -> u64;
    /// The page that begins at `number` times [`PAGE`].
    fn page(&self, number: u64) -> &[u8; PAGE];
    /// Whether any of these bytes can't be read.
    fn unreadable(&self, at: u64, bytes: u64) -> bool;

    /// Some bytes.
    fn copy(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(bytes + 2 * PAGE);
        let first = at / PAGE as u64;
        let last = (at + bytes as u64).div_ceil(PAGE as u64);
        for number in first..last {
            all.extend_from_slice(self.page(number));
        }
        let from = (at % PAGE as u64) as usize;
        all.drain(..from);
        all.truncate(bytes);
        all
    }
}

impl<R: Raw> Raw for &R {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn page(&self, number: u64) -> &[u8; PAGE] {
        (**self).page(number)
    }

    fn unreadable(&self, at: u64, bytes: u64) -> bool {
        (**self).unreadable(at, bytes)
    }
}
