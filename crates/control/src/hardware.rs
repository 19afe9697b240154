//! What is asked of drives as devices: to be found by their indicators, and to take less power.
//!
//! Invariant: what can't be done is refused by a message that names the drive by its path.

use crate::asking::Unanswered;
use crate::manager::Manager;
use crate::wellness::Wellness;
use redfish::messages as say;
use redfish::view::{Error, KnownDrive, View};
use std::fmt::Display;

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
        let known = known(&view, id)?;
        let path = &known.drive.path;
        if !known.hardware.is_nvme() {
            return Err(Error::new(&say::DRIVE_NOT_NVME, &[path]));
        }
        set_power(&self.wellness, path, state).await?;
        self.describe_drives(false);
        Ok(())
    }
}

async fn set_power(well: &Wellness, path: &str, state: u8) -> Result<(), Error> {
    match well.asking().set_power(path, state).await {
        Ok(_) => Ok(()),
        // Its own words, without what was asked of it: that is known.
        Err(Unanswered::Asked { error, .. }) => Err(refused(path, &error)),
        Err(problem) => Err(refused(path, &problem)),
    }
}

/// A drive did not take a power state, and why.
fn refused(path: &str, why: &dyn Display) -> Error {
    Error::new(&say::DRIVE_POWER_REFUSED, &[&path, why])
}

/// The drive of an identifier: it may have gone since the request was read.
fn known<'v>(view: &'v View, id: &str) -> Result<&'v KnownDrive, Error> {
    view.drive(id).ok_or_else(|| Error::new(&say::DRIVE_NOT_KNOWN, &[&id]))
}

fn no_indicator(known: &KnownDrive) -> Error {
    Error::new(&say::DRIVE_NO_INDICATOR, &[&known.drive.path])
}

#[cfg(test)]
#[path = "hardware_tests.rs"]
mod tests;
