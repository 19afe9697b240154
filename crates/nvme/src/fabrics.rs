//! Fabrics commands: connect a queue, read and write properties, disconnect.
//!
//! Base, section 6 (Fabrics Command Set), figures 376 to 389; properties in section 3.1.3.

use crate::bytes::{array_at, put, u16_at, u32_at, u64_at};
use crate::command::{COMMAND_BYTES, Command, FABRICS};
use crate::nqn::{NameError, Nqn};
use crate::sgl::Sgl;
use crate::status::Status;

/// Types of fabrics commands.
pub mod kind {
    /// Property Set.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Connect.
    pub const CONNECT: u8 = 0x01;
    /// Property Get.
    pub const PROPERTY_GET: u8 = 0x04;
    /// Authentication Send.
    pub const AUTHENTICATION_SEND: u8 = 0x05;
    /// Authentication Receive.
    pub const AUTHENTICATION_RECEIVE: u8 = 0x06;
    /// Disconnect.
    pub const DISCONNECT: u8 = 0x08;
}

/// Offsets of properties.
pub mod property {
    /// Controller Capabilities, 8 bytes.
    pub const CAPABILITIES: u32 = 0x00;
    /// Version, 4 bytes.
    pub const VERSION: u32 = 0x08;
    /// Controller Configuration, 4 bytes.
    pub const CONFIGURATION: u32 = 0x14;
    /// Controller Status, 4 bytes.
    pub const STATUS: u32 = 0x1c;
    /// NVM Subsystem Reset, 4 bytes.
    pub const SUBSYSTEM_RESET: u32 = 0x20;
    /// Controller Ready Timeouts, 4 bytes.
    pub const READY_TIMEOUTS: u32 = 0x68;
}

/// The controller that a host asks for if it takes any (Base, section 6.3, CNTLID).
pub const ANY_CONTROLLER: u16 = 0xffff;
/// Bytes of the data of a connect.
pub const CONNECT_DATA_BYTES: usize = 1024;

/// A connect, without its data (Base, figure 378).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connect {
    /// The format of the rest: 0.
    pub format: u16,
    /// The queue: 0 is the admin queue.
    pub queue: u16,
    /// Entries of the queue, less one.
    pub entries_less_one: u16,
    /// Attributes: bits 1:0 priority, bit 2 no submission queue flow control, bit 3 deletion of I/O
    /// queues is supported.
    pub attributes: u8,
    /// The keep-alive timeout in milliseconds, 0: none. On the admin queue only.
    pub keep_alive_ms: u32,
}

/// Bit of [`Connect::attributes`]: completions say nothing of the submission queue's head.
pub const NO_FLOW_CONTROL: u8 = 1 << 2;

impl Connect {
    /// Reads a connect, which the command must be.
    pub fn decode(command: &Command) -> Self {
        let bytes = &command.0;
        Self {
            format: u16_at(bytes, 40),
            queue: u16_at(bytes, 42),
            entries_less_one: u16_at(bytes, 44),
            attributes: bytes[46],
            keep_alive_ms: u32_at(bytes, 48),
        }
    }

    /// Writes a connect whose data is told by `sgl`.
    pub fn encode(&self, id: u16, sgl: Sgl) -> Command {
        let mut bytes = fabrics(kind::CONNECT, id, sgl);
        put(&mut bytes, 40, &self.format.to_le_bytes());
        put(&mut bytes, 42, &self.queue.to_le_bytes());
        put(&mut bytes, 44, &self.entries_less_one.to_le_bytes());
        bytes[46] = self.attributes;
        put(&mut bytes, 48, &self.keep_alive_ms.to_le_bytes());
        Command(bytes)
    }
}

/// The data of a connect (Base, figure 379).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectData {
    /// The host's identifier, the same for all its names.
    pub host_id: [u8; 16],
    /// The controller asked for.
    pub controller: u16,
    /// The subsystem asked for.
    pub subsystem: Nqn,
    /// The host; none: it gave no name. A host is to have one (Base, section 4.5); initiators of
    /// SPDK that were told none leave the field zero.
    pub host: Option<Nqn>,
}

/// What is wrong with a connect: the result of [`crate::status::Status::CONNECT_PARAMETERS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Where the parameter begins.
    pub offset: u16,
    /// In the data; else in the command.
    pub in_data: bool,
}

/// What the specification calls the status of a refused Connect, with the parameter that is wrong
/// where the result of its completion says so. Fabrics commands have their own meanings of codes
/// that I/O commands have, too (Base, figure 105).
pub fn refusal(status: Status, result: u64) -> alloc::string::String {
    let words = match status.passing() {
        own if own == Status::CONNECT_FORMAT.passing() => "Incompatible Format",
        own if own == Status::CONNECT_BUSY.passing() => "Controller Busy",
        own if own == Status::CONNECT_PARAMETERS.passing() => {
            let wrong = Wrong::of_result(result).words();
            return alloc::format!("Connect Invalid Parameters: {wrong} is not accepted there");
        }
        own if own == Status::CONNECT_RESTART_DISCOVERY.passing() => "Connect Restart Discovery",
        own if own == Status::CONNECT_HOST.passing() => {
            "Connect Invalid Host: the subsystem is not for this host"
        }
        _ => status.words(),
    };
    words.into()
}

impl Wrong {
    /// The format field.
    pub const FORMAT: Self = Self { offset: 40, in_data: false };
    /// The queue.
    pub const QUEUE: Self = Self { offset: 42, in_data: false };
    /// The queue's size.
    pub const ENTRIES: Self = Self { offset: 44, in_data: false };
    /// The controller.
    pub const CONTROLLER: Self = Self { offset: 16, in_data: true };
    /// The subsystem's name.
    pub const SUBSYSTEM: Self = Self { offset: 256, in_data: true };
    /// The host's name.
    pub const HOST: Self = Self { offset: 512, in_data: true };

    /// Reads the result of the completion.
    pub const fn of_result(result: u64) -> Self {
        Self { offset: result as u16, in_data: result >> 16 & 1 == 1 }
    }

    /// What it is, for people.
    pub fn words(self) -> &'static str {
        const HOST_ID: Wrong = Wrong { offset: 0, in_data: true };
        match self {
            Self::FORMAT => "the format",
            Self::QUEUE => "the queue",
            Self::ENTRIES => "the queue's size",
            Self::CONTROLLER => "the controller",
            Self::SUBSYSTEM => "the subsystem's NQN",
            Self::HOST => "the host's NQN",
            HOST_ID => "the host's identifier",
            _ => "a parameter",
        }
    }

    /// The result of the completion: bits 15:0 the offset, bit 16 in the data.
    pub fn result(&self) -> u64 {
        u64::from(self.offset) | u64::from(self.in_data) << 16
    }
}

impl ConnectData {
    /// Reads the data of a connect.
    ///
    /// # Errors
    /// Which name is not possible, and why.
    pub fn decode(bytes: &[u8; CONNECT_DATA_BYTES]) -> Result<Self, (Wrong, NameError)> {
        let name = |at| Nqn::decode(&array_at(bytes, at));
        let host = match name(512) {
            Err(NameError::Empty) => Ok(None),
            host => host.map(Some),
        };
        Ok(Self {
            host_id: array_at(bytes, 0),
            controller: u16_at(bytes, 16),
            subsystem: name(256).map_err(|error| (Wrong::SUBSYSTEM, error))?,
            host: host.map_err(|error| (Wrong::HOST, error))?,
        })
    }

    /// Writes the data of a connect.
    pub fn encode(&self) -> [u8; CONNECT_DATA_BYTES] {
        let mut bytes = [0; CONNECT_DATA_BYTES];
        put(&mut bytes, 0, &self.host_id);
        put(&mut bytes, 16, &self.controller.to_le_bytes());
        put(&mut bytes, 256, &self.subsystem.encode());
        if let Some(host) = &self.host {
            put(&mut bytes, 512, &host.encode());
        }
        bytes
    }
}

/// A property that is read or written (Base, figures 383 and 385).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Property {
    /// Where it begins; see [`property`].
    pub offset: u32,
    /// It has 8 bytes, else 4.
    pub wide: bool,
    /// What is to be written.
    pub value: u64,
}

impl Property {
    /// Reads a Property Get or Set, which the command must be; `None`: its size is neither 4 nor 8.
    pub fn decode(command: &Command) -> Option<Self> {
        let bytes = &command.0;
        let wide = match bytes[40] & 7 {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self { offset: u32_at(bytes, 44), wide, value: u64_at(bytes, 48) })
    }

    /// Writes a Property Set, or without a value to set a Property Get.
    pub fn encode(&self, id: u16, set: bool) -> Command {
        let kind = if set { kind::PROPERTY_SET } else { kind::PROPERTY_GET };
        let mut bytes = fabrics(kind, id, Sgl::Other(0));
        bytes[40] = u8::from(self.wide);
        put(&mut bytes, 44, &self.offset.to_le_bytes());
        put(&mut bytes, 48, &self.value.to_le_bytes());
        Command(bytes)
    }
}

/// A fabrics command with nothing but its type, id and descriptor.
fn fabrics(kind: u8, id: u16, sgl: Sgl) -> [u8; COMMAND_BYTES] {
    // The type stands where others have the low byte of a namespace.
    Command::new(FABRICS, id, kind.into(), sgl).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> ConnectData {
        ConnectData {
            host_id: [7; 16],
            controller: ANY_CONTROLLER,
            subsystem: Nqn::new(crate::nqn::DISCOVERY).unwrap(),
            host: Nqn::new("nqn.2026-11.example:host").ok(),
        }
    }

    #[test]
    fn a_connect_is_read_as_it_was_written() {
        let connect = Connect {
            format: 0,
            queue: 3,
            entries_less_one: 127,
            attributes: NO_FLOW_CONTROL,
            keep_alive_ms: 0,
        };
        let sgl = Sgl::InCapsule { offset: 0, length: CONNECT_DATA_BYTES as u32 };
        let command = connect.encode(9, sgl);
        assert_eq!((command.opcode(), command.fabrics_type()), (FABRICS, kind::CONNECT));
        assert_eq!((command.id(), command.sgl(), command.has_sgl()), (9, sgl, true));
        assert_eq!(Connect::decode(&command), connect);
        assert_eq!(ConnectData::decode(&data().encode()), Ok(data()));
    }

    #[test]
    fn a_connect_says_which_name_is_wrong() {
        let mut bytes = data().encode();
        bytes[512] = b'i';
        assert_eq!(ConnectData::decode(&bytes), Err((Wrong::HOST, NameError::Form)));
        bytes[256] = 0;
        assert_eq!(ConnectData::decode(&bytes), Err((Wrong::SUBSYSTEM, NameError::Empty)));
        bytes[256..512].fill(b'n');
        assert_eq!(ConnectData::decode(&bytes), Err((Wrong::SUBSYSTEM, NameError::Long)));
        assert_eq!(Wrong::SUBSYSTEM.result(), 0x1_0100);
    }

    #[test]
    fn a_host_may_have_no_name() {
        let nameless = ConnectData { host: None, ..data() };
        assert_eq!(ConnectData::decode(&nameless.encode()), Ok(nameless.clone()));
        let mut bytes = data().encode();
        bytes[512] = 0;
        assert_eq!(ConnectData::decode(&bytes), Ok(nameless), "the rest means nothing");
    }

    #[test]
    fn properties_are_read_as_they_were_written() {
        for (wide, set) in [(false, false), (true, true)] {
            let property = Property { offset: property::CONFIGURATION, wide, value: 0x46_0001 };
            let command = property.encode(1, set);
            assert_eq!(Property::decode(&command), Some(property));
            assert_eq!(command.fabrics_type() == kind::PROPERTY_SET, set);
        }
        let mut command = Property { offset: 0, wide: true, value: 0 }.encode(1, false);
        command.0[40] = 2;
        assert_eq!(Property::decode(&command), None);
    }
}
