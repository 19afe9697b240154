//! NVMe and NVMe over TCP as bytes: what hosts and controllers send each other.
//!
//! Both sides use it: a target reads commands and writes completions, an initiator the other way
//! round. Comments cite documents by these names:
//! - *Base*: NVM Express Base Specification, revision 2.0;
//! - *NVM*: NVM Express NVM Command Set Specification, revision 1.0;
//! - *TCP*: NVM Express TCP Transport Specification, revision 1.0.
//!
//! - [`pdu`]: what lies on a connection: headers, lengths, digests, padding.
//! - [`command`]: submission queue entries and completions; [`status`]: how a command ended.
//! - [`sgl`]: where the data of a command is.
//! - [`identify`]: what controllers and namespaces say of themselves. [`log`]: log pages.
//! - [`request`]: what is asked of a drive. [`drive`], [`smart`], [`power`]: what it answers.
//! - [`fabrics`]: connect, properties, disconnect. [`reset`]: a controller ended by another.
//!   [`nqn`]: names of hosts and subsystems.
//!
//! Invariants
//! - Nothing here has state, does I/O or allocates by a number that it read.
//! - Whatever the bytes are, reading them ends with a value or an error, never in a panic.
//! - A value that was read and is written again gives the same bytes, reserved ones as zeros.

#![no_std]

extern crate alloc;

pub mod command;
pub mod drive;
pub mod fabrics;
pub mod identify;
pub mod log;
pub mod nqn;
pub mod pdu;
pub mod power;
pub mod request;
pub mod reset;
pub mod sgl;
pub mod smart;
pub mod status;

/// Fields at fixed places of a structure; numbers are little-endian.
mod bytes {
    pub fn array_at<const N: usize, const M: usize>(from: &[u8; N], at: usize) -> [u8; M] {
        *from[at..].first_chunk().expect("a field lies within its structure")
    }

    pub fn u16_at<const N: usize>(from: &[u8; N], at: usize) -> u16 {
        u16::from_le_bytes(array_at(from, at))
    }

    pub fn u32_at<const N: usize>(from: &[u8; N], at: usize) -> u32 {
        u32::from_le_bytes(array_at(from, at))
    }

    pub fn u64_at<const N: usize>(from: &[u8; N], at: usize) -> u64 {
        u64::from_le_bytes(array_at(from, at))
    }

    pub fn u128_at<const N: usize>(from: &[u8; N], at: usize) -> u128 {
        u128::from_le_bytes(array_at(from, at))
    }

    pub fn put<const N: usize>(into: &mut [u8; N], at: usize, value: &[u8]) {
        into[at..at + value.len()].copy_from_slice(value);
    }
}
