//! What is asked of a drive: admin commands that only read, and the one that sets a power state.
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
use crate::smart;

/// All namespaces, and the controller itself (Base, section 3.2.1.5).
pub const EVERY_NAMESPACE: u32 = 0xffff_ffff;

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

    fn identify(cns: u8, namespace: u32) -> Self {
        let transfer = Transfer::FromDrive(identify::BYTES as u32);
        Self::new(admin::IDENTIFY, namespace, [u32::from(cns), 0], transfer)
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
    }
}
