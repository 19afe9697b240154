//! What an array of drives would be: how they are divided, whether they are large enough, and for
//! how many cores. Creation makes that, and a dry run shows it.

use crate::journal::{Shape, has_journal};
use crate::manage::command::{ManageError, NewArray};
use format::limits::JOURNAL_BYTES_MAX;
use format::{ArrayRecord, Split};
use layout::Layout;
use units::{BAND_BYTES, MIB};

/// A drive for a new array.
#[derive(Clone, Debug)]
pub struct Offered {
    /// How people name it.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of its block.
    pub block_bytes: u32,
    /// Whether it is a regular file.
    pub is_file: bool,
}

/// What a new array would be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where everything would lie.
    pub layout: Layout,
    /// How each drive would be divided.
    pub split: Split,
    /// Its block, bytes.
    pub block_bytes: u32,
}

/// What people may call arrays and volumes.
///
/// # Errors
/// It is none of these.
pub fn check_name(name: &str) -> Result<(), ManageError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // A name is that of a file, too.
    let is_way = matches!(name, "." | "..");
    if name.is_empty() || name.len() > 64 || is_way || !name.chars().all(fine) {
        return Err(ManageError::BadName(name.to_owned()));
    }
    Ok(())
}

/// What the array would be that these drives make, for so many data cores.
///
/// # Errors
/// When the name can't be used or the drives can't make it; with the smallest size that works where
/// one is too small.
pub fn plan(new: &NewArray, drives: &[Offered], cores: u16) -> Result<Plan, ManageError> {
    check_name(&new.name)?;
    let largest = drives.iter().map(|drive| drive.block_bytes).max().unwrap_or(512);
    let block_bytes = new.block_bytes.unwrap_or(largest);
    if !matches!(block_bytes, 512 | 4096) {
        return Err(ManageError::BadBlock(block_bytes));
    }
    if let Some(Offered { path, block_bytes: own, .. }) =
        drives.iter().find(|drive| drive.block_bytes > block_bytes)
    {
        let (path, drive) = (path.clone(), *own);
        return Err(ManageError::BlockSize { path, drive, array: block_bytes });
    }
    let layout = |data| Layout::new(new.level, drives.len() as u16, new.strip_bytes, data);
    let smallest = layout(BAND_BYTES)?;
    let usable = |drive: &Offered| format::usable_bytes(drive.bytes, !drive.is_file);
    let divided = |usable: u64| {
        let journal = journal_bytes(&smallest, format::journal_bytes(usable), cores, block_bytes)?;
        Some(format::split_with(usable, journal))
    };
    let drive = drives.iter().min_by_key(|drive| usable(drive)).expect("a layout has drives");
    let Some(split) = divided(usable(drive)) else {
        let fit = fitting(&smallest, JOURNAL_BYTES_MAX, cores, block_bytes);
        return Err(ManageError::TooManyCores { name: new.name.clone(), cores, fit });
    };
    if split.data_bytes < BAND_BYTES {
        let fits = |usable: &u64| divided(*usable).is_some_and(|s| s.data_bytes >= BAND_BYTES);
        let needs = (1..).map(|n| n * MIB).find(fits).expect("what is large enough fits");
        return Err(ManageError::TooSmall { path: drive.path.clone(), has: drive.bytes, needs });
    }
    Ok(Plan { layout: layout(split.data_bytes)?, split, block_bytes })
}

/// Refuses an array whose journal area has no room for a lane of each of so many cores.
pub(super) fn check_cores(record: &ArrayRecord, cores: u16) -> Result<(), ManageError> {
    let layout = record.layout().map_err(ManageError::Impossible)?;
    let (bytes, block) = (record.areas.journal_bytes, record.block_bytes);
    if !has_journal(&layout) || Shape::new(&layout, bytes, cores, block).is_some() {
        return Ok(());
    }
    let fit = fitting(&layout, bytes, cores, block);
    Err(ManageError::TooManyCores { name: record.name.clone(), cores, fit })
}

/// Bytes of the journal area that an array needs, `least` or more; `None` if none is large enough.
fn journal_bytes(layout: &Layout, least: u64, cores: u16, block: u32) -> Option<u64> {
    if !has_journal(layout) {
        return Some(least);
    }
    let mut sizes = (least..=JOURNAL_BYTES_MAX).step_by(MIB as usize);
    sizes.find(|bytes| Shape::new(layout, *bytes, cores, block).is_some())
}

/// The most cores, fewer than these, that a journal area has room for.
fn fitting(layout: &Layout, bytes: u64, cores: u16, block: u32) -> u16 {
    let fits = |cores: &u16| Shape::new(layout, bytes, *cores, block).is_some();
    (1..cores).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::Level;

    fn new(level: Level) -> NewArray {
        NewArray {
            shared: false,
            name: "a".into(),
            level,
            strip_bytes: 64 << 10,
            block_bytes: None,
        }
    }

    fn files(count: usize, bytes: u64) -> Vec<Offered> {
        let file = |n| Offered { path: format!("d{n}"), bytes, block_bytes: 512, is_file: true };
        (0..count).map(file).collect()
    }

    #[test]
    fn a_drive_that_is_too_small_is_told_the_smallest_size_that_works() {
        for (level, count, cores) in [
            (Level::Raid5, 3, 1),
            (Level::Raid1, 2, 64),
            (Level::Raid6, 32, 64),
            (Level::Jbod, 2, 9),
        ] {
            let Err(ManageError::TooSmall { path, has, needs }) =
                plan(&new(level), &files(count, MIB), cores)
            else {
                panic!("{level}: too small");
            };
            assert_eq!((&*path, has), ("d0", MIB));
            let below = plan(&new(level), &files(count, needs - 1), cores);
            assert!(matches!(below, Err(ManageError::TooSmall { .. })), "{level}");
            let least = plan(&new(level), &files(count, needs), cores).unwrap();
            assert_eq!(least.layout.data_bytes(), MIB, "{level}: one band");
        }
    }

    /// Drives have a larger journal area where that many cores need it.
    #[test]
    fn the_journal_area_has_room_for_all_cores() {
        let made = |cores| plan(&new(Level::Raid6), &files(32, 100 * MIB), cores).unwrap().split;
        let (few, many) = (made(2), made(64));
        assert_eq!(few, format::split(100 * MIB));
        assert!(many.areas.journal_bytes > few.areas.journal_bytes);
        let (more, less) = (many.areas.journal_bytes, few.areas.journal_bytes);
        assert_eq!(few.data_bytes - many.data_bytes, more - less);
    }

    #[test]
    fn no_drive_is_large_enough_for_too_many_cores() {
        let refused = plan(&new(Level::Raid6), &files(32, 100 * MIB), u16::MAX);
        let Err(ManageError::TooManyCores { fit, .. }) = refused else { panic!("{refused:?}") };
        assert!(fit > 64 && plan(&new(Level::Raid6), &files(32, 100 * MIB), fit).is_ok());
    }
}
