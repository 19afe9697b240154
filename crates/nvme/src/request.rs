//! What is asked of a drive: admin commands that only read, and those that set a power state or say
//! how many queues a host uses and what it wants to be told of.
//!
//! Base, section 3.3.3.1 (figure 86, common command format): opcode, namespace and dwords 10 to 15
//! are the asker's; identifier, queue and where the data lies are those of whoever carries the
//! command.
//!
//! Invariant: no request here changes data, or what a drive is after its next power cycle.

use crate::command::admin;
use crate::identify::{self, cns};
use crate::log::page;
use crate::power::{self, Power};
use crate::reset::{self, Instance};
use crate::smart;

/// All namespaces, and the controller itself (Base, section 3.2.1.5).
pub const EVERY_NAMESPACE: u32 = 0xffff_ffff;

/// The feature that says how many queues there are (Base, figure 317).
const NUMBER_OF_QUEUES: u32 = 0x07;
/// The feature that says which events are told of (Base, figure 317).
const ASYNC_EVENT_CONFIGURATION: u32 = 0x0b;

/// Which way data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// None goes.
    None,
    /// So many bytes come from the drive.
    FromDrive(u32),
}

/// An admin command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What to do; see [`admin`].
    pub opcode: u8,
    /// Of which namespace; 0: of none.
    pub namespace: u32,
    /// Dwords 10 to 15.
    pub dwords: [u32; 6],
    /// Its data.
    pub transfer: Transfer,
}

impl Request {
    /// With these first dwords; the others are zero.
    fn new(opcode: u8, namespace: u32, first: [u32; 2], transfer: Transfer) -> Self {
        let [ten, eleven] = first;
        Self { opcode, namespace, dwords: [ten, eleven, 0, 0, 0, 0], transfer }
    }

    /// What the controller is: [`crate::drive::Controller`] (Base, section 5.17).
    pub fn identify_controller() -> Self {
        Self::identify(cns::CONTROLLER, 0)
    }

    /// What a namespace is: [`crate::drive::Namespace`].
    pub fn identify_namespace(namespace: u32) -> Self {
        Self::identify(cns::NAMESPACE, namespace)
    }

    /// What it is whatever its command set: [`crate::identify::has_no_cache`].
    pub fn identify_independent(namespace: u32) -> Self {
        Self::identify(cns::NAMESPACE_INDEPENDENT, namespace)
    }

    fn identify(cns: u8, namespace: u32) -> Self {
        let transfer = Transfer::FromDrive(identify::BYTES as u32);
        Self::new(admin::IDENTIFY, namespace, [u32::from(cns), 0], transfer)
    }

    /// Namespaces that are active, from the one behind `after` on: as many as an answer has room
    /// for (Base, section 5.17, CNS 02h).
    pub fn active_namespaces(after: u32) -> Self {
        Self::identify(cns::ACTIVE_NAMESPACES, after)
    }

    /// What a namespace is known by: [`crate::drive::Identifiers`].
    pub fn namespace_descriptors(namespace: u32) -> Self {
        Self::identify(cns::NAMESPACE_DESCRIPTORS, namespace)
    }

    /// A part of a log page (Base, section 5.16): `bytes` of it, a multiple of 4, from `offset` on.
    pub fn log(page: u8, offset: u64, bytes: u32) -> Self {
        let less_one = bytes / 4 - 1;
        let ten = u32::from(page) | (less_one & 0xffff) << 16;
        let (low, high) = (offset as u32, (offset >> 32) as u32);
        let dwords = [ten, less_one >> 16, low, high, 0, 0];
        let transfer = Transfer::FromDrive(bytes);
        Self { opcode: admin::GET_LOG_PAGE, namespace: EVERY_NAMESPACE, dwords, transfer }
    }

    /// That so many I/O queues are used, 1 to 65535 (Base, section 5.27.1.5). The result's low half
    /// is how many submission queues there may be, its high half how many completion queues, each
    /// less one.
    pub fn set_queues(count: u16) -> Self {
        let less_one = u32::from(count.saturating_sub(1));
        let first = [NUMBER_OF_QUEUES, less_one | less_one << 16];
        Self::new(admin::SET_FEATURES, 0, first, Transfer::None)
    }

    /// That the host is there (Base, section 5.18).
    pub fn keep_alive() -> Self {
        Self::new(admin::KEEP_ALIVE, 0, [0, 0], Transfer::None)
    }

    /// An event, answered once there is one (Base, section 5.2).
    pub fn event() -> Self {
        Self::new(admin::ASYNC_EVENT_REQUEST, 0, [0, 0], Transfer::None)
    }

    /// That another controller of this host's is ended (Base 2.3, section 5.4.3); the result is
    /// [`reset::IMMEDIATE`] or not.
    pub fn reset(controller: Instance) -> Self {
        let none = Self::new(admin::CROSS_CONTROLLER_RESET, 0, [0, 0], Transfer::None);
        Self { dwords: controller.dwords(), ..none }
    }

    /// What has become of such resets, without what is over from now on.
    pub fn resets(bytes: u32) -> Self {
        let ten = u32::from(page::RESETS) | u32::from(reset::REMOVE) << 8 | (bytes / 4 - 1) << 16;
        let transfer = Transfer::FromDrive(bytes);
        Self::new(admin::GET_LOG_PAGE, EVERY_NAMESPACE, [ten, 0], transfer)
    }

    /// That these events are told of: a bit for each, as OAES has them (Base, section 5.27.1.8).
    pub fn set_events(events: u32) -> Self {
        Self::new(admin::SET_FEATURES, 0, [ASYNC_EVENT_CONFIGURATION, events], Transfer::None)
    }

    /// How the drive is: [`crate::smart::Smart`] (Base, section 5.16). The event that told of a
    /// warning, if one did, is over with that: the drive may tell of the next.
    pub fn smart_log() -> Self {
        let dwords_less_one = (smart::BYTES / 4 - 1) as u32;
        let ten = u32::from(page::HEALTH) | dwords_less_one << 16;
        let transfer = Transfer::FromDrive(smart::BYTES as u32);
        Self::new(admin::GET_LOG_PAGE, EVERY_NAMESPACE, [ten, 0], transfer)
    }

    /// Its power state: the result is a [`Power`] (Base, section 5.15).
    pub fn get_power_state() -> Self {
        Self::new(admin::GET_FEATURES, 0, [u32::from(power::FEATURE), 0], Transfer::None)
    }

    /// To be in a power state, until it is told another or loses power (Base, section 5.27; the
    /// value is not saved). `None`: no drive can have a state of that number.
    pub fn set_power_state(state: u8) -> Option<Self> {
        let value = Power { state, workload: 0 }.encode()?;
        let first = [u32::from(power::FEATURE), value];
        Some(Self::new(admin::SET_FEATURES, 0, first, Transfer::None))
    }

    /// Bytes that come from the drive.
    pub const fn bytes(&self) -> u32 {
        match self.transfer {
            Transfer::None => 0,
            Transfer::FromDrive(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that nvme-cli sends for the same (`nvme --verbose`), and the document has.
    #[test]
    fn requests_are_what_the_document_says() {
        let table = [
            (Request::identify_controller(), 0x06, 0, [1, 0], 4096),
            (Request::identify_namespace(7), 0x06, 7, [0, 0], 4096),
            (Request::smart_log(), 0x02, 0xffff_ffff, [0x007f_0002, 0], 512),
            (Request::get_power_state(), 0x0a, 0, [2, 0], 0),
            (Request::set_power_state(31).unwrap(), 0x09, 0, [2, 31], 0),
            (Request::active_namespaces(3), 0x06, 3, [2, 0], 4096),
            (Request::namespace_descriptors(3), 0x06, 3, [3, 0], 4096),
            (Request::log(0x70, 0, 1024), 0x02, 0xffff_ffff, [0x00ff_0070, 0], 1024),
            (Request::set_queues(4), 0x09, 0, [7, 0x0003_0003], 0),
            (Request::keep_alive(), 0x18, 0, [0, 0], 0),
            (Request::event(), 0x0c, 0, [0, 0], 0),
            (Request::set_events(0x900), 0x09, 0, [0x0b, 0x900], 0),
        ];
        for (request, opcode, namespace, first, bytes) in table {
            assert_eq!((request.opcode, request.namespace), (opcode, namespace), "{request:?}");
            assert_eq!((&request.dwords[..2], &request.dwords[2..]), (&first[..], &[0; 4][..]));
            assert_eq!(request.bytes(), bytes);
            // The opcode says, too, which way data goes (Base, figure 138).
            let way = request.opcode & 3;
            assert!(way == 2 || bytes == 0, "{request:?}");
        }
        assert_eq!(Request::set_power_state(32), None);
        let far = Request::log(0x0c, 1 << 33 | 8, 4 << 16 | 4);
        assert_eq!(far.dwords, [0x0000_000c, 1, 8, 2, 0, 0]);
    }
}
