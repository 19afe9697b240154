//! All drives of a trial, which sits in which slot, and what befalls them.

use crate::decoder::array::{Decoded, Refusal};
use crate::decoder::{PAGE, Raw};
use crate::rig::reference;
use crate::tally::Tally;
use engine::manage::command::DriveRef;
use sim::drive::Image;
use sim::{Rng, SharedSimDrive};

/// The content of a drive as the decoder reads it.
pub struct Picked {
    image: Image,
    unreadable: Vec<u64>,
    block: u64,
}

impl Picked {
    /// What a drive holds now.
    pub fn new(drive: &SharedSimDrive) -> Self {
        let block = u64::from(drive.info().block_bytes);
        Self { image: drive.image(), unreadable: drive.unreadable(), block }
    }

    /// Whether blocks in a range can't be read.
    pub fn unreadable_within(&self, bytes: core::ops::Range<u64>) -> bool {
        self.unreadable.iter().any(|at| bytes.contains(at))
    }

    /// The pages.
    pub fn image(&self) -> &Image {
        &self.image
    }
}

impl Raw for Picked {
    fn bytes(&self) -> u64 {
        self.image.bytes() as u64
    }

    fn page(&self, number: u64) -> &[u8; PAGE] {
        self.image.page(number as usize)
    }

    fn unreadable(&self, at: u64, bytes: u64) -> bool {
        self.unreadable.iter().any(|bad| *bad < at + bytes && at < bad + self.block)
    }
}

/// What the drives that are there hold.
pub fn pick(drives: &[SharedSimDrive]) -> Vec<Picked> {
    drives.iter().filter(|d| !d.is_gone()).map(Picked::new).collect()
}

/// What the document says of a start with these drives.
pub fn expected(drives: &[Picked]) -> Result<(), Refusal> {
    Decoded::open(drives)?.may_start()
}

/// The drives that are there, as the engine is given them, in any order.
pub fn references(drives: &[SharedSimDrive], rng: &mut Rng) -> Vec<DriveRef<SharedSimDrive>> {
    let there = drives.iter().enumerate().filter(|(_, d)| !d.is_gone());
    let mut list: Vec<_> = there.map(|(i, d)| reference(d, i)).collect();
    for i in (1..list.len()).rev() {
        list.swap(i, rng.index(i + 1));
    }
    list
}

/// Counts how requests in flight were torn when the pictures of these drives were taken.
pub fn count_torn(drives: &[SharedSimDrive], tally: &mut Tally) {
    for drive in drives {
        let torn = drive.torn();
        tally.fault("torn: none", torn.none);
        tally.fault("torn: all", torn.all);
        tally.fault("torn: prefix", torn.prefix);
        tally.fault("torn: subset", torn.subset);
        tally.fault("torn: shorn", torn.shorn);
        tally.fault("torn: suffix", torn.suffix);
        tally.fault("torn: unreadable", torn.unreadable);
        tally.fault("torn: garbage", torn.garbage);
    }
}
