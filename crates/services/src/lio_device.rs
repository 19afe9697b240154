//! An export's device of the kernel's LIO, which its targets stand on, whatever they are.
//!
//! ```text
//! target/core/iblock_7241/palisade-ID/   the device: a volume's ublk device
//!             udev_path, enable          which it is; 1: it is open
//!             wwn/vpd_unit_serial        what hosts know it by
//! ```
//!
//! States: none → made (its folder alone) → open → none. LIO has the device to itself as long as it
//! is open, and looks at its size once.
//!
//! Invariant: only what is named after an export of ours is touched.

use crate::configfs::{LIO, mkdir, named, put, read, rmdir};
use ::iscsi::{PRODUCT, VENDOR};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What devices of ours are under: an adapter of the kind `iblock`, with a number of ours.
const ADAPTER: &str = "core/iblock_7241";
/// What the names of devices of ours begin with.
const PREFIX: &str = "palisade-";

/// The place of an export's device.
pub fn place(config: &Path, id: &str) -> PathBuf {
    config.join(LIO).join(ADAPTER).join(format!("{PREFIX}{id}"))
}

/// Makes an export's device, which was not there.
///
/// # Errors
/// What the kernel says.
pub fn make(config: &Path, place: &Path, path: &Path, serial: &str) -> io::Result<()> {
    if let Some(adapter) = place.parent() {
        fs::create_dir_all(adapter).map_err(|error| named(adapter, &error))?;
    }
    mkdir(place)?;
    // Where reservations are kept that are to last: without it there are none.
    let kept = read(&config.join(LIO).join("dbroot"));
    if !kept.is_empty() {
        let _ = fs::create_dir_all(Path::new(&kept).join("pr"));
    }
    let device = |file: &str, text: &str| put(&place.join(file), text);
    let path = path.display().to_string();
    device("control", &format!("udev_path={path}"))?;
    device("udev_path", &path)?;
    device("enable", "1")?;
    device("wwn/vendor_id", VENDOR)?;
    device("wwn/product_id", PRODUCT)?;
    device("attrib/emulate_tpu", "1")?;
    device("attrib/emulate_tpws", "1")?;
    // By this it is seen to be whole.
    device("wwn/vpd_unit_serial", serial)
}

/// Whether an export's device is there, as it is to be.
pub fn is_as_wanted(place: &Path, path: &Path, serial: &str) -> bool {
    let device = |file: &str| read(&place.join(file));
    device("udev_path") == path.display().to_string()
        && device("enable") == "1"
        && device("wwn/vpd_unit_serial").ends_with(serial)
        // A device that is gone, and was made anew, is one that nobody has.
        && crate::blocks::user(&path.display().to_string()).is_some()
}

/// Lets an export's device go.
///
/// # Errors
/// What the kernel says.
pub fn free(place: &Path) -> io::Result<()> {
    rmdir(place)?;
    if let Some(adapter) = place.parent() {
        // It has others, or is gone.
        let _ = fs::remove_dir(adapter);
    }
    Ok(())
}
