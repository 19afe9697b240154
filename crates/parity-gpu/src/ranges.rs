//! Memory of others that a device reaches by itself.
//!
//! Purpose: find out, for each strip of each job, whether it must be copied.
//! Invariant: ranges are in order of their addresses and don't overlap.

use crate::pack::ALIGN;

/// See the module.
#[derive(Default)]
pub(crate) struct Ranges {
    /// Address, bytes, and the device's address.
    ranges: Vec<(usize, usize, u64)>,
}

impl Ranges {
    /// The device's address of these bytes, if it reaches all of them and can read them by 16.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<u64> {
        let start = bytes.as_ptr().addr();
        let behind = self.ranges.partition_point(|range| range.0 <= start);
        let (address, len, device) = *self.ranges.get(behind.checked_sub(1)?)?;
        let reached = (device + (start - address) as u64, start - address + bytes.len());
        let whole = reached.1 <= len && reached.0.is_multiple_of(ALIGN as u64);
        whole.then_some(reached.0)
    }

    /// Whether no range overlaps these bytes.
    pub(crate) fn is_free(&self, address: usize, bytes: usize) -> bool {
        let apart = |range: &(usize, usize, u64)| {
            range.0 + range.1 <= address || address + bytes <= range.0
        };
        self.ranges.iter().all(apart)
    }

    /// Adds a range, which is free.
    pub(crate) fn add(&mut self, address: usize, bytes: usize, device: u64) {
        assert!(self.is_free(address, bytes), "memory is shared once");
        let at = self.ranges.partition_point(|range| range.0 < address);
        self.ranges.insert(at, (address, bytes, device));
    }

    /// Takes out the range that begins at `address`.
    pub(crate) fn remove(&mut self, address: usize) -> bool {
        let at = self.ranges.iter().position(|range| range.0 == address);
        at.map(|at| self.ranges.remove(at)).is_some()
    }

    /// Any range's address.
    pub(crate) fn first(&self) -> Option<usize> {
        self.ranges.first().map(|range| range.0)
    }

    /// Bytes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.iter().map(|range| range.1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Aligned;

    #[test]
    fn only_what_lies_whole_in_a_range_is_found() {
        let memory = Aligned::zeros(1024);
        let base = memory.as_ptr().addr();
        let mut ranges = Ranges::default();
        ranges.add(base + 512, 256, 0x9000);
        ranges.add(base, 256, 0x1000);
        assert!(!ranges.is_free(base + 240, 32) && !ranges.is_free(base + 500, 32));
        assert!(ranges.is_free(base + 256, 256));
        assert_eq!(ranges.find(&memory[..256]), Some(0x1000));
        assert_eq!(ranges.find(&memory[528..768]), Some(0x9010));
        assert_eq!(ranges.find(&memory[248..264]), None);
        assert_eq!(ranges.find(&memory[256..272]), None);
        assert_eq!(ranges.find(&memory[512..784]), None);
        assert_eq!(ranges.find(&memory[8..24]), None, "not aligned");
        assert!(ranges.remove(base) && !ranges.remove(base));
        assert_eq!((ranges.find(&memory[..16]), ranges.bytes()), (None, 256));
    }
}
