//! How a command ended: status code type, status code, do-not-retry.
//!
//! Base, section 3.3.3.2.1 (Status Field) and figures 93 to 102; NVM, section 3.
//!
//! Invariant: every status has words: the specification's name of it, or whose status it is.

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
    /// The controller gave it up to do something else first; it may be sent again.
    pub const INTERRUPTED: Self = Self(GENERIC | 0x21);
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

    /// That controller is being reset already.
    pub const RESET_IN_PROGRESS: Self = Self(COMMAND | 0x3f);
    /// The page of resets is full of what was not read.
    pub const RESETS_UNREAD: Self = Self(COMMAND | 0x40);
    /// More controllers are being reset than can be at a time.
    pub const RESETS_MOST: Self = Self(COMMAND | 0x41);

    /// The path broke inside the controller: another may work.
    pub const PATH_INTERNAL: Self = Self(PATH);
    /// This controller has no way to the namespace any more.
    pub const ACCESS_LOST: Self = Self(PATH | 0x01);
    /// This controller has no way to the namespace now.
    pub const ACCESS_INACCESSIBLE: Self = Self(PATH | 0x02);
    /// This controller's way to the namespace is changing.
    pub const ACCESS_CHANGES: Self = Self(PATH | 0x03);

    /// The same, and trying again would not help.
    pub const fn lasting(self) -> Self {
        Self(self.0 | DO_NOT_RETRY)
    }

    /// The same, and trying again may help.
    pub const fn passing(self) -> Self {
        Self(self.0 & !DO_NOT_RETRY)
    }

    /// Whether it is that one, whether or not trying again would help.
    pub const fn is(self, other: Self) -> bool {
        self.0 & 0x7ff == other.0 & 0x7ff
    }

    /// Whether the command did what it should.
    pub const fn is_success(self) -> bool {
        self.is(Self::SUCCESS)
    }

    /// Whether trying again would not help.
    pub const fn is_lasting(self) -> bool {
        self.0 & DO_NOT_RETRY != 0
    }
}

/// Names of generic statuses, from 00h (Base, figure 95); empty ones are reserved.
const GENERIC_WORDS: [&str; 0x25] = [
    "Successful Completion",
    "Invalid Command Opcode",
    "Invalid Field in Command",
    "Command ID Conflict",
    "Data Transfer Error",
    "Commands Aborted due to Power Loss Notification",
    "Internal Error",
    "Command Abort Requested",
    "Command Aborted due to SQ Deletion",
    "Command Aborted due to Failed Fused Command",
    "Command Aborted due to Missing Fused Command",
    "Invalid Namespace or Format",
    "Command Sequence Error",
    "Invalid SGL Segment Descriptor",
    "Invalid Number of SGL Descriptors",
    "Data SGL Length Invalid",
    "Metadata SGL Length Invalid",
    "SGL Descriptor Type Invalid",
    "Invalid Use of Controller Memory Buffer",
    "PRP Offset Invalid",
    "Atomic Write Unit Exceeded",
    "Operation Denied",
    "SGL Offset Invalid",
    "",
    "Host Identifier Inconsistent Format",
    "Keep Alive Timer Expired",
    "Keep Alive Timeout Invalid",
    "Command Aborted due to Preempt and Abort",
    "Sanitize Failed",
    "Sanitize In Progress",
    "SGL Data Block Granularity Invalid",
    "Command Not Supported for Queue in CMB",
    "Namespace is Write Protected",
    "Command Interrupted",
    "Transient Transport Error",
    "Command Prohibited by Command and Feature Lockdown",
    "Admin Command Media Not Ready",
];

/// The same of command sets, from 80h (Base, figure 96; NVM, section 3.1).
const GENERIC_SET_WORDS: [&str; 10] = [
    "LBA Out of Range",
    "Capacity Exceeded",
    "Namespace Not Ready",
    "Reservation Conflict",
    "Format In Progress",
    "Invalid Value Size",
    "Invalid Key Size",
    "KV Key Does Not Exist",
    "Unrecovered Error",
    "Key Exists",
];

/// Names of statuses of some commands, from 00h (Base, figure 97).
const COMMAND_WORDS: [&str; 0x2e] = [
    "Completion Queue Invalid",
    "Invalid Queue Identifier",
    "Invalid Queue Size",
    "Abort Command Limit Exceeded",
    "",
    "Asynchronous Event Request Limit Exceeded",
    "Invalid Firmware Slot",
    "Invalid Firmware Image",
    "Invalid Interrupt Vector",
    "Invalid Log Page",
    "Invalid Format",
    "Firmware Activation Requires Conventional Reset",
    "Invalid Queue Deletion",
    "Feature Identifier Not Saveable",
    "Feature Not Changeable",
    "Feature Not Namespace Specific",
    "Firmware Activation Requires NVM Subsystem Reset",
    "Firmware Activation Requires Controller Level Reset",
    "Firmware Activation Requires Maximum Time Violation",
    "Firmware Activation Prohibited",
    "Overlapping Range",
    "Namespace Insufficient Capacity",
    "Namespace Identifier Unavailable",
    "",
    "Namespace Already Attached",
    "Namespace Is Private",
    "Namespace Not Attached",
    "Thin Provisioning Not Supported",
    "Controller List Invalid",
    "Device Self-test In Progress",
    "Boot Partition Write Prohibited",
    "Invalid Controller Identifier",
    "Invalid Secondary Controller State",
    "Invalid Number of Controller Resources",
    "Invalid Resource Identifier",
    "Sanitize Prohibited While Persistent Memory Region is Enabled",
    "ANA Group Identifier Invalid",
    "ANA Attach Failed",
    "Insufficient Capacity",
    "Namespace Attachment Limit Exceeded",
    "Prohibition of Command Execution Not Supported",
    "I/O Command Set Not Supported",
    "I/O Command Set Not Enabled",
    "I/O Command Set Combination Rejected",
    "Invalid I/O Command Set",
    "Identifier Unavailable",
];

/// The same from 3fh (Base 2.3, figure 103).
const RESET_WORDS: [&str; 3] = [
    "Cross-Controller Reset in Progress",
    "Cross-Controller Reset Log Page Full",
    "Cross-Controller Reset Limit Exceeded",
];

/// The same of command sets and of fabrics, from 80h, which use the same codes for different things
/// (Base, figures 98 and 99; NVM, section 3.1).
const COMMAND_SET_WORDS: [&str; 0x12] = [
    "Conflicting Attributes, or Connect Incompatible Format",
    "Invalid Protection Information, or Connect Controller Busy",
    "Attempted Write to Read Only Range, or Connect Invalid Parameters",
    "Command Size Limit Exceeded, or Connect Restart Discovery",
    "Connect Invalid Host",
    "Invalid Queue Type",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "Discover Restart",
    "Authentication Required",
];

/// Names of errors of media and of data's integrity, from 80h (Base, figure 100; NVM, section 3.1).
const MEDIA_WORDS: [&str; 9] = [
    "Write Fault",
    "Unrecovered Read Error",
    "End-to-end Guard Check Error",
    "End-to-end Application Tag Check Error",
    "End-to-end Reference Tag Check Error",
    "Compare Failure",
    "Access Denied",
    "Deallocated or Unwritten Logical Block",
    "End-to-end Storage Tag Check Error",
];

/// Names of statuses of paths, from 00h (Base, figure 101).
const PATH_WORDS: [&str; 4] = [
    "Internal Path Error",
    "Asymmetric Access Persistent Loss",
    "Asymmetric Access Inaccessible",
    "Asymmetric Access Transition",
];

impl Status {
    /// The code's type: 0 generic, 1 the command's, 2 the media's, 3 the path's, 7 the vendor's.
    pub const fn kind(self) -> u16 {
        self.0 >> 8 & 7
    }

    /// The code.
    pub const fn code(self) -> u8 {
        self.0 as u8
    }

    /// What the specification calls it, without its number: `Feature Not Changeable`. Of codes that
    /// it leaves to vendors, or to later, that is said instead.
    pub fn words(self) -> &'static str {
        let code = usize::from(self.code());
        let set = code.wrapping_sub(0x80);
        let word = match (self.kind(), code) {
            (7, _) | (_, 0xc0..) => Some(&"Vendor Specific"),
            (0, ..0x80) => GENERIC_WORDS.get(code),
            (0, _) => GENERIC_SET_WORDS.get(set),
            (1, 0x3f..0x80) => RESET_WORDS.get(code - 0x3f),
            (1, ..0x80) => COMMAND_WORDS.get(code),
            (1, _) => COMMAND_SET_WORDS.get(set),
            (2, _) => MEDIA_WORDS.get(set),
            (3, 0x60) => Some(&"Controller Pathing Error"),
            (3, 0x70) => Some(&"Host Pathing Error"),
            (3, 0x71) => Some(&"Command Aborted By Host"),
            (3, _) => PATH_WORDS.get(code),
            _ => None,
        };
        word.filter(|word| !word.is_empty()).copied().unwrap_or("a status that is reserved")
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = (self.0 >> 8 & 7, self.0 & 0xff);
        let retry = if self.is_lasting() { ", do not retry" } else { "" };
        write!(f, "status type {kind} code {code:#04x}{retry}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each code that has a name of its own here is called so by the specification.
    #[test]
    fn a_status_is_called_what_the_specification_calls_it() {
        let table = [
            (Status::SUCCESS, "Successful Completion"),
            (Status::INVALID_OPCODE, "Invalid Command Opcode"),
            (Status::INVALID_FIELD, "Invalid Field in Command"),
            (Status::ABORTED_MISSING_FUSED, "Command Aborted due to Missing Fused Command"),
            (Status::SEQUENCE_ERROR, "Command Sequence Error"),
            (Status::ATOMIC_UNIT, "Atomic Write Unit Exceeded"),
            (Status::SGL_OFFSET, "SGL Offset Invalid"),
            (Status::HOST_ID_INCONSISTENT, "Host Identifier Inconsistent Format"),
            (Status::KEEP_ALIVE_INVALID, "Keep Alive Timeout Invalid"),
            (Status::WRITE_PROTECTED, "Namespace is Write Protected"),
            (Status::INTERRUPTED, "Command Interrupted"),
            (Status::TRANSIENT_TRANSPORT, "Transient Transport Error"),
            (Status(0x24), "Admin Command Media Not Ready"),
            (Status::LBA_RANGE, "LBA Out of Range"),
            (Status::NOT_READY, "Namespace Not Ready"),
            (Status::ASYNC_EVENT_LIMIT, "Asynchronous Event Request Limit Exceeded"),
            (Status::INVALID_LOG_PAGE, "Invalid Log Page"),
            (Status::FEATURE_NOT_SAVEABLE, "Feature Identifier Not Saveable"),
            (Status::FEATURE_NOT_CHANGEABLE, "Feature Not Changeable"),
            (Status(0x11d), "Device Self-test In Progress"),
            (Status(0x12d), "Identifier Unavailable"),
            (Status::RESETS_MOST, "Cross-Controller Reset Limit Exceeded"),
            (Status::CONNECT_HOST, "Connect Invalid Host"),
            (Status::DISCOVER_RESTART, "Discover Restart"),
            (Status::AUTHENTICATION_REQUIRED, "Authentication Required"),
            (Status::WRITE_FAULT, "Write Fault"),
            (Status::UNRECOVERED_READ, "Unrecovered Read Error"),
            (Status::COMPARE_FAILURE, "Compare Failure"),
            (Status::PATH_INTERNAL, "Internal Path Error"),
            (Status(0x371), "Command Aborted By Host"),
            (Status(0x1c0), "Vendor Specific"),
            (Status(0x700), "Vendor Specific"),
            (Status(0x17), "a status that is reserved"),
            (Status(0x200), "a status that is reserved"),
            (Status(0x400), "a status that is reserved"),
        ];
        for (status, words) in table {
            assert_eq!(status.words(), words, "{status:?}");
            assert_eq!(status.lasting().words(), words, "{status:?}");
        }
        assert_eq!(Status::FEATURE_NOT_CHANGEABLE.0, 0x410e, "as Linux gives it to programs");
    }

    #[test]
    fn every_status_has_words() {
        assert!((0..=u16::MAX).all(|status| !Status(status).words().is_empty()));
    }
}
