//! What lies on a connection: PDU headers, lengths, padding, digests.
//!
//! TCP, section 3.6 (PDU definitions); lengths in section 3.1. A PDU is
//!
//! ```text
//! header (HLEN bytes) · header digest, 4 · padding · data · data digest, 4
//! ```
//!
//! where all but the header may be absent. The first 8 bytes of a header are those of every PDU.
//! The digests are CRC-32C (RFC 3720), little-endian; neither covers the padding.
//!
//! Invariants
//! - A length is believed only after [`Header::check`]: by then it is one that the kind of PDU can
//!   have, and says exactly how many bytes follow.
//! - What is wrong is told as the protocol wants it: [`Fatal`] is what a termination request says.

use crate::bytes::{array_at, put, u16_at, u32_at};
use crate::command::{COMMAND_BYTES, Command, Completion};
use thiserror::Error;

/// Bytes that every header begins with.
pub const COMMON_BYTES: usize = 8;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;
/// Bytes of the header of a request or answer that begins a connection.
pub const INITIALIZE_BYTES: usize = 128;
/// Bytes of a command capsule's header.
pub const COMMAND_HEADER_BYTES: usize = COMMON_BYTES + COMMAND_BYTES;
/// Bytes of the header of everything else.
pub const SHORT_HEADER_BYTES: usize = 24;
/// Most bytes of data that a termination request has: the header of what was wrong.
pub const TERMINATION_DATA_MOST: u32 = 128;
/// Where data may begin at most, behind a header and its digest: PDO is one byte, in bytes.
const OFFSET_MOST: usize = u8::MAX as usize;

/// Kinds of PDUs (TCP, figure 21).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Host: a connection begins (ICReq).
    InitializeRequest = 0x00,
    /// Controller: it may go on (ICResp).
    InitializeResponse = 0x01,
    /// Host: the connection ends, for this reason.
    HostTermination = 0x02,
    /// Controller: the same.
    ControllerTermination = 0x03,
    /// Host: a command.
    Command = 0x04,
    /// Controller: its completion.
    Response = 0x05,
    /// Host: data of a write, as asked for.
    HostData = 0x06,
    /// Controller: data of a read.
    ControllerData = 0x07,
    /// Controller: which data of a write to send.
    ReadyToTransfer = 0x09,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::InitializeRequest,
            0x01 => Self::InitializeResponse,
            0x02 => Self::HostTermination,
            0x03 => Self::ControllerTermination,
            0x04 => Self::Command,
            0x05 => Self::Response,
            0x06 => Self::HostData,
            0x07 => Self::ControllerData,
            0x09 => Self::ReadyToTransfer,
            _ => return None,
        })
    }

    /// Whether hosts send it; else controllers do.
    pub fn is_of_host(self) -> bool {
        use Kind::{Command, HostData, HostTermination, InitializeRequest};
        matches!(self, InitializeRequest | HostTermination | Command | HostData)
    }

    /// Bytes of its header.
    pub fn header_bytes(self) -> usize {
        match self {
            Self::InitializeRequest | Self::InitializeResponse => INITIALIZE_BYTES,
            Self::Command => COMMAND_HEADER_BYTES,
            _ => SHORT_HEADER_BYTES,
        }
    }

    /// The digests that stand in it where these were agreed on.
    fn digests(self, agreed: Digests) -> Digests {
        use Kind::{ControllerTermination, HostTermination, InitializeRequest, InitializeResponse};
        match self {
            InitializeRequest | InitializeResponse | HostTermination | ControllerTermination => {
                Digests::default()
            }
            _ => agreed,
        }
    }

    /// Whether data may stand in it.
    fn has_data(self) -> bool {
        use Kind::{Command, ControllerData, HostData};
        matches!(self, Command | HostData | ControllerData)
    }
}

/// Flags of a header. Which of them a kind knows is in TCP, section 3.6.2.
pub mod flag {
    /// A header digest follows the header.
    pub const HEADER_DIGEST: u8 = 1 << 0;
    /// A data digest follows the data.
    pub const DATA_DIGEST: u8 = 1 << 1;
    /// The last data of what was asked for, or of the command.
    pub const LAST: u8 = 1 << 2;
    /// The command ended well, and no completion follows.
    pub const SUCCESS: u8 = 1 << 3;
}

/// Which digests both sides agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digests {
    /// Of headers.
    pub header: bool,
    /// Of data.
    pub data: bool,
}

impl Digests {
    fn of(bits: u8) -> Self {
        Self { header: bits & 1 != 0, data: bits & 2 != 0 }
    }

    fn bits(self) -> u8 {
        u8::from(self.header) | u8::from(self.data) << 1
    }
}

/// Why a connection ends (TCP, figures 26 and 28: FES, with FEI).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Fatal {
    /// The field of a header that begins there is wrong.
    #[error("byte {0} of a header is wrong")]
    Field(u32),
    /// Not at this time, or not from this side.
    #[error("a message that is not expected")]
    Sequence,
    /// A header's digest, as it was and as it should have been, is told by the former.
    #[error("a header does not have its digest {0:#010x}")]
    HeaderDigest(u32),
    /// Data outside of what was asked for.
    #[error("data outside of what was asked for")]
    OutOfRange,
    /// More data, or requests for it, than was agreed on.
    #[error("more than was agreed on")]
    Limit,
    /// A parameter that begins there is not supported.
    #[error("the parameter at byte {0} of a header is not supported")]
    Unsupported(u32),
}

impl Fatal {
    /// Fatal error status and information.
    pub fn code(self) -> (u16, u32) {
        match self {
            Self::Field(at) => (1, at),
            Self::Sequence => (2, 0),
            Self::HeaderDigest(had) => (3, had),
            Self::OutOfRange => (4, 0),
            Self::Limit => (5, 0),
            Self::Unsupported(at) => (6, at),
        }
    }
}

/// The first bytes of every PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// See [`flag`].
    pub flags: u8,
    /// Where the data begins, bytes from the begin of the header; 0 without any.
    pub data_offset: u8,
    /// Bytes of all of the PDU.
    pub bytes: u32,
}

/// Bytes that follow the first ones of a header, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rest {
    /// The rest of the header.
    pub header: usize,
    /// Its digest is there.
    pub header_digest: bool,
    /// Nobody's bytes.
    pub padding: usize,
    /// Data.
    pub data: u32,
    /// The data's digest is there.
    pub data_digest: bool,
}

impl Header {
    /// Of a PDU of that kind, with `data` bytes that begin at a multiple of `alignment`.
    pub fn new(kind: Kind, flags: u8, data: u32, alignment: usize, digests: Digests) -> Self {
        let digests = kind.digests(digests);
        let (mut flags, mut bytes) = (flags, kind.header_bytes());
        if digests.header {
            flags |= flag::HEADER_DIGEST;
            bytes += DIGEST_BYTES;
        }
        let mut data_offset = 0;
        if data > 0 && kind.has_data() {
            bytes = bytes.next_multiple_of(alignment);
            data_offset = bytes as u8;
            if digests.data {
                flags |= flag::DATA_DIGEST;
                bytes += DIGEST_BYTES;
            }
        }
        Self { kind, flags, data_offset, bytes: bytes as u32 + data }
    }

    /// Reads the first bytes.
    ///
    /// # Errors
    /// The kind, or the bytes of the header, are no kind's.
    pub fn decode(bytes: &[u8; COMMON_BYTES]) -> Result<Self, Fatal> {
        let kind = Kind::of(bytes[0]).ok_or(Fatal::Field(0))?;
        if usize::from(bytes[2]) != kind.header_bytes() {
            return Err(Fatal::Field(2));
        }
        Ok(Self { kind, flags: bytes[1], data_offset: bytes[3], bytes: u32_at(bytes, 4) })
    }

    /// Writes the first bytes.
    pub fn encode(&self) -> [u8; COMMON_BYTES] {
        let mut bytes = [0; COMMON_BYTES];
        bytes[..4].copy_from_slice(&[
            self.kind as u8,
            self.flags,
            self.kind.header_bytes() as u8,
            self.data_offset,
        ]);
        put(&mut bytes, 4, &self.bytes.to_le_bytes());
        bytes
    }

    /// What follows, if the lengths are possible, the flags say what was agreed on, data begins at
    /// a multiple of `alignment`, and there are at most `most` bytes of it.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, digests: Digests, alignment: usize, most: u32) -> Result<Rest, Fatal> {
        let header = self.kind.header_bytes();
        let digests = self.kind.digests(digests);
        if (self.flags & flag::HEADER_DIGEST != 0) != digests.header {
            return Err(Fatal::Field(1));
        }
        let before = header + if digests.header { DIGEST_BYTES } else { 0 };
        let rest = |data, padding, data_digest| Rest {
            header: header - COMMON_BYTES,
            header_digest: digests.header,
            padding,
            data,
            data_digest,
        };
        let behind = self.bytes.checked_sub(before as u32).ok_or(Fatal::Field(4))?;
        if matches!(self.kind, Kind::HostTermination | Kind::ControllerTermination) {
            let fits = behind <= TERMINATION_DATA_MOST;
            return if fits { Ok(rest(behind, 0, false)) } else { Err(Fatal::Field(4)) };
        }
        if behind == 0 {
            return Ok(rest(0, 0, false));
        }
        if !self.kind.has_data() {
            return Err(Fatal::Field(4));
        }
        let offset = usize::from(self.data_offset);
        if offset < before || !offset.is_multiple_of(alignment) {
            return Err(Fatal::Field(3));
        }
        if (self.flags & flag::DATA_DIGEST != 0) != digests.data {
            return Err(Fatal::Field(1));
        }
        let around = offset as u32 + if digests.data { DIGEST_BYTES as u32 } else { 0 };
        match self.bytes.checked_sub(around) {
            None | Some(0) => Err(Fatal::Field(4)),
            Some(data) if data > most => Err(Fatal::Limit),
            Some(data) => Ok(rest(data, offset - before, digests.data)),
        }
    }
}

/// The alignment, bytes, that a field of 0's based dwords (HPDA, CPDA) asks for; `None` if no data
/// offset could have it.
pub fn alignment(field: u8) -> Option<usize> {
    (field <= 31).then_some((usize::from(field) + 1) * 4)
}

const _: () = assert!(
    (COMMAND_HEADER_BYTES + DIGEST_BYTES).next_multiple_of(32 * 4) <= OFFSET_MOST,
    "a data offset fits its field, whatever alignment is asked for"
);

/// How a connection begins, by the host (TCP, section 3.6.2.2). The default asks for nothing: no
/// digests, no more alignment than there has to be, one request for data at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitializeRequest {
    /// The version of PDU formats: 0.
    pub version: u16,
    /// HPDA: alignment of data to the host; see [`alignment`].
    pub alignment: u8,
    /// Digests that the host wants.
    pub digests: Digests,
    /// MAXR2T: most open requests for data of a command, less one.
    pub requests_less_one: u32,
}

/// How it goes on, by the controller (TCP, section 3.6.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitializeResponse {
    /// The version of PDU formats: 0.
    pub version: u16,
    /// CPDA: alignment of data to the controller; see [`alignment`].
    pub alignment: u8,
    /// Digests that are used: at most those that the host wants.
    pub digests: Digests,
    /// MAXH2CDATA: most bytes of data that the host sends in one PDU; at least 4096, a multiple
    /// of 4.
    pub data_most: u32,
}

/// What both have: version, alignment, digests, and a number.
fn initialize(
    kind: Kind,
    version: u16,
    bits: (u8, Digests),
    number: u32,
) -> [u8; INITIALIZE_BYTES] {
    let mut bytes = [0; INITIALIZE_BYTES];
    put(&mut bytes, 0, &Header::new(kind, 0, 0, 4, Digests::default()).encode());
    put(&mut bytes, 8, &version.to_le_bytes());
    (bytes[10], bytes[11]) = (bits.0, bits.1.bits());
    put(&mut bytes, 12, &number.to_le_bytes());
    bytes
}

impl InitializeRequest {
    /// Reads a request, first bytes included.
    pub fn decode(bytes: &[u8; INITIALIZE_BYTES]) -> Self {
        Self {
            version: u16_at(bytes, 8),
            alignment: bytes[10],
            digests: Digests::of(bytes[11]),
            requests_less_one: u32_at(bytes, 12),
        }
    }

    /// Writes a request.
    pub fn encode(&self) -> [u8; INITIALIZE_BYTES] {
        let bits = (self.alignment, self.digests);
        initialize(Kind::InitializeRequest, self.version, bits, self.requests_less_one)
    }
}

impl InitializeResponse {
    /// Reads a response, first bytes included.
    pub fn decode(bytes: &[u8; INITIALIZE_BYTES]) -> Self {
        Self {
            version: u16_at(bytes, 8),
            alignment: bytes[10],
            digests: Digests::of(bytes[11]),
            data_most: u32_at(bytes, 12),
        }
    }

    /// Writes a response.
    pub fn encode(&self) -> [u8; INITIALIZE_BYTES] {
        let bits = (self.alignment, self.digests);
        initialize(Kind::InitializeResponse, self.version, bits, self.data_most)
    }
}

/// Data of a command, or a request for it: H2CData, C2HData and R2T have the same fields (TCP,
/// sections 3.6.2.8 to 3.6.2.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The command's identifier.
    pub command: u16,
    /// The controller's name for what it asked for; 0 in data from a controller.
    pub tag: u16,
    /// Where the data begins within that of the command.
    pub offset: u32,
    /// Bytes of data.
    pub bytes: u32,
}

impl Transfer {
    /// Reads it, first bytes included.
    pub fn decode(bytes: &[u8; SHORT_HEADER_BYTES]) -> Self {
        Self {
            command: u16_at(bytes, 8),
            tag: u16_at(bytes, 10),
            offset: u32_at(bytes, 12),
            bytes: u32_at(bytes, 16),
        }
    }

    /// Writes it behind its first bytes.
    pub fn encode(&self, header: &Header) -> [u8; SHORT_HEADER_BYTES] {
        let mut bytes = [0; SHORT_HEADER_BYTES];
        put(&mut bytes, 0, &header.encode());
        put(&mut bytes, 8, &self.command.to_le_bytes());
        put(&mut bytes, 10, &self.tag.to_le_bytes());
        put(&mut bytes, 12, &self.offset.to_le_bytes());
        put(&mut bytes, 16, &self.bytes.to_le_bytes());
        bytes
    }
}

/// Writes the header of a command's capsule.
pub fn command(header: &Header, command: &Command) -> [u8; COMMAND_HEADER_BYTES] {
    let mut bytes = [0; COMMAND_HEADER_BYTES];
    put(&mut bytes, 0, &header.encode());
    put(&mut bytes, COMMON_BYTES, &command.0);
    bytes
}

/// Writes a completion's capsule without its digest.
pub fn response(digests: Digests, completion: &Completion) -> [u8; SHORT_HEADER_BYTES] {
    let mut bytes = [0; SHORT_HEADER_BYTES];
    put(&mut bytes, 0, &Header::new(Kind::Response, 0, 0, 4, digests).encode());
    put(&mut bytes, COMMON_BYTES, &completion.encode());
    bytes
}

/// Reads a completion's capsule, first bytes included.
pub fn completion(bytes: &[u8; SHORT_HEADER_BYTES]) -> Completion {
    Completion::decode(&array_at(bytes, COMMON_BYTES))
}

/// Writes the header of a termination request; `wrong` bytes of the PDU's header that was wrong,
/// at most [`TERMINATION_DATA_MOST`], follow.
pub fn termination(kind: Kind, fatal: Fatal, wrong: u32) -> [u8; SHORT_HEADER_BYTES] {
    let mut bytes = [0; SHORT_HEADER_BYTES];
    let header = Header::new(kind, 0, 0, 4, Digests::default());
    let all = header.bytes + wrong.min(TERMINATION_DATA_MOST);
    put(&mut bytes, 0, &Header { bytes: all, ..header }.encode());
    let (status, information) = fatal.code();
    put(&mut bytes, 8, &status.to_le_bytes());
    put(&mut bytes, 10, &information.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
