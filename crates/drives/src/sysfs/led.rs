//! The indicators by which a person finds a drive.
//!
//! Purpose: a drive's *locate* indicator is read and switched, by the first of these ways that the
//! machine has:
//!
//! 1. NPEM, or the firmware's way that takes its place: an LED `ADDRESS:enclosure:locate` of the
//!    drive's function or of the port above it (Linux 6.13, `drivers/pci/npem.c`; PCI Express Base
//!    6.1, section 6.28).
//! 2. SES: the file `locate` of the slot that the drive is in (`drivers/misc/enclosure.c`).
//! 3. The attention indicator of a PCI slot. Behind Intel's VMD, whose domains have five digits, it
//!    takes the four raw bits of both indicators: 7 is the pattern *locate*, 15 is off.
//!
//! Invariant: what was switched is read back: the kernel tells nobody that an enclosure refused.

use super::Sysfs;
use super::device::Device;
use super::pcie;
use super::read::Dir;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an indicator was not switched.
#[derive(Debug, Error)]
pub enum LedError {
    /// The drive has none that the kernel can switch.
    #[error("the kernel knows no indicator of {drive}")]
    None {
        /// The drive.
        drive: String,
    },
    /// We may not.
    #[error("the daemon may not write {}", path.display())]
    NotAllowed {
        /// The file that switches it.
        path: PathBuf,
    },
    /// The kernel, or the enclosure, refused.
    #[error("{} can't be written: {error}", path.display())]
    Refused {
        /// The file that switches it.
        path: PathBuf,
        /// The kernel's word.
        error: std::io::Error,
    },
    /// It is as it was, though nothing failed.
    #[error("the indicator of {drive} did not change")]
    Unchanged {
        /// The drive.
        drive: String,
    },
}

impl LedError {
    /// What to do about it, one line.
    pub fn action(&self) -> &'static str {
        match self {
            Self::None { .. } => {
                "use the enclosure's own management; NVMe slots with NPEM need Linux 6.13 or later"
            }
            Self::NotAllowed { .. } => {
                "run the daemon as root, or let its user write this file by a rule of udev"
            }
            Self::Refused { .. } => "see what the kernel's log says of the slot",
            Self::Unchanged { .. } => {
                "use the enclosure's own management: this one does not let hosts switch it"
            }
        }
    }
}

/// A file that switches an indicator, and what it takes.
#[derive(Clone, Copy)]
struct Switch {
    file: &'static str,
    off: u32,
    on: u32,
    /// Whether other values are other patterns, and not this one.
    is_pattern: bool,
}

const NPEM: Switch = Switch { file: "brightness", off: 0, on: 1, is_pattern: false };
const SES: Switch = Switch { file: "locate", off: 0, on: 1, is_pattern: false };
const ATTENTION: Switch = Switch { file: "attention", off: 0, on: 1, is_pattern: false };
const VMD: Switch = Switch { file: "attention", off: 15, on: 7, is_pattern: true };

/// What the kernel gives for an attention indicator whose state it does not know.
const UNKNOWN: u32 = 255;

/// The switch of a slot, by its address.
fn switch_of(address: &str) -> Switch {
    let is_vmd = address.split(':').next().is_some_and(|domain| domain.len() > 4);
    if is_vmd { VMD } else { ATTENTION }
}

/// An indicator.
struct Led<'a> {
    dir: Dir<'a>,
    switch: Switch,
}

impl Led<'_> {
    fn is_on(&self) -> Option<bool> {
        let value: u32 = self.dir.number(self.switch.file)?;
        match self.switch.is_pattern {
            true => Some(value == self.switch.on),
            false => (value != UNKNOWN).then_some(value != self.switch.off),
        }
    }
}

/// Whether the indicator of an enclosure's slot is on.
pub(super) fn of_slot(slot: &Dir<'_>) -> Option<bool> {
    Led { dir: slot.clone(), switch: SES }.is_on()
}

/// Whether the attention indicator of a PCI slot is on.
pub(super) fn attention(slot: &Dir<'_>, address: &str) -> Option<bool> {
    Led { dir: slot.clone(), switch: switch_of(address) }.is_on()
}

/// The directories of the PCI functions of a drive's controllers.
fn functions<'a>(root: &Dir<'a>, device: &Device) -> Vec<Dir<'a>> {
    let controllers = device.controllers.iter().filter(|controller| controller.pci.is_some());
    let dirs = controllers.filter_map(|c| root.at(&format!("class/nvme/{}", c.name)));
    dirs.filter_map(|dir| pcie::function(&dir)).collect()
}

/// The LED of a function or of the port above it.
fn npem<'a>(root: &Dir<'a>, function: &Dir<'a>) -> Option<Led<'a>> {
    let of = |dir: &Dir<'a>| root.at(&format!("class/leds/{}:enclosure:locate", dir.name()));
    let dir = of(function).or_else(|| of(&function.parent()?))?;
    Some(Led { dir, switch: NPEM })
}

/// The slot of an enclosure that a block device is in.
fn ses<'a>(root: &Dir<'a>, device: &Device) -> Option<Led<'a>> {
    let (major, minor) = device.number?;
    let own = root.at(&format!("dev/block/{major}:{minor}/device"))?;
    for (_, enclosure) in root.at("class/enclosure")?.children() {
        for (_, slot) in enclosure.children() {
            let is_own = slot.at("device").is_some_and(|device| device.path() == own.path());
            if is_own && slot.has("locate") {
                return Some(Led { dir: slot, switch: SES });
            }
        }
    }
    None
}

/// The slot that a function is plugged into.
fn pci_slot<'a>(root: &Dir<'a>, function: &Dir<'a>) -> Option<Led<'a>> {
    let address = pcie::without_function(function.name()).to_owned();
    let slots = root.at("bus/pci/slots")?.children();
    let mut own = slots.into_iter().filter(|(_, slot)| {
        let at = slot.text("address");
        slot.has("attention") && at.is_some_and(|at| at.eq_ignore_ascii_case(&address))
    });
    Some(Led { dir: own.next()?.1, switch: switch_of(&address) })
}

/// The indicator of a drive.
fn led<'a>(root: &Dir<'a>, device: &Device) -> Option<Led<'a>> {
    let functions = functions(root, device);
    let first = functions.iter().find_map(|function| npem(root, function));
    first
        .or_else(|| ses(root, device))
        .or_else(|| functions.iter().find_map(|function| pci_slot(root, function)))
}

/// Whether the indicator of a drive is on; `None` where it has none.
pub(super) fn located(root: &Dir<'_>, device: &Device) -> Option<bool> {
    led(root, device)?.is_on()
}

/// Writes a file that is there, and no link.
fn write(path: &Path, value: u32) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    File::from(file).write_all(format!("{value}\n").as_bytes())
}

/// What came of a try to switch an indicator `on` or off that now is as `now` says.
fn outcome(
    written: std::io::Result<()>,
    now: Option<bool>,
    on: bool,
    path: &Path,
    drive: &str,
) -> Result<(), LedError> {
    let path = path.to_owned();
    match written {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(LedError::NotAllowed { path })
        }
        Err(error) => Err(LedError::Refused { path, error }),
        Ok(()) if now == Some(!on) => Err(LedError::Unchanged { drive: drive.to_owned() }),
        Ok(()) => Ok(()),
    }
}

impl Sysfs {
    /// Whether the indicator of a drive is on; `None` where it has none that can be switched. Asks
    /// the enclosure, and waits for it.
    pub fn located(&self, device: &Device) -> Option<bool> {
        located(&self.dir(), device)
    }

    /// Switches the indicator of a drive. Asks the enclosure, and waits for it.
    ///
    /// # Errors
    /// See [`LedError`].
    pub fn locate(&self, device: &Device, on: bool) -> Result<(), LedError> {
        let root = self.dir();
        let drive = device.name.clone();
        let Some(led) = led(&root, device) else { return Err(LedError::None { drive }) };
        let path = led.dir.whole_path().join(led.switch.file);
        let value = if on { led.switch.on } else { led.switch.off };
        let written = write(&path, value);
        outcome(written, led.is_on(), on, &path, &drive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_it_is_told() {
        let failed = |kind| Err(std::io::Error::from(kind));
        for (written, now, expected) in [
            (Ok(()), Some(true), None),
            (Ok(()), None, None),
            (Ok(()), Some(false), Some("the indicator of nvme0n1 did not change")),
            (
                failed(ErrorKind::PermissionDenied),
                Some(false),
                Some("the daemon may not write /sys/x"),
            ),
            (failed(ErrorKind::TimedOut), Some(true), Some("/sys/x can't be written: timed out")),
        ] {
            let told = outcome(written, now, true, Path::new("/sys/x"), "nvme0n1");
            assert_eq!(told.as_ref().err().map(LedError::to_string).as_deref(), expected);
            assert!(told.err().is_none_or(|error| error.action().len() > 20));
        }
    }

    #[test]
    fn a_file_that_is_none_is_not_made_nor_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (none, link) = (dir.path().join("none"), dir.path().join("link"));
        assert!(write(&none, 1).is_err() && !none.exists());
        std::fs::write(&none, "0").expect("written");
        std::os::unix::fs::symlink(&none, &link).expect("linked");
        assert!(write(&link, 1).is_err());
        assert_eq!(std::fs::read_to_string(&none).expect("readable"), "0");
    }
}
