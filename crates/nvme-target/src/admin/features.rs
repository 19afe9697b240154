//! Get Features and Set Features (Base, sections 5.15 and 5.27; NVM, section 4.1.3).
//!
//! Nothing is saved: after a reset everything is as at first. What is not the host's to choose can
//! be read only.

use super::Session;
use crate::controller::EVENTS;
use crate::limits::{IO_QUEUES, KEEP_ALIVE_MOST};
use crate::{Transport, Volumes};
use io::Env;
use nvme::command::{Command, admin};
use nvme::status::Status;
use std::sync::atomic::Ordering;

/// Identifiers of features.
mod feature {
    pub const ARBITRATION: u8 = 0x01;
    pub const POWER: u8 = 0x02;
    pub const TEMPERATURE: u8 = 0x04;
    pub const ERROR_RECOVERY: u8 = 0x05;
    pub const WRITE_CACHE: u8 = 0x06;
    pub const QUEUES: u8 = 0x07;
    pub const WRITE_ATOMICITY: u8 = 0x0a;
    pub const EVENTS: u8 = 0x0b;
    pub const KEEP_ALIVE: u8 = 0x0f;
    pub const HOST_IDENTIFIER: u8 = 0x81;
}

/// Bytes of a host identifier.
const HOST_IDENTIFIER_BYTES: u32 = 16;

/// What Get Features wants (Base, figure 188): the current value, the default, the saved one, or
/// what can be done with it.
fn select(command: &Command) -> u32 {
    command.dword(10) >> 8 & 7
}

const CAPABILITIES: u32 = 3;
/// The feature can be changed; it can't be saved, and is not a namespace's.
const CHANGEABLE: u64 = 1 << 2;

/// Bytes of data that a Get Features gives, if it asks for something that there is.
pub(super) fn data_bytes(command: &Command) -> Result<u32, Status> {
    debug_assert_eq!(command.opcode(), admin::GET_FEATURES);
    if select(command) > CAPABILITIES {
        return Err(Status::INVALID_FIELD);
    }
    let has_data = command.dword(10) as u8 == feature::HOST_IDENTIFIER;
    Ok(if has_data && select(command) != CAPABILITIES { HOST_IDENTIFIER_BYTES } else { 0 })
}

/// Queues as a feature has them: submission and completion queues, 0's based.
fn queues(granted: u16) -> u64 {
    let less_one = u64::from(granted) - 1;
    less_one | less_one << 16
}

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    /// Get Features without data.
    pub(super) fn get_feature(&self, command: &Command) -> Result<u64, Status> {
        let id = command.dword(10) as u8;
        let controller = &self.terms.controller;
        // A discovery controller has no ONCS, and so no Select (Base, figure 275).
        if controller.is_discovery() && select(command) != 0 {
            return Err(Status::INVALID_FIELD);
        }
        // Nothing is saved: in its place is the default.
        let is_default = matches!(select(command), 1 | 2);
        let own = |now: u64, at_first: u64| if is_default { at_first } else { now };
        let value = match id {
            feature::EVENTS => {
                let all = if controller.is_discovery() { 0 } else { EVENTS };
                own(controller.events_wanted.load(Ordering::Relaxed).into(), all.into())
            }
            feature::KEEP_ALIVE => own(controller.keep_alive_ms().into(), 0),
            _ if controller.is_discovery() => return Err(Status::INVALID_FIELD),
            feature::QUEUES => own(queues(controller.granted()), queues(IO_QUEUES)),
            feature::WRITE_CACHE => 1,
            feature::ARBITRATION
            | feature::POWER
            | feature::TEMPERATURE
            | feature::ERROR_RECOVERY
            | feature::WRITE_ATOMICITY
            | feature::HOST_IDENTIFIER => 0,
            _ => return Err(Status::INVALID_FIELD),
        };
        if select(command) == CAPABILITIES {
            let can = matches!(id, feature::EVENTS | feature::KEEP_ALIVE | feature::QUEUES);
            return Ok(if can { CHANGEABLE } else { 0 });
        }
        Ok(value)
    }

    /// Get Features with data: the host's identifier, as its Connect said it.
    pub(super) fn feature_data(&self, command: &Command, into: &mut [u8]) -> Result<(), Status> {
        // Bit 0 of dword 11: it has 128 bits, as all of fabrics have.
        if command.dword(11) & 1 == 0 {
            return Err(Status::INVALID_FIELD);
        }
        into.copy_from_slice(&self.terms.controller.association.host_id);
        Ok(())
    }

    /// Set Features.
    pub(super) fn set_feature(&self, command: &Command) -> Result<u64, Status> {
        if command.dword(10) >> 31 == 1 {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let (id, value) = (command.dword(10) as u8, command.dword(11));
        let controller = &self.terms.controller;
        match id {
            feature::EVENTS => {
                controller.events_wanted.store(value, Ordering::Relaxed);
                Ok(0)
            }
            feature::KEEP_ALIVE if value > KEEP_ALIVE_MOST => Err(Status::KEEP_ALIVE_INVALID),
            feature::KEEP_ALIVE => {
                controller.set_keep_alive_ms(value);
                Ok(0)
            }
            _ if controller.is_discovery() => Err(Status::INVALID_FIELD),
            feature::QUEUES => {
                let (submission, completion) = (value & 0xffff, value >> 16);
                if submission == 0xffff || completion == 0xffff {
                    return Err(Status::INVALID_FIELD);
                }
                Ok(queues(controller.grant(submission.min(completion) + 1)))
            }
            // Set once, by the Connect.
            feature::HOST_IDENTIFIER => Err(Status::SEQUENCE_ERROR),
            feature::WRITE_CACHE if value & 1 == 1 => Ok(0),
            feature::ARBITRATION
            | feature::POWER
            | feature::TEMPERATURE
            | feature::ERROR_RECOVERY
            | feature::WRITE_CACHE
            | feature::WRITE_ATOMICITY => Err(Status::FEATURE_NOT_CHANGEABLE),
            _ => Err(Status::INVALID_FIELD),
        }
    }
}
