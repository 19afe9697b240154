//! Files full of random bytes, and the sums of files.
//!
//! The bytes come from a seed, quickly; they only have to look like a used drive: nothing that is
//! right by chance because a drive held zeros.

use super::child::Interrupt;
use super::error::DemoError;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

/// How much is made or read at once, in bytes.
const PIECE: usize = 1 << 20;

/// A SHA-256.
pub type Sum = [u8; 32];

/// Xoshiro256++ (Blackman and Vigna), seeded by SplitMix64.
pub struct Random([u64; 4]);

impl Random {
    /// The one of a seed.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Fills whole groups of eight bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for eight in bytes.as_chunks_mut::<8>().0 {
            *eight = self.next().to_le_bytes();
        }
    }
}

/// Overwrites the first `bytes` of a file with random ones, making it if it is not there. A file
/// that others have open stays the same file.
///
/// # Errors
/// If it can't be written, or `interrupt` came.
pub fn overwrite(
    path: &Path,
    bytes: u64,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<(), DemoError> {
    let open = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let mut file = open.map_err(DemoError::file(path))?;
    let mut random = Random::new(seed);
    let mut piece = vec![0; PIECE];
    let mut left = bytes;
    while left > 0 {
        interrupt.check()?;
        let now = left.min(PIECE as u64) as usize;
        random.fill(&mut piece);
        file.write_all(&piece[..now]).map_err(DemoError::file(path))?;
        left -= now as u64;
    }
    Ok(())
}

/// The sum of a file, and its length.
///
/// # Errors
/// If it can't be read, or `interrupt` came.
pub fn sum_of_file(path: &Path, interrupt: &Interrupt) -> Result<(Sum, u64), DemoError> {
    let mut file = File::open(path).map_err(DemoError::file(path))?;
    sum(&mut file, |_| interrupt.check())?.map_err(DemoError::file(path))
}

/// The sum of what a source gives, and its length; `each` hears how many bytes came so far. The
/// outer error is that of `each`, the inner one the source's.
pub fn sum<E>(
    source: &mut impl Read,
    mut each: impl FnMut(u64) -> Result<(), E>,
) -> Result<std::io::Result<(Sum, u64)>, E> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut length = 0;
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(Ok((hash.finalize().into(), length))),
            Ok(count) => {
                hash.update(&piece[..count]);
                length += count as u64;
                each(length)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_the_file_has_its_length() {
        let dir = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        let interrupt = Interrupt::default();
        let bytes = PIECE as u64 + 4096;
        overwrite(&one, bytes, 1, &interrupt).expect("written");
        overwrite(&other, bytes, 2, &interrupt).expect("written");
        let sums = [&one, &other].map(|path| sum_of_file(path, &interrupt).expect("read"));
        assert_eq!(sums.map(|(_, length)| length), [bytes, bytes]);
        assert_ne!(sums[0].0, sums[1].0);
        overwrite(&one, bytes, 2, &interrupt).expect("overwritten");
        assert_eq!(sum_of_file(&one, &interrupt).expect("read"), sums[1]);
    }

    #[test]
    fn the_sum_is_sha_256() {
        let sum = sum(&mut &b"abc"[..], |_| Ok::<(), ()>(())).expect("each").expect("read");
        // FIPS 180-4, example of one block.
        assert_eq!(sum.0[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert_eq!(sum.1, 3);
    }
}
