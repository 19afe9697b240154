//! Submission queue entries and completions.
//!
//! Base, section 3.3.3.1 (figure 86, common command format) and 3.3.3.2 (completion queue entry);
//! NVM, section 3.2 for what reads and writes put into command dwords.

use crate::bytes::{array_at, put, u16_at, u32_at, u64_at};
use crate::sgl::Sgl;
use crate::status::Status;

/// Bytes of a submission queue entry.
pub const COMMAND_BYTES: usize = 64;
/// Bytes of a completion.
pub const COMPLETION_BYTES: usize = 16;

/// Opcodes of admin commands (Base, figure 138).
pub mod admin {
    /// Get Log Page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0c;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Cross-Controller Reset (Base 2.3).
    pub const CROSS_CONTROLLER_RESET: u8 = 0x38;
}

/// Opcodes of I/O commands (Base, figure 390; NVM, figure 20).
pub mod nvm {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Compare.
    pub const COMPARE: u8 = 0x05;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Verify.
    pub const VERIFY: u8 = 0x0c;
    /// Those of them that change blocks.
    pub const CHANGES: [u8; 3] = [WRITE, WRITE_ZEROES, DATASET_MANAGEMENT];
}

/// Fabrics commands, on every queue; what they are is in [`Command::fabrics_type`].
pub const FABRICS: u8 = 0x7f;

/// How a command is fused with its neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fused {
    /// Not at all.
    No,
    /// It is the first of two.
    First,
    /// It is the second of two.
    Second,
}

/// A submission queue entry as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command(pub [u8; COMMAND_BYTES]);

impl Command {
    /// A command with nothing but these: its data is told by an SGL descriptor, as fabrics want.
    pub fn new(opcode: u8, id: u16, namespace: u32, sgl: Sgl) -> Self {
        let mut bytes = [0; COMMAND_BYTES];
        (bytes[0], bytes[1]) = (opcode, 0x40);
        put(&mut bytes, 2, &id.to_le_bytes());
        put(&mut bytes, 4, &namespace.to_le_bytes());
        put(&mut bytes, 24, &sgl.encode());
        Self(bytes)
    }

    /// The same for blocks (NVM, section 3.2: dwords 10 to 12): 1 to 65536 of them.
    ///
    /// # Panics
    /// For any other number of blocks.
    pub fn with_blocks(mut self, first: u64, blocks: u32, fua: bool) -> Self {
        let less_one = blocks.checked_sub(1).and_then(|less| u16::try_from(less).ok());
        let less_one = less_one.expect("a command has 1 to 65536 blocks");
        put(&mut self.0, 40, &first.to_le_bytes());
        put(&mut self.0, 48, &less_one.to_le_bytes());
        self.0[51] |= u8::from(fua) << 6;
        self
    }

    /// The same with another identifier.
    pub fn with_id(mut self, id: u16) -> Self {
        put(&mut self.0, 2, &id.to_le_bytes());
        self
    }

    /// The same with its data elsewhere.
    pub fn with_sgl(mut self, sgl: Sgl) -> Self {
        put(&mut self.0, 24, &sgl.encode());
        self
    }

    /// The same with dwords 10 to 15.
    pub fn with_dwords(mut self, dwords: [u32; 6]) -> Self {
        for (at, dword) in dwords.into_iter().enumerate() {
            put(&mut self.0, 40 + 4 * at, &dword.to_le_bytes());
        }
        self
    }

    /// What to do.
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// The command's identifier, of the host's choice.
    pub fn id(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    /// Whether it is half of a pair; `None` if the field says what is reserved.
    pub fn fused(&self) -> Option<Fused> {
        match self.0[1] & 3 {
            0 => Some(Fused::No),
            1 => Some(Fused::First),
            2 => Some(Fused::Second),
            _ => None,
        }
    }

    /// Whether its data is told by an SGL descriptor, as fabrics want (Base, figure 87, PSDT).
    pub fn has_sgl(&self) -> bool {
        matches!(self.0[1] >> 6, 1 | 2)
    }

    /// The namespace identifier.
    pub fn namespace(&self) -> u32 {
        u32_at(&self.0, 4)
    }

    /// Where its data is.
    pub fn sgl(&self) -> Sgl {
        Sgl::decode(&array_at(&self.0, 24))
    }

    /// Command dword `number`, 2 to 15.
    ///
    /// # Panics
    /// For any other number.
    pub fn dword(&self, number: usize) -> u32 {
        assert!((2..16).contains(&number), "a command has 16 dwords");
        u32_at(&self.0, 4 * number)
    }

    /// The first block of a read, write, compare, verify or write-zeroes (dwords 10 and 11).
    pub fn first_block(&self) -> u64 {
        u64_at(&self.0, 40)
    }

    /// How many blocks those are for, 1 to 65536 (dword 12, 0's based).
    pub fn blocks(&self) -> u64 {
        u64::from(u16_at(&self.0, 48)) + 1
    }

    /// Whether it has to be durable, or read from the medium (dword 12, bit 30).
    pub fn is_fua(&self) -> bool {
        self.dword(12) >> 30 & 1 == 1
    }

    /// The type of a fabrics command.
    pub fn fabrics_type(&self) -> u8 {
        self.0[4]
    }
}

/// A completion queue entry. The phase tag means nothing on fabrics, and is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// What the command gives back beside its status: dwords 0 and 1.
    pub result: u64,
    /// Commands that the controller has taken from the submission queue, modulo its size; reserved
    /// where flow control is off.
    pub sq_head: u16,
    /// The submission queue, reserved on fabrics.
    pub sq_id: u16,
    /// The command's identifier.
    pub id: u16,
    /// How it ended.
    pub status: Status,
}

impl Completion {
    /// Of a command that ended so, with nothing to give back.
    pub fn of(id: u16, status: Status) -> Self {
        Self { result: 0, sq_head: 0, sq_id: 0, id, status }
    }

    /// Reads a completion.
    pub fn decode(bytes: &[u8; COMPLETION_BYTES]) -> Self {
        Self {
            result: u64_at(bytes, 0),
            sq_head: u16_at(bytes, 8),
            sq_id: u16_at(bytes, 10),
            id: u16_at(bytes, 12),
            status: Status(u16_at(bytes, 14) >> 1),
        }
    }

    /// Writes a completion.
    pub fn encode(&self) -> [u8; COMPLETION_BYTES] {
        let mut bytes = [0; COMPLETION_BYTES];
        put(&mut bytes, 0, &self.result.to_le_bytes());
        put(&mut bytes, 8, &self.sq_head.to_le_bytes());
        put(&mut bytes, 10, &self.sq_id.to_le_bytes());
        put(&mut bytes, 12, &self.id.to_le_bytes());
        put(&mut bytes, 14, &(self.status.0 << 1).to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_a_linux_host_is_read() {
        let mut bytes = [0; COMMAND_BYTES];
        (bytes[0], bytes[1], bytes[2], bytes[3]) = (nvm::WRITE, 0x40, 0x34, 0x12);
        (bytes[4], bytes[33], bytes[39]) = (1, 0x10, 0x01);
        (bytes[40], bytes[44], bytes[48], bytes[51]) = (8, 1, 7, 0x40);
        let command = Command(bytes);
        assert_eq!((command.opcode(), command.id(), command.namespace()), (1, 0x1234, 1));
        assert_eq!((command.first_block(), command.blocks()), (1 << 32 | 8, 8));
        assert!(command.is_fua() && command.has_sgl());
        assert_eq!(command.fused(), Some(Fused::No));
        assert_eq!(command.sgl(), Sgl::InCapsule { offset: 0, length: 4096 });
    }

    #[test]
    fn a_command_is_read_as_it_was_written() {
        let sgl = Sgl::Transport { length: 512 };
        let one = Command::new(nvm::WRITE, 0x1234, 7, sgl).with_blocks(1 << 40, 65_536, true);
        assert_eq!((one.opcode(), one.id(), one.namespace()), (nvm::WRITE, 0x1234, 7));
        assert_eq!((one.first_block(), one.blocks(), one.is_fua()), (1 << 40, 65_536, true));
        assert!(one.has_sgl() && one.sgl() == sgl && one.fused() == Some(Fused::No));
        let one = Command::new(nvm::READ, 1, 1, sgl).with_blocks(3, 1, false);
        assert_eq!((one.first_block(), one.blocks(), one.is_fua()), (3, 1, false));
        let one = Command::new(admin::IDENTIFY, 1, 0, sgl).with_dwords([1, 2, 3, 4, 5, 6]);
        assert_eq!([10, 11, 12, 13, 14, 15].map(|at| one.dword(at)), [1, 2, 3, 4, 5, 6]);
        let inside = Sgl::InCapsule { offset: 0, length: 16 };
        let one = one.with_id(9).with_sgl(inside);
        assert_eq!((one.id(), one.sgl(), one.dword(10)), (9, inside, 1));
    }

    #[test]
    fn completions_are_read_as_they_were_written() {
        let one = Completion {
            result: 0x0102_0304_0506_0708,
            sq_head: 9,
            sq_id: 0,
            id: 0xfffe,
            status: Status::LBA_RANGE,
        };
        let bytes = one.encode();
        assert_eq!(Completion::decode(&bytes), one);
        // Code 0x80 above the phase tag, do-not-retry at the top.
        assert_eq!(bytes[14..], [0x00, 0x81]);
        assert!(!one.status.is_success() && Completion::of(3, Status::SUCCESS).status.is_success());
    }
}
