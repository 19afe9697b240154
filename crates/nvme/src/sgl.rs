//! SGL descriptors: where the data of a command is.
//!
//! Base, section 4.3.2 (figures 113 to 122); TCP, section 3.3.2.1 (what a host may use): a command
//! has one descriptor, and its data is either in the command's capsule or moves in data PDUs.

use crate::bytes::{put, u32_at, u64_at};

/// Bytes of a descriptor.
pub const BYTES: usize = 16;

const DATA_BLOCK: u8 = 0x0;
const OFFSET: u8 = 0x1;
const TRANSPORT_DATA_BLOCK: u8 = 0x5;
const TRANSPORT_SPECIFIC: u8 = 0xa;

/// What a descriptor says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sgl {
    /// In the capsule, so many bytes behind its begin of data.
    InCapsule {
        /// Bytes before the data.
        offset: u64,
        /// Bytes of data.
        length: u32,
    },
    /// In data PDUs.
    Transport {
        /// Bytes of data.
        length: u32,
    },
    /// Anything else: type and sub type, as the last byte has them.
    Other(u8),
}

impl Sgl {
    /// Reads a descriptor.
    pub fn decode(bytes: &[u8; BYTES]) -> Self {
        let (kind, sub) = (bytes[15] >> 4, bytes[15] & 0xf);
        let length = u32_at(bytes, 8);
        match (kind, sub) {
            (DATA_BLOCK, OFFSET) => Self::InCapsule { offset: u64_at(bytes, 0), length },
            (TRANSPORT_DATA_BLOCK, TRANSPORT_SPECIFIC) => Self::Transport { length },
            _ => Self::Other(bytes[15]),
        }
    }

    /// Writes a descriptor.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        match *self {
            Self::InCapsule { offset, length } => {
                put(&mut bytes, 0, &offset.to_le_bytes());
                put(&mut bytes, 8, &length.to_le_bytes());
                bytes[15] = DATA_BLOCK << 4 | OFFSET;
            }
            Self::Transport { length } => {
                put(&mut bytes, 8, &length.to_le_bytes());
                bytes[15] = TRANSPORT_DATA_BLOCK << 4 | TRANSPORT_SPECIFIC;
            }
            Self::Other(kind) => bytes[15] = kind,
        }
        bytes
    }

    /// Bytes of data; `None` where the descriptor does not say.
    pub fn length(&self) -> Option<u32> {
        match *self {
            Self::InCapsule { length, .. } | Self::Transport { length } => Some(length),
            Self::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_linux_hosts_are_read() {
        // drivers/nvme/host/tcp.c: a write with its data in the capsule, and one without.
        let mut bytes = [0; BYTES];
        (bytes[9], bytes[15]) = (0x10, 0x01);
        assert_eq!(Sgl::decode(&bytes), Sgl::InCapsule { offset: 0, length: 4096 });
        bytes[15] = 0x5a;
        assert_eq!(Sgl::decode(&bytes), Sgl::Transport { length: 4096 });
        for kind in [0x00, 0x02, 0x10, 0x40, 0x5f, 0xff] {
            bytes[15] = kind;
            assert_eq!(
                (Sgl::decode(&bytes), Sgl::decode(&bytes).length()),
                (Sgl::Other(kind), None)
            );
        }
    }

    #[test]
    fn what_is_written_is_read_alike() {
        for sgl in [Sgl::InCapsule { offset: 1 << 40, length: 7 }, Sgl::Transport { length: !0 }] {
            assert_eq!(Sgl::decode(&sgl.encode()), sgl);
        }
    }
}
