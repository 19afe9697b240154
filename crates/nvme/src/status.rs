//! How a command ended: status code type, status code, do-not-retry.
//!
//! Base, section 3.3.3.2.1 (Status Field) and figures 93 to 102; NVM, section 3.

use core::fmt;

/// A status field without the phase tag: bits 14:0 of what a completion carries above it. Bits 7:0
/// are the code, bits 10:8 its type, bits 12:11 the retry delay index, bit 13 "more", bit 14
/// "do not retry".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u16);

const GENERIC: u16 = 0;
const COMMAND: u16 = 1 << 8;
const MEDIA: u16 = 2 << 8;
const PATH: u16 = 3 << 8;
const DO_NOT_RETRY: u16 = 1 << 14;

impl Status {
    /// Done.
    pub const SUCCESS: Self = Self(GENERIC);
    /// The opcode is not known or not supported.
    pub const INVALID_OPCODE: Self = Self(GENERIC | 0x01).lasting();
    /// A field of the command is wrong.
    pub const INVALID_FIELD: Self = Self(GENERIC | 0x02).lasting();
    /// The command identifier is in use.
    pub const COMMAND_ID_CONFLICT: Self = Self(GENERIC | 0x03);
    /// The data could not be transferred.
    pub const DATA_TRANSFER: Self = Self(GENERIC | 0x04);
    /// Something inside went wrong; it may be tried again.
    pub const INTERNAL: Self = Self(GENERIC | 0x06);
    /// Aborted because the host asked for it.
    pub const ABORTED: Self = Self(GENERIC | 0x07);
    /// Aborted because its queue was deleted.
    pub const ABORTED_QUEUE: Self = Self(GENERIC | 0x08);
    /// The other half of a fused operation failed.
    pub const ABORTED_FAILED_FUSED: Self = Self(GENERIC | 0x09);
    /// The other half of a fused operation is missing.
    pub const ABORTED_MISSING_FUSED: Self = Self(GENERIC | 0x0a);
    /// There is no such namespace, or it is not this controller's.
    pub const INVALID_NAMESPACE: Self = Self(GENERIC | 0x0b).lasting();
    /// The command is not possible now: no connect before, or one too many.
    pub const SEQUENCE_ERROR: Self = Self(GENERIC | 0x0c).lasting();
    /// The SGL's length is not that of the data.
    pub const SGL_LENGTH: Self = Self(GENERIC | 0x0f).lasting();
    /// An SGL descriptor has a type that is not supported.
    pub const SGL_TYPE: Self = Self(GENERIC | 0x11).lasting();
    /// More blocks than are written as one.
    pub const ATOMIC_UNIT: Self = Self(GENERIC | 0x14).lasting();
    /// The offset of in-capsule data is wrong.
    pub const SGL_OFFSET: Self = Self(GENERIC | 0x16).lasting();
    /// Another host has this host identifier in another form.
    pub const HOST_ID_INCONSISTENT: Self = Self(GENERIC | 0x18).lasting();
    /// The keep-alive timer ran out.
    pub const KEEP_ALIVE_EXPIRED: Self = Self(GENERIC | 0x19);
    /// The keep-alive timeout is not possible.
    pub const KEEP_ALIVE_INVALID: Self = Self(GENERIC | 0x1a).lasting();
    /// Writing is not allowed.
    pub const WRITE_PROTECTED: Self = Self(GENERIC | 0x20).lasting();
    /// Data was damaged on its way; it may be sent again.
    pub const TRANSIENT_TRANSPORT: Self = Self(GENERIC | 0x22);
    /// Blocks lie behind the end of the namespace.
    pub const LBA_RANGE: Self = Self(GENERIC | 0x80).lasting();
    /// There is no room.
    pub const CAPACITY: Self = Self(GENERIC | 0x81).lasting();
    /// The namespace can't be used just now.
    pub const NOT_READY: Self = Self(GENERIC | 0x82);

    /// The log page is not known.
    pub const INVALID_LOG_PAGE: Self = Self(COMMAND | 0x09).lasting();
    /// The feature can't be saved.
    pub const FEATURE_NOT_SAVEABLE: Self = Self(COMMAND | 0x0d).lasting();
    /// The feature can't be changed.
    pub const FEATURE_NOT_CHANGEABLE: Self = Self(COMMAND | 0x0e).lasting();
    /// More asynchronous event requests than the controller takes.
    pub const ASYNC_EVENT_LIMIT: Self = Self(COMMAND | 0x05).lasting();
    /// Connect: the record format is not known.
    pub const CONNECT_FORMAT: Self = Self(COMMAND | 0x80).lasting();
    /// Connect: the controller has this host already, or is of another.
    pub const CONNECT_BUSY: Self = Self(COMMAND | 0x81);
    /// Connect: a parameter is wrong; the result says which ([`crate::fabrics::Wrong`]).
    pub const CONNECT_PARAMETERS: Self = Self(COMMAND | 0x82).lasting();
    /// Connect: discovery has to be done again.
    pub const CONNECT_RESTART_DISCOVERY: Self = Self(COMMAND | 0x83).lasting();
    /// Connect: the host is not allowed to.
    pub const CONNECT_HOST: Self = Self(COMMAND | 0x84).lasting();
    /// The discovery log page changed; read it from its begin.
    pub const DISCOVER_RESTART: Self = Self(COMMAND | 0x90);
    /// The host has to authenticate itself first.
    pub const AUTHENTICATION_REQUIRED: Self = Self(COMMAND | 0x91).lasting();

    /// A block could not be written.
    pub const WRITE_FAULT: Self = Self(MEDIA | 0x80);
    /// A block could not be read, and there is nothing to make it from.
    pub const UNRECOVERED_READ: Self = Self(MEDIA | 0x81).lasting();
    /// The bytes are not those that they were compared to.
    pub const COMPARE_FAILURE: Self = Self(MEDIA | 0x85).lasting();

    /// The path broke inside the controller: another may work.
    pub const PATH_INTERNAL: Self = Self(PATH);

    /// The same, and trying again would not help.
    pub const fn lasting(self) -> Self {
        Self(self.0 | DO_NOT_RETRY)
    }

    /// The same, and trying again may help.
    pub const fn passing(self) -> Self {
        Self(self.0 & !DO_NOT_RETRY)
    }

    /// Whether the command did what it should.
    pub const fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }

    /// Whether trying again would not help.
    pub const fn is_lasting(self) -> bool {
        self.0 & DO_NOT_RETRY != 0
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = (self.0 >> 8 & 7, self.0 & 0xff);
        let retry = if self.is_lasting() { ", do not retry" } else { "" };
        write!(f, "status type {kind} code {code:#04x}{retry}")
    }
}
