//! CRC-32C (Castagnoli): NVMe/TCP's digests and the checksums on drives.
//!
//! The work is the `crc-fast` crate's, which folds with the widest carry-less multiplication of
//! the processor. Measured by `palisade bench parity` against ISA-L's `crc32_iscsi`: as fast on a
//! Zen 5 core, hot and from memory; the `crc32c` crate reaches half of it (docs/parity-notes.md).
//!
//! Reference: RFC 3720 (iSCSI), sections 12.1 and B.4: polynomial 0x11edc6f41, reflected, all
//! ones before the first and inverted after the last byte.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes that are copied before their checksum is carried on: they are still in the first-level
/// cache then.
const BLOCK: usize = 16 << 10;

/// CRC-32C of `bytes`, after bytes whose CRC-32C is `seed`; 0 if there are none before.
///
/// So `crc32c(crc32c(0, a), b)` is the CRC-32C of `a` followed by `b`.
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!seed));
    digest.update(bytes);
    digest.finalize() as u32
}

/// Copies `from` to `to` and answers `crc32c(seed, from)`, in one pass over memory.
///
/// # Panics
///
/// If the lengths differ.
pub fn copy_crc32c(seed: u32, from: &[u8], to: &mut [u8]) -> u32 {
    assert_eq!(from.len(), to.len(), "a copy of the same length");
    let mut crc = seed;
    for (from, to) in from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
        to.copy_from_slice(from);
        // Of what was copied, not of what may be in `from` by now.
        crc = crc32c(crc, to);
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, by the definition: the reflected polynomial without its top bit.
    fn naive(seed: u32, bytes: &[u8]) -> u32 {
        let mut crc = !seed;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            }
        }
        !crc
    }

    #[test]
    fn vectors_of_rfc_3720() {
        let up: [u8; 32] = core::array::from_fn(|i| i as u8);
        let down: [u8; 32] = core::array::from_fn(|i| 31 - i as u8);
        let mut read = [0u8; 48];
        for (at, byte) in [(0, 0x01), (1, 0xc0), (16, 0x14), (22, 0x04), (27, 0x14), (31, 0x18)] {
            read[at] = byte;
        }
        (read[32], read[40]) = (0x28, 0x02);
        // The RFC shows the checksums' bytes as they are sent, the least first.
        assert_eq!(crc32c(0, &[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc32c(0, &[0xff; 32]).to_le_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        assert_eq!(crc32c(0, &up).to_le_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(crc32c(0, &down).to_le_bytes(), [0x5c, 0xdb, 0x3f, 0x11]);
        assert_eq!(crc32c(0, &read).to_le_bytes(), [0x56, 0x3a, 0x96, 0xd9]);
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(0, b""), 0);
    }

    #[test]
    fn every_length_start_and_seed_is_the_definition() {
        let bytes: Vec<u8> = (0..40_000u32).map(|i| ((i * i) >> 7) as u8).collect();
        let mut to = vec![0; bytes.len()];
        let lengths = (0..300).chain([1023, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77]);
        for (i, len) in lengths.enumerate() {
            let from = &bytes[i % 67..i % 67 + len];
            let seed = if i % 3 == 0 { 0 } else { 0x9e37_79b9u32.wrapping_mul(i as u32) };
            let expected = naive(seed, from);
            assert_eq!(crc32c(seed, from), expected, "length {len}");
            let copied = &mut to[..len];
            copied.fill(0xee);
            assert_eq!(copy_crc32c(seed, from, copied), expected, "copy of length {len}");
            assert_eq!(copied, from);
        }
    }

    #[test]
    fn parts_are_carried_on() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        let whole = crc32c(0, &bytes);
        for at in [0, 1, 63, 64, 65, 4096, 4999, 5000] {
            assert_eq!(crc32c(crc32c(0, &bytes[..at]), &bytes[at..]), whole, "cut at {at}");
        }
    }
}
