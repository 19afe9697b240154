//! Bytes of ublk (`include/uapi/linux/ublk_cmd.h` of Linux 6.12), little-endian as the machines are
//! that this runs on: the kernel is on the same one.

pub mod control;

/// Bytes of a sector, in which Linux counts.
pub const SECTOR: u64 = 512;

/// Bytes of what the kernel says of a request: `ublksrv_io_desc`.
pub const DESCRIPTOR: usize = 24;

/// Bytes of what an I/O command says: `ublksrv_io_cmd`.
pub const COMMAND: usize = 16;

/// `_IOWR('u', NUMBER, struct ublksrv_io_cmd)` (asm-generic/ioctl.h).
const fn io_command(number: u32) -> u32 {
    3 << 30 | (COMMAND as u32) << 16 | 0x75 << 8 | number
}

/// `UBLK_U_IO_FETCH_REQ`: the first request of a tag.
pub const FETCH: u32 = io_command(0x20);
/// `UBLK_U_IO_COMMIT_AND_FETCH_REQ`: the answer of one, and the next.
pub const COMMIT_AND_FETCH: u32 = io_command(0x21);

/// An I/O command's bytes.
pub fn command(queue: u16, tag: u16, result: i32) -> [u8; COMMAND] {
    let mut bytes = [0; COMMAND];
    bytes[..2].copy_from_slice(&queue.to_le_bytes());
    bytes[2..4].copy_from_slice(&tag.to_le_bytes());
    bytes[4..8].copy_from_slice(&result.to_le_bytes());
    bytes
}

/// Where in the device of characters the descriptors of a queue begin, to be mapped: each queue has
/// room for as many as there may be (`UBLK_MAX_QUEUE_DEPTH`), in whole pages.
pub const fn descriptors_at(queue: u16, page_bytes: u64) -> u64 {
    let room = (4096 * DESCRIPTOR as u64).next_multiple_of(page_bytes);
    queue as u64 * room
}

/// Where in the device of characters a request's payload is read and written
/// (`ublk_user_copy_pos`).
pub const fn payload_at(queue: u16, tag: u16) -> u64 {
    0x8000_0000 + ((queue as u64) << 41 | (tag as u64) << 25)
}

/// What a request asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Bytes.
    Read,
    /// Bytes are written.
    Write {
        /// Durable before the answer.
        fua: bool,
    },
    /// What was answered before becomes durable.
    Flush,
    /// A range is not needed.
    Discard,
    /// A range reads as zeros.
    Zero {
        /// Durable before the answer.
        fua: bool,
    },
    /// What is not known.
    Unknown,
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What it asks.
    pub ask: Ask,
    /// From which byte on.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// `UBLK_IO_F_FUA`.
const FUA: u32 = 1 << 13;

/// The error of what is not known: `EOPNOTSUPP`.
pub const NOT_SUPPORTED: i32 = -95;
/// The error of what can't be done: `EIO`.
pub const FAILED: i32 = -5;

/// Reads a descriptor.
pub fn decode(bytes: &[u8; DESCRIPTOR]) -> Request {
    let word = |at: usize| {
        let own = bytes[at..at + 4].iter().rev();
        own.fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte))
    };
    let (flags, sectors) = (word(0), word(4));
    let start = u64::from(word(12)) << 32 | u64::from(word(8));
    let fua = flags & FUA != 0;
    let ask = match flags & 0xff {
        0 => Ask::Read,
        1 => Ask::Write { fua },
        2 => Ask::Flush,
        3 => Ask::Discard,
        5 => Ask::Zero { fua },
        _ => Ask::Unknown,
    };
    // A start beyond all bytes is beyond the volume, too.
    let offset = start.saturating_mul(SECTOR);
    Request { ask, offset, bytes: u64::from(sectors) * SECTOR }
}

/// The same, as the kernel writes it.
pub fn encode(request: &Request) -> [u8; DESCRIPTOR] {
    let (op, fua) = match request.ask {
        Ask::Read => (0, false),
        Ask::Write { fua } => (1, fua),
        Ask::Flush => (2, false),
        Ask::Discard => (3, false),
        Ask::Zero { fua } => (5, fua),
        Ask::Unknown => (255, false),
    };
    let flags: u32 = op | if fua { FUA } else { 0 };
    let sectors = (request.bytes / SECTOR) as u32;
    let mut bytes = [0; DESCRIPTOR];
    bytes[..4].copy_from_slice(&flags.to_le_bytes());
    bytes[4..8].copy_from_slice(&sectors.to_le_bytes());
    bytes[8..16].copy_from_slice(&(request.offset / SECTOR).to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_header() {
        assert_eq!((FETCH, COMMIT_AND_FETCH), (0xc010_7520, 0xc010_7521));
        assert_eq!(descriptors_at(3, 4096), 3 * 98_304);
        assert_eq!(payload_at(0, 0), 0x8000_0000);
        assert_eq!(payload_at(1, 2), 0x8000_0000 + (1 << 41) + (2 << 25));
        let bytes = command(0x0102, 0x0304, -5);
        assert_eq!(bytes[..8], [2, 1, 4, 3, 0xfb, 0xff, 0xff, 0xff]);
        assert_eq!(bytes[8..], [0; 8]);
    }

    #[test]
    fn requests_come_back() {
        let asks = [
            Ask::Read,
            Ask::Write { fua: false },
            Ask::Write { fua: true },
            Ask::Flush,
            Ask::Discard,
            Ask::Zero { fua: true },
            Ask::Unknown,
        ];
        for ask in asks {
            let request = Request { ask, offset: 7 << 40, bytes: 1 << 20 };
            assert_eq!(decode(&encode(&request)), request);
        }
        let wild = decode(&[0xff; DESCRIPTOR]);
        assert_eq!((wild.ask, wild.offset), (Ask::Unknown, u64::MAX));
    }
}
