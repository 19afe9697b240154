//! The drives that are measured: opened or made, and nothing on them that is not to go.
//!
//! Invariant: nothing is written to a drive with data that was not named as one whose data may go.

use super::options::{Options, Source};
use crate::error::BenchError;
use crate::files::check_memory;
use crate::rig::data_area;
use crate::scale::Scale;
use drives::{OpenOptions, SharedDrive};
use format::foreign_signature;
use io::Pool;
use pace::{DriveState, Model};
use std::path::{Path, PathBuf};
use units::{GIB, KIB, MIB};

/// Bytes of a paced drive at least, as it takes for a journal area of full size. What is not
/// written takes no memory.
const LARGE: u64 = 64 * GIB;
/// Bytes at each end of a drive that are looked at.
const LOOK: u64 = MIB;
/// Pieces between the ends that are, and bytes of each.
const PIECES: u64 = 254;
const PIECE: u64 = 64 * KIB;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The drives.
    pub drives: Vec<SharedDrive>,
    /// The first byte of each that is used.
    pub start: u64,
    /// Bytes of each that are used.
    pub bytes: u64,
    /// The model of paced drives, and how many times as slow they are.
    pub model: Option<(&'static Model, u32)>,
    /// Whether it is one device, of which no array is made.
    pub is_device: bool,
}

/// Bytes of a drive so that `data` of them hold `area`.
fn drive_bytes(area: u64, data: usize) -> u64 {
    let each = area.div_ceil(data as u64).next_multiple_of(MIB);
    let mut bytes = each + 8 * MIB;
    while format::split(format::usable_bytes(bytes, false)).data_bytes < each {
        bytes += MIB;
    }
    bytes
}

impl Shelf {
    /// Opens or makes the drives of an array with `data` data strips in a stripe. `busy` says how
    /// busy cores are with such paced drives.
    ///
    /// # Errors
    /// When a drive can't be used, or has data that may not go.
    pub fn open(
        options: &Options,
        data: usize,
        busy: impl FnMut(u32) -> Result<f64, BenchError>,
    ) -> Result<Self, BenchError> {
        match &options.source {
            Source::Drives(paths) => {
                let drives = paths.iter().map(|path| open_one(path, &options.destroy));
                Ok(Self::of(drives.collect::<Result<_, _>>()?, None))
            }
            Source::Device(path) => {
                let drive = open_one(path, &options.destroy)?;
                let bytes = drive.info().bytes;
                Ok(Self { start: 0, bytes, is_device: true, ..Self::of(vec![drive], None) })
            }
            Source::Memory { bytes, count } => {
                check_memory(bytes.saturating_mul(*count as u64))?;
                let drive = |_| SharedDrive::memory(*bytes, 4096, false);
                Ok(Self::of((0..*count).map(drive).collect(), None))
            }
            Source::Model { model, count, scale } => {
                let bytes = drive_bytes(options.area(), data);
                check_memory(bytes.saturating_mul(*count as u64))?;
                let slower = scale.slower(busy)?;
                Ok(Self::paced(model, slower, *count, bytes.max(LARGE)))
            }
        }
    }

    /// No drives: those of other hosts are not here.
    pub fn none() -> Self {
        Self { drives: Vec::new(), start: 0, bytes: 0, model: None, is_device: true }
    }

    /// Paced drives.
    pub fn paced(model: &'static Model, slower: u32, count: usize, bytes: u64) -> Self {
        let paces = DriveState::many(model, slower.into(), count);
        let drives = paces.into_iter().map(|pace| SharedDrive::paced(bytes, 4096, pace));
        Self::of(drives.collect(), Some((model, slower)))
    }

    /// Of each drive the part that an array's data would have.
    fn of(drives: Vec<SharedDrive>, model: Option<(&'static Model, u32)>) -> Self {
        let (start, bytes) = data_area(&drives);
        Self { drives, start, bytes, model, is_device: false }
    }

    /// The drives' speed, of what their model's is; 1 of others.
    pub fn scale(&self) -> Scale {
        Scale::Part(self.model.map_or(1, |(_, slower)| slower))
    }
}

fn open_one(path: &Path, destroy: &[PathBuf]) -> Result<SharedDrive, BenchError> {
    let drive = SharedDrive::open(path, &OpenOptions::default())?;
    if !drive.info().inline && !drive.is_direct() {
        return Err(BenchError::Refused(format!(
            "{}: its file system takes no direct I/O, so that the page cache would answer; use a \
             block device, a file in memory, or another file system",
            path.display()
        )));
    }
    let same = |own: &PathBuf| own == path || canonical(own) == canonical(path);
    if !destroy.iter().any(same)
        && let Some(what) = data_on(&drive)?
    {
        return Err(BenchError::WouldDestroy { path: path.to_owned(), what });
    }
    Ok(drive)
}

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What is on a drive, by its ends and by pieces all over it. Bytes that look random are data here:
/// they may be encrypted.
fn data_on(drive: &SharedDrive) -> Result<Option<String>, BenchError> {
    let bytes = drive.info().bytes;
    let block = u64::from(drive.info().block_bytes);
    let read = |offset: u64, most: u64| -> Result<Vec<u8>, BenchError> {
        let offset = offset / block * block;
        let mut into = Pool::single(most.min(bytes - offset) as usize);
        drive.read_blocking(offset, &mut into).map_err(|error| BenchError::System {
            path: drive.path().to_owned(),
            error: std::io::Error::other(error.to_string()),
        })?;
        Ok(into.to_vec())
    };
    let (head, tail) = (read(0, LOOK)?, read(bytes.saturating_sub(LOOK), LOOK)?);
    if let Some(found) = foreign_signature(&head, &tail) {
        return Ok(Some(format!("{} ({})", found.what, found.detail)));
    }
    let is_blank = |content: &[u8]| content.iter().all(|byte| *byte == content[0]);
    let mut is_data = !is_blank(&head) || !is_blank(&tail);
    let mut pieces = 1..=PIECES;
    while !is_data && let Some(piece) = pieces.next() {
        is_data = !is_blank(&read(bytes / (PIECES + 1) * piece, PIECE)?);
    }
    Ok(is_data.then(|| "data of no known kind".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_of_a_model_hold_the_area() {
        for (area, data) in [(64 * MIB, 7), (units::GIB, 7), (units::GIB, 1)] {
            let bytes = drive_bytes(area, data);
            let shelf = Shelf::paced(pace::by_name("sn840").unwrap(), 4, 8, bytes);
            assert!(shelf.bytes * data as u64 >= area, "{area} of {data}");
            assert_eq!((shelf.drives.len(), shelf.scale()), (8, Scale::Part(4)));
        }
    }

    #[test]
    fn nothing_goes_that_is_not_named() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, vec![0; 4 << 20]).unwrap();
        assert!(open_one(&path, &[]).is_ok());
        for at in [0, 2_000_000, (4 << 20) - 1] {
            let mut content = vec![0; 4 << 20];
            content[at] = 1;
            std::fs::write(&path, &content).unwrap();
            assert!(open_one(&path, &[]).is_err(), "a byte at {at}");
        }
        let content = std::fs::read(&path).unwrap();
        let refused = open_one(&path, &[]);
        assert!(matches!(&refused, Err(BenchError::WouldDestroy { .. })), "{refused:?}");
        assert!(open_one(&path, &[dir.path().join("b")]).is_err());
        assert!(open_one(&path, std::slice::from_ref(&path)).is_ok());
        assert!(open_one(&path, &[dir.path().join(".").join("a")]).is_ok());
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}
