//! What an array of some drives would be: creation makes that, and a dry run shows it.

use crate::manage::command::{DriveRef, ManageError, NewArray};
use crate::manage::create::check_name;
use format::limits::AREA_BYTES;
use format::{Split, split, usable_bytes};
use io::DriveInfo;
use layout::Layout;
use units::MIB;

/// What creation would record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How each drive is divided.
    pub split: Split,
    /// Where data and redundancy lie.
    pub layout: Layout,
    /// The array's block in bytes.
    pub block_bytes: u32,
}

/// What a new array of these drives would be.
///
/// # Errors
/// The name can't be used, a drive does not fit, or all of them can't make such an array.
pub fn plan<S>(
    new: &NewArray,
    drives: &[(&DriveRef<S>, &DriveInfo)],
) -> Result<Plan, ManageError> {
    check_name(&new.name)?;
    let least = 2 * AREA_BYTES + if new.region_map { 3 * MIB } else { MIB };
    let path = |drive: &DriveRef<S>| drive.path.clone();
    if let Some((drive, info)) = drives.iter().find(|(_, info)| info.bytes < least) {
        return Err(ManageError::TooSmall { path: path(drive), has: info.bytes, needs: least });
    }
    let largest = drives.iter().map(|(_, info)| info.block_bytes).max().unwrap_or(512);
    let block_bytes = new.block_bytes.unwrap_or(largest);
    if !matches!(block_bytes, 512 | 4096) {
        return Err(ManageError::BadBlock(block_bytes));
    }
    if let Some((drive, info)) = drives.iter().find(|(_, info)| info.block_bytes > block_bytes) {
        let (path, drive) = (path(drive), info.block_bytes);
        return Err(ManageError::BlockSize { path, drive, array: block_bytes });
    }
    let usable = drives.iter().map(|(drive, info)| usable_bytes(info.bytes, !drive.is_file));
    let usable = usable.min().unwrap_or(0);
    let split = split(usable);
    let data_bytes = match new.region_map {
        true => split.data_bytes,
        false => usable.saturating_sub(2 * AREA_BYTES),
    };
    let count = u16::try_from(drives.len()).unwrap_or(u16::MAX);
    let layout = Layout::new(new.level, count, new.strip_bytes, data_bytes)?;
    Ok(Plan { split, layout, block_bytes })
}
