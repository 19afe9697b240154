//! Commands of admin queues: properties, identify, features, log pages, events.
//!
//! Base, section 5 (admin commands) and 6 (fabrics commands). None waits for anything, a worker
//! included. Discovery controllers do the part of it that Base, section 3.1.2.3.4 names.
//!
//! Invariant: what an answer says of namespaces is what the host may have.

mod features;
pub(crate) mod identify;
mod logs;

use crate::limits::{DATA_MOST, DISCOVERY_DATA, ENTRIES_MOST};
use crate::session::{Admission, Admitted, Flow, Session};
use crate::volume::Held;
use crate::{Transport, Volumes};
use front::Lease;
use io::{BufMut, Env};
use nvme::command::{Command, FABRICS, admin};
use nvme::fabrics::{self, Property, property};
use nvme::log::Wanted;
use nvme::reset::{self, Instance};
use nvme::status::Status;
use std::rc::Rc;

/// The version of NVMe that controllers keep to: 2.0.0.
pub(crate) const VERSION: u32 = 0x0002_0000;

/// How long a controller may take to become ready, in units of 500 ms.
const READY: u64 = 30;

/// The Controller Capabilities property (Base, figure 36): queue entries, contiguous queues, the
/// time to become ready, the NVM command set, and that whoever is ready has its media at hand
/// (CRMS.CRWMS, which every controller of version 2.0 sets).
const CAPABILITIES: u64 = (ENTRIES_MOST - 1) as u64 | 1 << 16 | READY << 24 | 1 << 37 | 1 << 59;

/// Commands that admin queues of controllers with namespaces know, and those of discovery.
const ADMIN: [u8; 8] = [
    admin::GET_LOG_PAGE,
    admin::IDENTIFY,
    admin::ABORT,
    admin::SET_FEATURES,
    admin::GET_FEATURES,
    admin::ASYNC_EVENT_REQUEST,
    admin::KEEP_ALIVE,
    admin::CROSS_CONTROLLER_RESET,
];

/// The result of an Abort (Base, figure 142): the command was not aborted.
const NOT_ABORTED: u64 = 1;

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    /// Whether a command of the admin queue may begin.
    pub(crate) fn admit_admin(&self, command: &Command) -> Admission<Held<X>> {
        let opcode = command.opcode();
        if opcode == FABRICS {
            return match command.fabrics_type() {
                fabrics::kind::PROPERTY_GET | fabrics::kind::PROPERTY_SET => Ok(Admitted::plain()),
                fabrics::kind::CONNECT => Err(Status::SEQUENCE_ERROR),
                _ => Err(Status::INVALID_OPCODE),
            };
        }
        let resets = self.server.target.product.resets && !self.terms.controller.is_discovery();
        if !ADMIN.contains(&opcode) || opcode == admin::CROSS_CONTROLLER_RESET && !resets {
            return Err(Status::INVALID_OPCODE);
        }
        if !self.terms.controller.is_enabled() && opcode != admin::KEEP_ALIVE {
            return Err(Status::SEQUENCE_ERROR);
        }
        Ok(match opcode {
            admin::IDENTIFY => Admitted::out(nvme::identify::BYTES as u32),
            admin::GET_LOG_PAGE => {
                let bytes = Wanted::decode(command).bytes;
                if bytes > u64::from(self.data_most()) {
                    return Err(Status::INVALID_FIELD);
                }
                Admitted::out(bytes as u32)
            }
            admin::GET_FEATURES => match features::data_bytes(command)? {
                0 => Admitted::plain(),
                bytes => Admitted::out(bytes),
            },
            admin::ASYNC_EVENT_REQUEST => Admitted { volume: None, flow: Flow::Event },
            _ => Admitted::plain(),
        })
    }

    /// Most bytes of a command's data.
    fn data_most(&self) -> u32 {
        if self.terms.controller.is_discovery() { DISCOVERY_DATA } else { DATA_MOST }
    }

    /// Carries out a command of the admin queue, and answers it.
    pub(crate) fn carry_out_admin(
        self: &Rc<Self>,
        slot: u16,
        command: &Command,
        buffer: Option<(BufMut, Lease)>,
    ) {
        self.refresh();
        if !self.is_current() {
            // What a lost controller has is not what the host may have.
            drop(buffer);
            return self.answer(slot, Status::ABORTED_QUEUE, 0);
        }
        let opcode = command.opcode();
        if let Some((mut data, lease)) = buffer {
            data.fill(0);
            let outcome = match opcode {
                admin::IDENTIFY => self.identify(command, &mut data),
                admin::GET_LOG_PAGE => self.log_page(command, &mut data),
                _ => self.feature_data(command, &mut data),
            };
            match outcome {
                Ok(()) => self.answer_with(slot, (data, lease)),
                Err(status) => {
                    drop((data, lease));
                    self.answer(slot, status, 0);
                }
            }
            return;
        }
        let outcome = match opcode {
            FABRICS => self.property(command),
            admin::SET_FEATURES => self.set_feature(command),
            admin::GET_FEATURES => self.get_feature(command),
            admin::ABORT => Ok(NOT_ABORTED),
            admin::CROSS_CONTROLLER_RESET => {
                let of = Instance::decode(command);
                let is_over = self.server.target.reset(&self.terms.controller, of);
                is_over.map(|is_over| if is_over { reset::IMMEDIATE } else { 0 })
            }
            // Keep Alive: that it came is all.
            _ => Ok(0),
        };
        match outcome {
            Ok(result) => self.answer(slot, Status::SUCCESS, result),
            Err(status) => self.answer(slot, status, 0),
        }
        self.tell_events();
    }

    /// Property Get and Set (Base, sections 6.5 and 6.6).
    fn property(&self, command: &Command) -> Result<u64, Status> {
        let property = Property::decode(command).ok_or(Status::INVALID_FIELD)?;
        let controller = &self.terms.controller;
        if command.fabrics_type() == fabrics::kind::PROPERTY_SET {
            if property.offset != property::CONFIGURATION || property.wide {
                return Err(Status::INVALID_FIELD);
            }
            if controller.configure(property.value as u32) {
                self.forget_held();
            }
            return Ok(0);
        }
        match (property.offset, property.wide) {
            (property::CAPABILITIES, true) => Ok(CAPABILITIES),
            (property::VERSION, false) => Ok(VERSION.into()),
            (property::CONFIGURATION, false) => Ok(controller.configuration().into()),
            (property::STATUS, false) => Ok(controller.status().into()),
            // With media (CRWMT); there is no other time, as there is no other mode.
            (property::READY_TIMEOUTS, false) => Ok(READY),
            _ => Err(Status::INVALID_FIELD),
        }
    }
}
