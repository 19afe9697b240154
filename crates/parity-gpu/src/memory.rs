//! Memory aligned for vectors.
//!
//! Purpose: host memory of the fake device and of tests, zeroed and aligned to 64 bytes.

/// Alignment, in bytes.
const LINE: usize = 64;

/// Bytes that begin at a multiple of [`LINE`].
pub(crate) struct Aligned {
    /// A line more than is needed, never resized, so that it stays where it is.
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Aligned {
        let bytes = vec![0; len + LINE];
        let start = bytes.as_ptr().align_offset(LINE);
        assert!(start < LINE, "every allocation has a multiple of a line");
        Aligned { bytes, start, len }
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Aligned {
        let mut copy = Aligned::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl std::ops::Deref for Aligned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}
