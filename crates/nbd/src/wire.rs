//! The bytes of the protocol: constants, decoders and encoders.
//!
//! Source: "The NBD protocol", doc/proto.md of the NetworkBlockDevice project; each group names
//! its section. All numbers are big-endian.
//!
//! Invariant: decoders take any bytes and never panic; encoders write into fixed memory.

use crate::limits::MESSAGE_BYTES;
use arrayvec::ArrayVec;

// "Newstyle negotiation" and "Fixed newstyle negotiation".

/// First word of the server's greeting: "NBDMAGIC".
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second word of the greeting and first of every option: "IHAVEOPT".
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// First word of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Bytes of an option before its data.
pub const OPTION_HEADER_BYTES: usize = 16;
/// Zeros behind the reply to `NBD_OPT_EXPORT_NAME`, unless both sides agreed to omit them.
pub const EXPORT_NAME_ZEROES: usize = 124;

// "Handshake flags" and "Client flags".

/// `NBD_FLAG_FIXED_NEWSTYLE` and `NBD_FLAG_C_FIXED_NEWSTYLE`.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// `NBD_FLAG_NO_ZEROES` and `NBD_FLAG_C_NO_ZEROES`.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;

/// What the server offers and what may be done with an export: "Transmission flags".
pub mod transmission_flag {
    /// `NBD_FLAG_HAS_FLAGS`: always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// `NBD_FLAG_SEND_FLUSH`.
    pub const FLUSH: u16 = 1 << 2;
    /// `NBD_FLAG_SEND_FUA`.
    pub const FUA: u16 = 1 << 3;
    /// `NBD_FLAG_SEND_TRIM`.
    pub const TRIM: u16 = 1 << 5;
    /// `NBD_FLAG_SEND_WRITE_ZEROES`.
    pub const WRITE_ZEROES: u16 = 1 << 6;
    /// `NBD_FLAG_SEND_DF`: only with structured replies.
    pub const DF: u16 = 1 << 7;
    /// `NBD_FLAG_CAN_MULTI_CONN`.
    pub const MULTI_CONN: u16 = 1 << 8;
    /// `NBD_FLAG_SEND_FAST_ZERO`.
    pub const FAST_ZERO: u16 = 1 << 11;
}

/// "Option types".
pub mod option {
    /// `NBD_OPT_EXPORT_NAME`: choose an export; has no error reply.
    pub const EXPORT_NAME: u32 = 1;
    /// `NBD_OPT_ABORT`.
    pub const ABORT: u32 = 2;
    /// `NBD_OPT_LIST`.
    pub const LIST: u32 = 3;
    /// `NBD_OPT_STARTTLS`.
    pub const STARTTLS: u32 = 5;
    /// `NBD_OPT_INFO`.
    pub const INFO: u32 = 6;
    /// `NBD_OPT_GO`.
    pub const GO: u32 = 7;
    /// `NBD_OPT_STRUCTURED_REPLY`.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// `NBD_OPT_LIST_META_CONTEXT`.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// `NBD_OPT_SET_META_CONTEXT`.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// "Option reply types".
pub mod option_reply {
    /// `NBD_REP_ACK`.
    pub const ACK: u32 = 1;
    /// `NBD_REP_SERVER`.
    pub const SERVER: u32 = 2;
    /// `NBD_REP_INFO`.
    pub const INFO: u32 = 3;
    /// `NBD_REP_META_CONTEXT`.
    pub const META_CONTEXT: u32 = 4;
    /// `NBD_REP_ERR_UNSUP`: unknown option.
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    /// `NBD_REP_ERR_POLICY`: known, but not allowed here.
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    /// `NBD_REP_ERR_INVALID`: malformed.
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    /// `NBD_REP_ERR_UNKNOWN`: no such export.
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    /// `NBD_REP_ERR_TOO_BIG`.
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Kinds of `NBD_REP_INFO`: "`NBD_OPT_INFO` and `NBD_OPT_GO`".
pub mod info {
    /// `NBD_INFO_EXPORT`: size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// `NBD_INFO_NAME`: the export's own name.
    pub const NAME: u16 = 1;
    /// `NBD_INFO_BLOCK_SIZE`: minimum, preferred, maximum.
    pub const BLOCK_SIZE: u16 = 3;
}

/// The only metadata context: "Metadata querying".
pub const BASE_ALLOCATION: &[u8] = b"base:allocation";
/// Query for all contexts of its namespace; only listing knows it.
pub const BASE_NAMESPACE: &[u8] = b"base:";
/// The id clients are given for [`BASE_ALLOCATION`].
pub const BASE_ALLOCATION_ID: u32 = 1;

// "Request message".

/// `NBD_REQUEST_MAGIC`.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Bytes of a request before its payload.
pub const REQUEST_BYTES: usize = 28;

/// "Request types".
pub mod command {
    /// `NBD_CMD_READ`.
    pub const READ: u16 = 0;
    /// `NBD_CMD_WRITE`.
    pub const WRITE: u16 = 1;
    /// `NBD_CMD_DISC`.
    pub const DISC: u16 = 2;
    /// `NBD_CMD_FLUSH`.
    pub const FLUSH: u16 = 3;
    /// `NBD_CMD_TRIM`.
    pub const TRIM: u16 = 4;
    /// `NBD_CMD_WRITE_ZEROES`.
    pub const WRITE_ZEROES: u16 = 6;
    /// `NBD_CMD_BLOCK_STATUS`.
    pub const BLOCK_STATUS: u16 = 7;
}

/// "Command flags".
pub mod command_flag {
    /// `NBD_CMD_FLAG_FUA`.
    pub const FUA: u16 = 1 << 0;
    /// `NBD_CMD_FLAG_NO_HOLE`.
    pub const NO_HOLE: u16 = 1 << 1;
    /// `NBD_CMD_FLAG_DF`.
    pub const DF: u16 = 1 << 2;
    /// `NBD_CMD_FLAG_REQ_ONE`.
    pub const REQ_ONE: u16 = 1 << 3;
    /// `NBD_CMD_FLAG_FAST_ZERO`.
    pub const FAST_ZERO: u16 = 1 << 4;
}

// "Simple reply message" and "Structured reply chunk message".

/// `NBD_SIMPLE_REPLY_MAGIC`.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// `NBD_STRUCTURED_REPLY_MAGIC`.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// `NBD_REPLY_FLAG_DONE`: the last chunk of a reply.
pub const REPLY_DONE: u16 = 1 << 0;

/// "Structured reply types".
pub mod chunk {
    /// `NBD_REPLY_TYPE_NONE`.
    pub const NONE: u16 = 0;
    /// `NBD_REPLY_TYPE_OFFSET_DATA`.
    pub const OFFSET_DATA: u16 = 1;
    /// `NBD_REPLY_TYPE_BLOCK_STATUS`.
    pub const BLOCK_STATUS: u16 = 5;
    /// `NBD_REPLY_TYPE_ERROR`.
    pub const ERROR: u16 = (1 << 15) + 1;
    /// `NBD_REPLY_TYPE_ERROR_OFFSET`.
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// "Error values".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ErrorCode {
    /// `NBD_EIO`.
    Io = 5,
    /// `NBD_EINVAL`.
    Invalid = 22,
    /// `NBD_ENOSPC`: a write past the end.
    NoSpace = 28,
    /// `NBD_EOVERFLOW`: too long to answer in one chunk.
    Overflow = 75,
    /// `NBD_ENOTSUP`.
    NotSupported = 95,
    /// `NBD_ESHUTDOWN`.
    Shutdown = 108,
}

/// Takes numbers and strings off the front of received bytes; `None` once they run out.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// The next 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A 32-bit length and as many bytes.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()?;
        self.bytes(n as usize)
    }
}

/// An option's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionHeader {
    /// One of [`option`], or anything else.
    pub option: u32,
    /// Length of the data that follows.
    pub bytes: u32,
}

impl OptionHeader {
    /// Decodes; `None` if the magic is wrong.
    pub fn decode(raw: &[u8; OPTION_HEADER_BYTES]) -> Option<Self> {
        let mut fields = Fields(raw);
        (fields.u64()? == OPTION_MAGIC).then_some(())?;
        Some(Self { option: fields.u32()?, bytes: fields.u32()? })
    }
}

/// A request's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Bits of [`command_flag`].
    pub flags: u16,
    /// One of [`command`], or anything else.
    pub kind: u16,
    /// The client's name for the request; comes back in the reply.
    pub cookie: u64,
    /// First byte, relative to the export.
    pub offset: u64,
    /// Length of the range, and of the payload of a write.
    pub bytes: u32,
}

impl Request {
    /// Decodes; `None` if the magic is wrong.
    pub fn decode(raw: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = Fields(raw);
        (fields.u32()? == REQUEST_MAGIC).then_some(())?;
        Some(Self {
            flags: fields.u16()?,
            kind: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            bytes: fields.u32()?,
        })
    }
}

/// Longest head of a reply: structured header, error, message and offset.
pub const HEAD_BYTES: usize = 20 + 6 + MESSAGE_BYTES + 8;

/// The part of a reply before its payload.
pub type Head = ArrayVec<u8, HEAD_BYTES>;

fn put(head: &mut Head, bytes: &[u8]) {
    head.try_extend_from_slice(bytes).expect("a head has room for its fields");
}

/// A simple reply; `error` is none for success.
pub fn simple_reply(cookie: u64, error: Option<ErrorCode>) -> Head {
    let mut head = Head::new();
    put(&mut head, &SIMPLE_REPLY_MAGIC.to_be_bytes());
    put(&mut head, &error.map_or(0, |code| code as u32).to_be_bytes());
    put(&mut head, &cookie.to_be_bytes());
    head
}

fn chunk_header(cookie: u64, flags: u16, kind: u16, payload: u32) -> Head {
    let mut head = Head::new();
    put(&mut head, &STRUCTURED_REPLY_MAGIC.to_be_bytes());
    put(&mut head, &flags.to_be_bytes());
    put(&mut head, &kind.to_be_bytes());
    put(&mut head, &cookie.to_be_bytes());
    put(&mut head, &payload.to_be_bytes());
    head
}

/// A chunk that says nothing but "done, without an error".
pub fn done_chunk(cookie: u64) -> Head {
    chunk_header(cookie, REPLY_DONE, chunk::NONE, 0)
}

/// The head of a data chunk; `bytes` of data follow.
pub fn data_chunk(cookie: u64, offset: u64, bytes: u32, done: bool) -> Head {
    let flags = if done { REPLY_DONE } else { 0 };
    let mut head = chunk_header(cookie, flags, chunk::OFFSET_DATA, bytes + 8);
    put(&mut head, &offset.to_be_bytes());
    head
}

/// One extent of the `base:allocation` context: allocated, content unknown.
pub fn allocated_chunk(cookie: u64, bytes: u32) -> Head {
    let mut head = chunk_header(cookie, REPLY_DONE, chunk::BLOCK_STATUS, 12);
    put(&mut head, &BASE_ALLOCATION_ID.to_be_bytes());
    put(&mut head, &bytes.to_be_bytes());
    put(&mut head, &0u32.to_be_bytes());
    head
}

/// The last chunk of a failed reply, with a text for people (cut at [`MESSAGE_BYTES`]) and,
/// where known, the place of the error.
pub fn error_chunk(cookie: u64, code: ErrorCode, message: &str, offset: Option<u64>) -> Head {
    let text = &message.as_bytes()[..message.floor_char_boundary_at(MESSAGE_BYTES)];
    let (kind, tail) = match offset {
        Some(_) => (chunk::ERROR_OFFSET, 8),
        None => (chunk::ERROR, 0),
    };
    let mut head = chunk_header(cookie, REPLY_DONE, kind, 6 + text.len() as u32 + tail);
    put(&mut head, &(code as u32).to_be_bytes());
    put(&mut head, &(text.len() as u16).to_be_bytes());
    put(&mut head, text);
    if let Some(offset) = offset {
        put(&mut head, &offset.to_be_bytes());
    }
    head
}

/// `str::floor_char_boundary` is newer than our minimum Rust.
trait FloorCharBoundary {
    fn floor_char_boundary_at(&self, at: usize) -> usize;
}

impl FloorCharBoundary for str {
    fn floor_char_boundary_at(&self, at: usize) -> usize {
        let mut at = at.min(self.len());
        while !self.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// Appends a reply to an option.
pub fn option_reply(out: &mut Vec<u8>, option: u32, kind: u32, parts: &[&[u8]]) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(bytes as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_decodes_field_by_field() {
        let raw = [
            0x25, 0x60, 0x95, 0x13, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 0, 0, 0, 2, 0,
            0, 0x10, 0,
        ];
        let want = Request {
            flags: command_flag::FUA,
            kind: command::WRITE_ZEROES,
            cookie: 0x0102_0304_0506_0708,
            offset: 0x1_0000_0002,
            bytes: 4096,
        };
        assert_eq!(Request::decode(&raw), Some(want));
        let mut wrong = raw;
        wrong[3] ^= 1;
        assert_eq!(Request::decode(&wrong), None);
    }

    #[test]
    fn an_option_header_decodes() {
        let raw = *b"IHAVEOPT\0\0\0\x07\0\0\x01\x02";
        let want = OptionHeader { option: option::GO, bytes: 0x102 };
        assert_eq!(OptionHeader::decode(&raw), Some(want));
        assert_eq!(OptionHeader::decode(b"IHAVEOPS\0\0\0\x07\0\0\x01\x02"), None);
    }

    #[test]
    fn fields_stop_at_the_end() {
        let mut fields = Fields(&[0, 0, 0, 5, b'a', b'b']);
        assert_eq!(fields.string(), None);
        let mut fields = Fields(&[0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(fields.string(), None);
        let mut fields = Fields(&[0, 1, 0, 0, 0, 1, b'x']);
        assert_eq!((fields.u16(), fields.string(), fields.u16()), (Some(1), Some(&b"x"[..]), None));
    }

    #[test]
    fn replies_have_the_documented_bytes() {
        assert_eq!(
            simple_reply(7, Some(ErrorCode::Invalid))[..],
            [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 22, 0, 0, 0, 0, 0, 0, 0, 7]
        );
        assert_eq!(
            data_chunk(7, 512, 1024, true)[..],
            [
                0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 4, 8, 0, 0, 0, 0,
                0, 0, 2, 0
            ]
        );
        assert_eq!(done_chunk(1)[16..], [0, 0, 0, 0]);
        assert_eq!(allocated_chunk(1, 9)[16..], [0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0]);
        assert_eq!(
            error_chunk(1, ErrorCode::Io, "no", Some(3))[4..],
            [
                0, 1, 0x80, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 5, 0, 2, b'n', b'o',
                0, 0, 0, 0, 0, 0, 0, 3
            ]
        );
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let head = error_chunk(1, ErrorCode::Io, &"ä".repeat(100), Some(1));
        assert!(head.len() <= HEAD_BYTES);
        assert_eq!(head[24..26], [0, 62]);
        let head = error_chunk(1, ErrorCode::Io, &format!("x{}", "ä".repeat(100)), None);
        assert_eq!(head[24..26], [0, 61]);
    }
}
