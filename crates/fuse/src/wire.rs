//! Bytes of the FUSE protocol, as `include/uapi/linux/fuse.h` of Linux has them (version 7.x): the
//! kernel's requests and what it is answered, in the machine's byte order: little-endian.
//!
//! Invariant: whatever was read, decoding it ends. What is shorter, or longer, than its header says
//! is [`Ask::Wrong`]; what is too short for its code is refused.

const _: () = assert!(cfg!(target_endian = "little"), "the kernel's byte order is the machine's");

/// Bytes of `fuse_in_header`.
pub const IN_HEADER: usize = 40;
/// Bytes of `fuse_out_header`.
pub const OUT_HEADER: usize = 16;
/// Bytes of a write's headers, behind which its payload begins: `fuse_in_header` and
/// `fuse_write_in`.
pub const HEAD: usize = 80;
/// Bytes of the longest answer without payload: that of an INIT or of attributes.
pub const ANSWER: usize = OUT_HEADER + ATTR_OUT;
const ATTR_OUT: usize = 104;

/// The node of the only file.
pub const ROOT: u64 = 1;
/// The major version of the protocol.
pub const MAJOR: u32 = 7;
/// The minor version that this knows.
pub const MINOR: u32 = 39;
/// The oldest minor version that is served: writes of whole pages, 64-byte `fuse_init_out`.
pub const OLDEST: u32 = 28;

/// Codes of requests.
pub mod opcode {
    /// A name's node.
    pub const LOOKUP: u32 = 1;
    /// A node is forgotten; not answered.
    pub const FORGET: u32 = 2;
    /// Attributes.
    pub const GETATTR: u32 = 3;
    /// Changes attributes.
    pub const SETATTR: u32 = 4;
    /// Opens.
    pub const OPEN: u32 = 14;
    /// Reads.
    pub const READ: u32 = 15;
    /// Writes.
    pub const WRITE: u32 = 16;
    /// The file system's size.
    pub const STATFS: u32 = 17;
    /// Closes for the last time.
    pub const RELEASE: u32 = 18;
    /// Makes writes durable.
    pub const FSYNC: u32 = 20;
    /// Closes.
    pub const FLUSH: u32 = 25;
    /// The begin of a session.
    pub const INIT: u32 = 26;
    /// Whether something is allowed.
    pub const ACCESS: u32 = 34;
    /// Somebody waits no more for an answer; not answered itself.
    pub const INTERRUPT: u32 = 36;
    /// The end of a session.
    pub const DESTROY: u32 = 38;
    /// Nodes are forgotten; not answered.
    pub const BATCH_FORGET: u32 = 42;
    /// Allocates, frees or zeroes.
    pub const FALLOCATE: u32 = 43;
    /// Looks for data or holes.
    pub const LSEEK: u32 = 46;
    /// Makes all of the file system durable.
    pub const SYNCFS: u32 = 50;
}

/// Errors, as `errno` has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Errno {
    /// `EPERM`.
    NotPermitted = 1,
    /// `EIO`.
    Io = 5,
    /// `ENXIO`.
    NoSuchPlace = 6,
    /// `ENOTDIR`.
    NotADirectory = 20,
    /// `EINVAL`.
    Invalid = 22,
    /// `ENOSPC`.
    NoSpace = 28,
    /// `ENOSYS`: the kernel does not ask again.
    Unknown = 38,
    /// `EPROTO`.
    Protocol = 71,
    /// `EOPNOTSUPP`.
    Unsupported = 95,
}

/// Flags of INIT.
pub mod init_flag {
    /// Reads of one open file at a time, several.
    pub const ASYNC_READ: u64 = 1 << 0;
    /// Writes of more than a page.
    pub const BIG_WRITES: u64 = 1 << 5;
    /// Direct requests of one file at a time, several.
    pub const ASYNC_DIRECT: u64 = 1 << 15;
    /// The answer says how many pages a request has at most.
    pub const MAX_PAGES: u64 = 1 << 22;
    /// There are more than 32 flags.
    pub const EXTENDED: u64 = 1 << 30;
}

/// Flags of an open file, in its answer.
pub mod open_flag {
    /// Without the page cache.
    pub const DIRECT: u32 = 1 << 0;
    /// Nothing is asked when it is closed.
    pub const NO_FLUSH: u32 = 1 << 5;
    /// Direct writes of the file at a time, several.
    pub const PARALLEL_WRITES: u32 = 1 << 6;
}

/// `O_DSYNC`, which `O_SYNC` has too.
const O_DSYNC: u32 = 0o10000;
/// `FATTR_SIZE`, `FATTR_FH`, and what else of SETATTR is a change that a block device takes.
const SIZE: u32 = 1 << 3;
const HANDLE: u32 = 1 << 6;
const TIMES: u32 = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10;
/// `FALLOC_FL_KEEP_SIZE`, `FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_ZERO_RANGE`.
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;
const ZERO_RANGE: u32 = 16;
/// `SEEK_DATA` and `SEEK_HOLE`.
const SEEK_DATA: u32 = 3;
const SEEK_HOLE: u32 = 4;

/// What the kernel asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Begin.
    Init {
        /// The kernel's version.
        major: u32,
        /// Its minor version.
        minor: u32,
        /// How far it wants to read ahead.
        readahead: u32,
        /// What it can do.
        flags: u64,
    },
    /// Attributes.
    Attributes,
    /// Change attributes; the size, if it is to be another.
    SetAttributes {
        /// The wanted size.
        size: Option<u64>,
        /// By a file that is open: else it may be one that is being opened, and emptied by that.
        is_open: bool,
        /// Whether something is to be changed that can't be.
        others: bool,
    },
    /// Open.
    Open,
    /// Read.
    Read {
        /// From there.
        offset: u64,
        /// So many bytes.
        bytes: u32,
    },
    /// Write the payload.
    Write {
        /// From there.
        offset: u64,
        /// So many bytes.
        bytes: u32,
        /// Durable before the answer.
        fua: bool,
    },
    /// Make what was answered durable.
    Flush,
    /// Free, or zero, a range.
    Zero {
        /// From there.
        offset: u64,
        /// So many bytes.
        bytes: u64,
        /// What lies behind the end is left out; else it can't be there.
        keeps_size: bool,
    },
    /// Have room for a range.
    Allocate {
        /// From there.
        offset: u64,
        /// So many bytes.
        bytes: u64,
    },
    /// Where data are, or no data, from there on.
    Seek {
        /// From there.
        offset: u64,
        /// A hole is looked for.
        hole: bool,
    },
    /// The file system's size.
    Size,
    /// Nothing that changes anything: success.
    Nothing,
    /// Nothing, and no answer either.
    Silent,
    /// It can't be done.
    Refused(Errno),
    /// No request: nobody can be answered.
    Wrong,
}

/// A request, and by which number it is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The number.
    pub unique: u64,
    /// What it asks for.
    pub ask: Ask,
}

/// A request as it was read: its begin, and what of it did not fit there.
struct Raw<'a>(&'a [u8], &'a [u8]);

impl Raw<'_> {
    fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let all = self.0.iter().chain(self.1).skip(at);
        let mut bytes = [0; N];
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// A number behind the header; 0 where the request ends before it.
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(IN_HEADER + at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(IN_HEADER + at))
    }
}

/// Bytes that a request has at least behind its header.
const fn least(code: u32) -> usize {
    match code {
        opcode::INIT => 16,
        opcode::SETATTR => 88,
        opcode::READ | opcode::WRITE => 40,
        opcode::FALLOCATE => 32,
        opcode::LSEEK => 24,
        _ => 0,
    }
}

/// Decodes what was read: its first [`HEAD`] bytes, and what came behind them.
pub fn decode(head: &[u8], rest: &[u8]) -> Request {
    let raw = Raw(head, rest);
    let unique = u64::from_le_bytes(raw.bytes(8));
    let [len, code] = [0, 4].map(|at| u32::from_le_bytes(raw.bytes(at)));
    if raw.len() < IN_HEADER || len as usize != raw.len() {
        return Request { unique, ask: Ask::Wrong };
    }
    if raw.len() < IN_HEADER + least(code) {
        return Request { unique, ask: Ask::Refused(Errno::Invalid) };
    }
    let node = u64::from_le_bytes(raw.bytes(16));
    Request { unique, ask: asked(&raw, code, node, rest.len()) }
}

fn asked(raw: &Raw<'_>, code: u32, node: u64, payload: usize) -> Ask {
    match code {
        opcode::INIT => init(raw),
        opcode::DESTROY if node <= ROOT => Ask::Nothing,
        opcode::STATFS if node <= ROOT => Ask::Size,
        opcode::SYNCFS if node <= ROOT => Ask::Flush,
        opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => Ask::Silent,
        opcode::LOOKUP => Ask::Refused(Errno::NotADirectory),
        _ if node != ROOT => Ask::Refused(Errno::Unknown),
        opcode::GETATTR => Ask::Attributes,
        opcode::SETATTR => {
            let valid = raw.u32(0);
            let size = (valid & SIZE != 0).then(|| raw.u64(16));
            let (is_open, others) = (valid & HANDLE != 0, valid & !(SIZE | TIMES) != 0);
            Ask::SetAttributes { size, is_open, others }
        }
        opcode::OPEN => Ask::Open,
        opcode::READ => Ask::Read { offset: raw.u64(8), bytes: raw.u32(16) },
        opcode::WRITE if raw.u32(16) as usize == payload => {
            let fua = raw.u32(32) & O_DSYNC != 0;
            Ask::Write { offset: raw.u64(8), bytes: raw.u32(16), fua }
        }
        opcode::WRITE => Ask::Refused(Errno::Invalid),
        opcode::FSYNC => Ask::Flush,
        opcode::FALLOCATE => allocate(raw),
        opcode::LSEEK => match raw.u32(16) {
            SEEK_DATA => Ask::Seek { offset: raw.u64(8), hole: false },
            SEEK_HOLE => Ask::Seek { offset: raw.u64(8), hole: true },
            _ => Ask::Refused(Errno::Invalid),
        },
        opcode::RELEASE | opcode::ACCESS => Ask::Nothing,
        // FLUSH too: closing makes nothing durable.
        _ => Ask::Refused(Errno::Unknown),
    }
}

fn init(raw: &Raw<'_>) -> Ask {
    let low = u64::from(raw.u32(12));
    let high = if low & init_flag::EXTENDED != 0 { u64::from(raw.u32(16)) } else { 0 };
    let (major, minor, readahead) = (raw.u32(0), raw.u32(4), raw.u32(8));
    Ask::Init { major, minor, readahead, flags: high << 32 | low }
}

fn allocate(raw: &Raw<'_>) -> Ask {
    let (offset, bytes) = (raw.u64(8), raw.u64(16));
    match raw.u32(24) {
        mode if mode == PUNCH_HOLE | KEEP_SIZE => Ask::Zero { offset, bytes, keeps_size: true },
        mode if mode & !KEEP_SIZE == ZERO_RANGE => {
            Ask::Zero { offset, bytes, keeps_size: mode & KEEP_SIZE != 0 }
        }
        mode if mode & !KEEP_SIZE == 0 => Ask::Allocate { offset, bytes },
        _ => Ask::Refused(Errno::Unsupported),
    }
}

/// An answer without payload, in place.
#[derive(Clone, Copy)]
pub struct Answer {
    bytes: [u8; ANSWER],
    len: usize,
}

impl Ask {
    /// Whether it asks for what the volume holds, or changes that.
    pub const fn is_of_volume(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. } | Self::Zero { .. } | Self::Flush)
    }
}

impl Answer {
    fn new(unique: u64, error: i32) -> Self {
        let mut own = Self { bytes: [0; ANSWER], len: OUT_HEADER };
        own.bytes[4..8].copy_from_slice(&error.to_le_bytes());
        own.bytes[8..16].copy_from_slice(&unique.to_le_bytes());
        own.with(&[])
    }

    /// Says how long it is.
    fn with(mut self, more: &[u8]) -> Self {
        self.bytes[self.len..self.len + more.len()].copy_from_slice(more);
        self.len += more.len();
        self.bytes[..4].copy_from_slice(&(self.len as u32).to_le_bytes());
        self
    }

    fn u16(self, number: u16) -> Self {
        self.with(&number.to_le_bytes())
    }

    fn u32(self, number: u32) -> Self {
        self.with(&number.to_le_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.with(&number.to_le_bytes())
    }

    fn zeros(self, count: usize) -> Self {
        self.with(&[0; ANSWER][..count])
    }

    /// Success.
    pub fn done(unique: u64) -> Self {
        Self::new(unique, 0)
    }

    /// An error.
    pub fn refused(unique: u64, error: Errno) -> Self {
        Self::new(unique, -(error as i32))
    }

    /// The header before so many bytes of data.
    pub fn data(unique: u64, bytes: usize) -> Self {
        let mut own = Self::done(unique);
        own.bytes[..4].copy_from_slice(&((OUT_HEADER + bytes) as u32).to_le_bytes());
        own
    }

    /// So many bytes were written.
    pub fn written(unique: u64, bytes: u32) -> Self {
        Self::done(unique).u32(bytes).u32(0)
    }

    /// It is open: `fuse_open_out`.
    pub fn opened(unique: u64, flags: u32) -> Self {
        Self::done(unique).u64(0).u32(flags).u32(0)
    }

    /// That place was found: `fuse_lseek_out`.
    pub fn place(unique: u64, offset: u64) -> Self {
        Self::done(unique).u64(offset)
    }

    /// `fuse_init_out`.
    pub fn init(unique: u64, terms: &Terms) -> Self {
        let Terms { minor, readahead, flags, background, bytes_most } = *terms;
        Self::done(unique)
            .u32(MAJOR)
            .u32(minor)
            .u32(readahead)
            .u32(flags as u32)
            .u16(background)
            .u16(background / 4 * 3)
            .u32(bytes_most)
            .u32(1)
            .u16((bytes_most / 4096) as u16)
            .u16(0)
            .u32((flags >> 32) as u32)
            .zeros(28)
    }

    /// `fuse_attr_out`: they count for no time, as the size may change.
    pub fn attributes(unique: u64, file: &Attributes) -> Self {
        let Attributes { bytes, seconds, mode, uid, gid } = *file;
        let times = [seconds; 3];
        let own = Self::done(unique).zeros(16).u64(ROOT).u64(bytes).u64(bytes.div_ceil(512));
        let own = times.into_iter().fold(own, Self::u64).zeros(12);
        own.u32(0o100_000 | mode).u32(1).u32(uid).u32(gid).u32(0).u32(4096).u32(0)
    }

    /// `fuse_statfs_out` of a file system that is full with its one file. A loop device over the
    /// file takes `unit` for the bytes of which it gives up whole ones (`f_bsize`; Linux's
    /// drivers/block/loop.c); the size is counted in others (`f_frsize`).
    pub fn size(unique: u64, bytes: u64, unit: u32) -> Self {
        let own = Self::done(unique).u64(bytes.div_ceil(4096)).u64(0).u64(0).u64(1).u64(0);
        own.u32(unit).u32(255).u32(4096).zeros(28)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// What an INIT comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The minor version.
    pub minor: u32,
    /// How far the kernel reads ahead.
    pub readahead: u32,
    /// What both can do.
    pub flags: u64,
    /// Requests under way for which nobody waits.
    pub background: u16,
    /// Most bytes of a read or a write.
    pub bytes_most: u32,
}

/// What the file looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Its size.
    pub bytes: u64,
    /// When it was made, in seconds of Unix time.
    pub seconds: u64,
    /// Who may read and write it.
    pub mode: u32,
    /// Whose it is.
    pub uid: u32,
    /// Whose group's.
    pub gid: u32,
}
