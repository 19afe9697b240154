//! All drives of a trial, which sits in which slot, and what befalls them.

use crate::decoder::array::{Decoded, Refusal};
use crate::decoder::{PAGE, Raw};
use crate::rig::reference;
use crate::tally::Tally;
use core::ops::Range;
use engine::limits::DRIVE_DEADLINE;
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

/// Two drives that have each other's path at the start for which `rng` is about to be asked.
pub fn swaps(drives: &[SharedSimDrive], rng: &Rng) -> Option<(usize, usize)> {
    // From a generator of its own: what else is drawn stays as it is.
    let mut own = Rng::new(rng.clone().bits() ^ 0x0070_6174_6873);
    let mut there: Vec<usize> = (0..drives.len()).filter(|i| !drives[*i].is_gone()).collect();
    if there.len() < 2 || !own.chance(10) {
        return None;
    }
    let one = there.swap_remove(own.index(there.len()));
    Some((one, there[own.index(there.len())]))
}

/// The drives that are there, as the engine is given them, in any order.
pub fn references(drives: &[SharedSimDrive], rng: &mut Rng) -> Vec<DriveRef<SharedSimDrive>> {
    let there = drives.iter().enumerate().filter(|(_, d)| !d.is_gone());
    let (one, other) = swaps(drives, rng).unwrap_or_default();
    let path = |i| if i == one { other } else { i };
    let path = |i| if i == other { one } else { path(i) };
    let named = |(i, d)| DriveRef { path: reference(d, path(i)).path, ..reference(d, i) };
    let mut list: Vec<_> = there.map(named).collect();
    for i in (1..list.len()).rev() {
        list.swap(i, rng.index(i + 1));
    }
    list
}

/// Where things lie on every drive.
#[derive(Clone, Default, Debug)]
pub struct Areas {
    /// The region map.
    pub map: Range<u64>,
    /// The data area.
    pub data: Range<u64>,
    /// Places that decayed, by the number of their drive and offset.
    pub decayed: Vec<(usize, u64)>,
    /// A place of the map decayed on all drives: the start makes another page of what is left.
    pub map_decayed: bool,
    /// A drive was set back by less than two epochs: what pages of the map show stays there.
    pub set_back: bool,
}

impl Areas {
    /// How many pages a drive may be behind. A start that may be behind itself counts one more: cut
    /// off, it leaves some two behind.
    pub fn behind(&self) -> u64 {
        1 + u64::from(self.map_decayed)
    }

    /// What a block is called that could not be read. One that a cut of power left so before the
    /// data area was counted there.
    fn unreadable(&self, drive: usize, at: u64) -> Option<&'static str> {
        let decayed = self.decayed.contains(&(drive, at / PAGE as u64 * PAGE as u64));
        let journal = (self.map.end..self.data.start).contains(&at);
        match at {
            _ if decayed && journal => Some("unreadable journal block"),
            _ if decayed => Some("unreadable record slot"),
            at if self.map.contains(&at) => Some("unreadable blocks of the map"),
            at if self.data.contains(&at) => Some("unreadable blocks"),
            _ => None,
        }
    }
}

/// Counts the faults that met requests of these drives since they were counted last.
pub fn count_fired(drives: &[SharedSimDrive], areas: &Areas, tally: &mut Tally) {
    for (number, drive) in drives.iter().enumerate() {
        let fired = drive.take_fired();
        tally.fault("read error", fired.reads);
        tally.fault("write error", fired.writes);
        tally.fault("write error on media", fired.bad_writes);
        tally.fault("flush error", fired.flushes);
        tally.fault("vanished", fired.gone);
        tally.fault("slow", fired.slow);
        for span in fired.late {
            let past = span > DRIVE_DEADLINE;
            let name = if past { "hung past the deadline" } else { "hang, then late execution" };
            tally.fault(name, 1);
        }
        let past = fired.held.iter().filter(|span| **span > DRIVE_DEADLINE);
        tally.fault("hung past the deadline", past.count() as u64);
        for kind in fired.unreadable.into_iter().filter_map(|at| areas.unreadable(number, at)) {
            tally.fault(kind, 1);
        }
        for (kind, count) in DISCARDS.into_iter().zip(fired.discards) {
            tally.fault(kind, count);
        }
    }
}

/// Discards, in the order in which drives count them.
const DISCARDS: [&str; 5] =
    ["discard: old", "discard: zeros", "discard: random", "discard: changing", "discard: refused"];

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
