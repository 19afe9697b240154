//! What is asked of drives as devices: to be found by their indicators, and to take less power.
//!
//! Invariant: what can't be done is refused by a message that names the drive by its path.

use crate::asking::Unanswered;
use crate::claims::Lookup;
use crate::inventory::Known;
use crate::look;
use crate::manager::Manager;
use crate::plugs;
use crate::wellness::Wellness;
use drives::sysfs::{LedError, Sysfs};
use redfish::messages as say;
use redfish::view::{Error, KnownDrive, View};
use std::fmt::Display;

impl Manager {
    /// Switches a drive's indicator. Once it is done the view says so.
    ///
    /// # Errors
    ///
    /// There is no such drive, it has no indicator that can be switched, or that is not switched.
    pub(crate) async fn locate_drive(&self, id: &str, on: bool) -> Result<(), Error> {
        let view = self.view();
        let known = known(&view, id)?;
        let number = self.inventory().at(&known.drive.path).and_then(Known::device);
        let Some((major, minor)) = number.map(plugs::numbers) else {
            return Err(no_indicator(known));
        };
        let sysfs = Sysfs::new(self.sysfs.clone());
        let switch = move || match sysfs.device(major, minor) {
            Some(device) => sysfs.locate(&device, on),
            None => Err(LedError::None { drive: format!("{major}:{minor}") }),
        };
        // One at a time: an enclosure that hangs keeps one thread, not one for each request.
        let outcome = self.aside(Lookup::Locate, switch).await;
        switched(known, outcome)?;
        self.look_around().await;
        Ok(())
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

/// What came of switching a drive's indicator; nothing if the enclosure did not answer in time.
fn switched(known: &KnownDrive, outcome: Option<Result<(), LedError>>) -> Result<(), Error> {
    let path = &known.drive.path;
    match outcome {
        Some(Ok(())) => Ok(()),
        Some(Err(LedError::None { .. })) => Err(no_indicator(known)),
        Some(Err(error)) => {
            let told = Error::new(&say::DRIVE_INDICATOR_FAILED, &[path, &error]);
            Err(told.advise(error.action()))
        }
        None => {
            let why = format!("no answer within {} s", look::LOOK.as_secs());
            Err(Error::new(&say::DRIVE_INDICATOR_FAILED, &[path, &why]))
        }
    }
}

fn no_indicator(known: &KnownDrive) -> Error {
    Error::new(&say::DRIVE_NO_INDICATOR, &[&known.drive.path])
}

#[cfg(test)]
#[path = "hardware_tests.rs"]
mod tests;
