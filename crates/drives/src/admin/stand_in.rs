//! A stand-in of a drive's controller, for tests and benchmarks: it answers from what it is told.
//!
//! Purpose: what real drives do seldom or never (refuse, hang, be too warm) is there when a test
//! wants it. Clones are the same stand-in: one is asked, the other changed.
//!
//! States of a request: waiting (while [`Standing::hangs`]) → answered, by what the stand-in is
//! told at that moment.

use super::{Admin, AdminError};
use nvme::command::admin;
use nvme::drive::{Controller, Namespace, PowerState};
use nvme::identify::{cns, optional};
use nvme::log::page;
use nvme::power::{self, Power};
use nvme::request::{EVERY_NAMESPACE, Request};
use nvme::smart::Smart;
use nvme::status::Status;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What a stand-in answers from.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// What it is, with its power states.
    pub controller: Controller,
    /// Its namespaces, from 1.
    pub namespaces: Vec<Namespace>,
    /// How it is.
    pub smart: Smart,
    /// The power state that it is in.
    pub power_state: u8,
    /// Opcodes ([`admin`]) that it refuses, and with which status.
    pub refuses: BTreeMap<u8, Status>,
    /// All requests end so, but those that it refuses.
    pub fails: Option<AdminError>,
    /// Requests wait until this is false.
    pub hangs: bool,
}

#[derive(Default)]
struct Inside {
    standing: Standing,
    asked: u64,
    waiting: u32,
    most: u32,
}

/// A stand-in.
#[derive(Clone, Default)]
pub struct StandIn(Arc<(Mutex<Inside>, Condvar)>);

impl StandIn {
    /// One that is well: 37 °C, warns at 70 °C, acts at 80 °C; states of 25 W, 10 W and, not
    /// serving, 5 mW.
    pub fn new(serial: &str) -> Self {
        let state = |max_power, is_non_operational, exit_us| PowerState {
            max_power,
            is_fine: is_non_operational,
            is_non_operational,
            enter_us: exit_us / 2,
            exit_us,
        };
        let controller = Controller {
            vendor: 0x1b36,
            serial: serial.to_owned(),
            model: "Stand-in".to_owned(),
            firmware: "1.0".to_owned(),
            version: 0x1_0400,
            optional: optional::SAVE_AND_SELECT,
            namespaces: 1,
            warning_kelvin: 343,
            critical_kelvin: 353,
            power_states: vec![
                state(2500, false, 0),
                state(1000, false, 100),
                state(50, true, 9000),
            ],
            ..Controller::default()
        };
        let namespace = Namespace { blocks: 1 << 20, block_shift: 12, ..Namespace::default() };
        let smart = Smart {
            kelvin: 310,
            available_spare: 100,
            spare_threshold: 10,
            percentage_used: 1,
            sensors_kelvin: [310, 0, 0, 0, 0, 0, 0, 0],
            power_on_hours: 1,
            power_cycles: 1,
            ..Smart::default()
        };
        let stand_in = Self::default();
        stand_in.change(|standing| {
            (standing.controller, standing.smart) = (controller, smart);
            standing.namespaces.push(namespace);
        });
        stand_in
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Changes what it answers from. Requests that wait look again whether they may go on.
    pub fn change(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.inside().standing);
        self.0.1.notify_all();
    }

    /// What it answers from.
    pub fn standing(&self) -> Standing {
        self.inside().standing.clone()
    }

    /// How many requests it was sent.
    pub fn asked(&self) -> u64 {
        self.inside().asked
    }

    /// How many requests it has not answered yet.
    pub fn waiting(&self) -> u32 {
        self.inside().waiting
    }

    /// The most requests that it had not answered at one time.
    pub fn most_at_once(&self) -> u32 {
        self.inside().most
    }
}

impl Admin for StandIn {
    fn ask(&self, request: &Request, into: &mut [u8]) -> Result<u32, AdminError> {
        let mut inside = self.inside();
        inside.asked += 1;
        inside.waiting += 1;
        inside.most = inside.most.max(inside.waiting);
        while inside.standing.hangs {
            inside = self.0.1.wait(inside).unwrap_or_else(|e| e.into_inner());
        }
        inside.waiting -= 1;
        inside.standing.answer(request, into)
    }
}

impl Standing {
    fn answer(&mut self, request: &Request, into: &mut [u8]) -> Result<u32, AdminError> {
        if let Some(status) = self.refuses.get(&request.opcode) {
            return Err(AdminError::Refused(*status));
        }
        if let Some(error) = self.fails {
            return Err(error);
        }
        let answered = match request.opcode {
            admin::IDENTIFY => self.identify(request, into).map(|()| 0),
            admin::GET_LOG_PAGE if request.dwords[0] as u8 == page::HEALTH => {
                give(into, &self.smart.encode()).map(|()| 0)
            }
            admin::GET_LOG_PAGE => Err(Status::INVALID_LOG_PAGE),
            admin::GET_FEATURES if request.dwords[0] as u8 == power::FEATURE => {
                let power = Power { state: self.power_state, workload: 0 };
                power.encode().ok_or(Status::INTERNAL)
            }
            admin::SET_FEATURES if request.dwords[0] as u8 == power::FEATURE => {
                self.enter(Power::decode(request.dwords[1]).state).map(|()| 0)
            }
            admin::GET_FEATURES | admin::SET_FEATURES => Err(Status::INVALID_FIELD),
            _ => Err(Status::INVALID_OPCODE),
        };
        answered.map_err(AdminError::Refused)
    }

    fn identify(&self, request: &Request, into: &mut [u8]) -> Result<(), Status> {
        match (request.dwords[0] as u8, request.namespace) {
            (cns::CONTROLLER, _) => give(into, &self.controller.encode()),
            (cns::NAMESPACE, 0 | EVERY_NAMESPACE) => Err(Status::INVALID_NAMESPACE),
            (cns::NAMESPACE, number) => {
                let namespace = self.namespaces.get(number as usize - 1);
                give(into, &namespace.ok_or(Status::INVALID_NAMESPACE)?.encode())
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn enter(&mut self, state: u8) -> Result<(), Status> {
        if usize::from(state) >= self.controller.power_states.len() {
            return Err(Status::INVALID_FIELD);
        }
        self.power_state = state;
        Ok(())
    }
}

fn give(into: &mut [u8], bytes: &[u8]) -> Result<(), Status> {
    into.get_mut(..bytes.len()).ok_or(Status::DATA_TRANSFER)?.copy_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_stand_in_answers_what_it_is_told() {
        let drive = StandIn::new("S1");
        let is = drive.standing();
        assert_eq!(drive.controller(), Ok(is.controller));
        assert_eq!((drive.smart(), drive.power_state()), (Ok(is.smart), Ok(0)));
        assert_eq!(drive.namespace(1).map(|namespace| namespace.block_bytes()), Ok(Some(4096)));
        let none = Err(AdminError::Refused(Status::INVALID_NAMESPACE));
        assert_eq!([0, 2, u32::MAX].map(|number| drive.namespace(number)), [none; 3]);
        drive.change(|standing| standing.smart.critical_warning = 1);
        assert_eq!(drive.smart().map(|smart| smart.critical_warning), Ok(1));
        assert_eq!((drive.asked(), drive.most_at_once(), drive.waiting()), (8, 1, 0));
    }

    #[test]
    fn power_states_are_entered_or_refused() {
        let drive = StandIn::new("S1");
        assert_eq!((drive.set_power_state(2), drive.power_state()), (Ok(()), Ok(2)));
        for beyond in [3, 31, 32, 255] {
            let refused = Err(AdminError::Refused(Status::INVALID_FIELD));
            assert_eq!((drive.set_power_state(beyond), drive.power_state()), (refused, Ok(2)));
        }
        let status = Status::FEATURE_NOT_CHANGEABLE;
        drive.change(|standing| standing.refuses = [(admin::SET_FEATURES, status)].into());
        assert_eq!(drive.set_power_state(0), Err(AdminError::Refused(status)));
        drive.change(|standing| standing.fails = Some(AdminError::Gone));
        let gone = AdminError::Gone;
        assert_eq!((drive.power_state(), drive.smart()), (Err(gone), Err(gone)));
    }

    #[test]
    fn what_hangs_waits_until_it_is_let_go() {
        let drive = StandIn::new("S1");
        drive.change(|standing| standing.hangs = true);
        let asker = thread::spawn({
            let drive = drive.clone();
            move || drive.smart()
        });
        while drive.waiting() == 0 {
            thread::yield_now();
        }
        assert!(!asker.is_finished());
        drive.change(|standing| (standing.hangs, standing.smart.kelvin) = (false, 280));
        let smart = asker.join().expect("it ends").expect("it is answered");
        assert_eq!(smart.celsius(), Some(7));
    }
}
