//! Digests (SHA-256).

use sha2::{Digest, Sha256};

/// A digest of something.
pub type Sum = [u8; 32];

/// The digest of parts; where one ends is part of it.
pub fn sum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Sum {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
