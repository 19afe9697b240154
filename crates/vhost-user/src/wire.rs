//! Bytes of a virtio block device (Virtual I/O Device version 1.2, section 5.2), little-endian.

use crate::limits::{PARTS_MAX, ZEROED_BYTES_MAX};

/// Bytes of a sector, in which the device counts (5.2.4).
pub const SECTOR: u64 = 512;

/// Bytes of a request's header (5.2.6).
pub const HEADER: usize = 16;
/// Bytes of a segment that is discarded or made zero (5.2.6).
pub const SEGMENT: usize = 16;
/// Bytes of what the device is known by (5.2.6.1).
pub const NAME: usize = 20;
/// Bytes of what the device tells of itself (5.2.4).
pub const CONFIG: usize = 60;

/// What device and driver agree on (5.2.3, 6).
pub mod feature {
    /// `VIRTIO_BLK_F_SEG_MAX`: parts of a request are bounded.
    pub const PARTS: u64 = 1 << 2;
    /// `VIRTIO_BLK_F_BLK_SIZE`: the smallest unit is told.
    pub const BLOCK: u64 = 1 << 6;
    /// `VIRTIO_BLK_F_FLUSH`.
    pub const FLUSH: u64 = 1 << 9;
    /// `VIRTIO_BLK_F_TOPOLOGY`: what requests are best aligned to is told.
    pub const TOPOLOGY: u64 = 1 << 10;
    /// `VIRTIO_BLK_F_MQ`: several rings.
    pub const RINGS: u64 = 1 << 12;
    /// `VIRTIO_BLK_F_DISCARD`.
    pub const DISCARD: u64 = 1 << 13;
    /// `VIRTIO_BLK_F_WRITE_ZEROES`.
    pub const ZEROES: u64 = 1 << 14;
    /// `VIRTIO_F_INDIRECT_DESC`: a request's parts may stand in a table of their own.
    pub const INDIRECT: u64 = 1 << 28;
    /// `VIRTIO_F_EVENT_IDX`: bells are rung only when somebody waits.
    pub const EVENT_INDEX: u64 = 1 << 29;
    /// `VIRTIO_F_VERSION_1`.
    pub const VERSION_1: u64 = 1 << 32;
    /// All that is offered.
    pub const OFFERED: u64 = PARTS
        | BLOCK
        | FLUSH
        | TOPOLOGY
        | RINGS
        | DISCARD
        | ZEROES
        | INDIRECT
        | EVENT_INDEX
        | VERSION_1;
}

/// What the device tells of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Its bytes.
    pub bytes: u64,
    /// Its smallest unit, a power of two.
    pub block_bytes: u32,
    /// What requests are best aligned to.
    pub best_bytes: u32,
    /// What is given up as a whole.
    pub discard_bytes: u32,
    /// Its rings.
    pub rings: u16,
}

impl Config {
    /// Its bytes (5.2.4, `struct virtio_blk_config`).
    pub fn encode(&self) -> [u8; CONFIG] {
        let sectors = |bytes: u64| u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX);
        let mut all = [0; CONFIG];
        let mut put = |at: usize, bytes: &[u8]| all[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(self.bytes / SECTOR).to_le_bytes());
        put(12, &(PARTS_MAX as u32).to_le_bytes());
        put(20, &self.block_bytes.to_le_bytes());
        let best = self.best_bytes / self.block_bytes.max(1);
        put(28, &best.to_le_bytes());
        put(34, &self.rings.to_le_bytes());
        put(36, &sectors(ZEROED_BYTES_MAX).to_le_bytes());
        put(40, &1u32.to_le_bytes());
        put(44, &sectors(self.discard_bytes.into()).max(1).to_le_bytes());
        put(48, &sectors(ZEROED_BYTES_MAX).to_le_bytes());
        put(52, &1u32.to_le_bytes());
        // What is made zero may be given up as far as it reads so.
        put(56, &[1]);
        all
    }
}

/// What a request asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Bytes from a byte on.
    Read(u64),
    /// Bytes are written from a byte on.
    Write(u64),
    /// What was answered before becomes durable.
    Flush,
    /// What the device is known by.
    Name,
    /// Segments are not needed.
    Discard,
    /// Segments read as zeros.
    Zero,
    /// What is not known.
    Unknown,
}

/// A little-endian number of so many bytes, from some byte on.
fn number<const N: usize>(bytes: &[u8; N], at: usize, count: usize) -> u64 {
    let own = bytes[at..at + count].iter().rev();
    own.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Reads a header.
pub fn ask(header: &[u8; HEADER]) -> Ask {
    // A sector beyond all bytes is beyond the volume, too.
    let from = number(header, 8, 8).saturating_mul(SECTOR);
    match number(header, 0, 4) {
        0 => Ask::Read(from),
        1 => Ask::Write(from),
        4 => Ask::Flush,
        8 => Ask::Name,
        11 => Ask::Discard,
        13 => Ask::Zero,
        _ => Ask::Unknown,
    }
}

/// A segment: from which byte on, and how many bytes; none if it says what is not known.
pub fn segment(bytes: &[u8; SEGMENT], ask: Ask) -> Option<(u64, u64)> {
    let flags = number(bytes, 12, 4);
    // That what is made zero may be given up (bit 0) is of that alone.
    let known = if ask == Ask::Zero { 1 } else { 0 };
    let from = number(bytes, 0, 8).saturating_mul(SECTOR);
    (flags & !known == 0).then_some((from, number(bytes, 8, 4) * SECTOR))
}

/// How a request ended (5.2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// As it was asked.
    Well = 0,
    /// It can't be done.
    Failed = 1,
    /// It is not known.
    Unsupported = 2,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_tells_what_it_is_like() {
        let config = Config {
            bytes: 3 << 30,
            block_bytes: 4096,
            best_bytes: 65_536,
            discard_bytes: 3 << 20,
            rings: 4,
        };
        let all = config.encode();
        assert_eq!(number(&all, 0, 8), 6 << 20);
        assert_eq!((number(&all, 12, 4), number(&all, 20, 4)), (126, 4096));
        assert_eq!((number(&all, 28, 4), number(&all, 34, 2)), (16, 4));
        assert_eq!((number(&all, 36, 4), number(&all, 40, 4)), (1 << 21, 1));
        assert_eq!((number(&all, 44, 4), number(&all, 48, 4)), (6144, 1 << 21));
        assert_eq!((number(&all, 52, 4), all[56]), (1, 1));
    }

    #[test]
    fn headers_and_segments_say_what_is_asked() {
        let header = |kind: u32, sector: u64| {
            let mut all = [0; HEADER];
            all[..4].copy_from_slice(&kind.to_le_bytes());
            all[8..].copy_from_slice(&sector.to_le_bytes());
            ask(&all)
        };
        assert_eq!((header(0, 3), header(1, 1 << 40)), (Ask::Read(1536), Ask::Write(1 << 49)));
        assert_eq!(
            (header(4, 0), header(8, 0), header(9, 0)),
            (Ask::Flush, Ask::Name, Ask::Unknown)
        );
        assert_eq!((header(11, 0), header(13, 0)), (Ask::Discard, Ask::Zero));
        assert_eq!(header(0, u64::MAX), Ask::Read(u64::MAX));
        let mut all = [0; SEGMENT];
        (all[0], all[8], all[12]) = (2, 8, 1);
        assert_eq!(segment(&all, Ask::Zero), Some((1024, 4096)));
        assert_eq!(segment(&all, Ask::Discard), None);
        all[12] = 0;
        assert_eq!(segment(&all, Ask::Discard), Some((1024, 4096)));
        all[13] = 1;
        assert_eq!(segment(&all, Ask::Zero), None);
    }
}
