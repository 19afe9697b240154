//! Ends a volume's block device without the daemon, where none comes back: who waits for it has
//! errors.
//!
//! What is known is the volume's link. What it leads to is ended only if a process of this program
//! made it, and nobody serves it: a ublk device waits for its server, the file below a loop device
//! gives errors.

use crate::ublk::{self, Driver};
use crate::{links, loops, mounts};
use ::ublk::wire::control::DeviceState;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::Path;

/// Why a device is not ended.
#[derive(Debug)]
pub enum Kept {
    /// It is served.
    Served(String),
    /// There is none, or it can't be.
    Failed(String),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served(device) => write!(f, "{device} is served"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<io::Error> for Kept {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Ends the device of a volume; which.
///
/// # Errors
/// It is served, there is none, or what the kernel says.
pub fn release(array: &str, volume: &str) -> Result<String, Kept> {
    if !rustix::process::geteuid().is_root() {
        return Err(Kept::Failed("only root may end a device".to_owned()));
    }
    let link = links::link(array, volume)
        .ok_or_else(|| Kept::Failed("its name can't be that of a link".to_owned()))?;
    let device = std::fs::read_link(&link)
        .map_err(|_| Kept::Failed(format!("no device is at {}", link.display())))?;
    let device = device.display().to_string();
    match ublk::number(&device) {
        Some(number) => of_ublk(number, (&device, &link))?,
        None => of_loop(&device)?,
    }
    links::remove_link(&link, &device);
    Ok(device)
}

fn of_ublk(number: u32, (device, link): (&str, &Path)) -> Result<(), Kept> {
    let Some(driver) = Driver::open()? else { return Ok(()) };
    // Nothing is behind the link.
    let Some(info) = driver.info(number)? else { return Ok(()) };
    if !ublk::is_ours(&info) {
        return Err(Kept::Failed(format!("{device} is not Palisade's")));
    }
    if info.state == DeviceState::Live {
        return Err(Kept::Served(device.to_owned()));
    }
    // Before the number may be another's.
    links::remove_link(link, device);
    Ok(driver.end(number)?)
}

fn of_loop(device: &str) -> Result<(), Kept> {
    let Some(file) = loops::file_of(device.trim_start_matches("/dev/")) else {
        return match Path::new(device).exists() {
            // Its number may be another's by now: the link alone goes.
            true if device.starts_with("/dev/loop") => Ok(()),
            true => Err(Kept::Failed(format!("{device} is not Palisade's"))),
            false => Ok(()),
        };
    };
    if !mounts::is_ours(&file)? {
        return Err(Kept::Failed(format!("{device} is not Palisade's")));
    }
    // Of this the kernel remembers nothing: who serves it is asked, if there is anybody.
    match rustix::fs::statfs(&file) {
        // It had gone, or went while it was asked.
        Err(Errno::NOTCONN | Errno::CONNABORTED) => {}
        _ => return Err(Kept::Served(device.to_owned())),
    }
    loops::detach(device)?;
    remove(&file)?;
    Ok(())
}

fn remove(file: &Path) -> io::Result<()> {
    mounts::detach(file)?;
    if std::fs::symlink_metadata(file).is_ok_and(|about| about.is_file() && about.len() == 0) {
        std::fs::remove_file(file)?;
    }
    Ok(())
}
