//! Courses of events that golden images are made of: a small array of each level, with some
//! content, stopped or cut off in every state that matters to who opens it later.
//!
//! What random choices there are come from a seed; the least one is taken whose array is worth
//! keeping: something was cut off, a rebuild was under way, the next start has something to do.

use super::archive::{Archive, BLOCK, LOST, block};
use crate::common::{FORCE, Machine, Rig, record, references};
use engine::Volume;
use format::{FORMAT_VERSION, SlotState};
use io::{Blocks, Env, Pool, Priority};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use std::cell::RefCell;
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

/// What happened to an array last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It was stopped.
    Clean,
    /// Its power was cut while it was written to.
    Dirty,
    /// As many drives as it can lose failed; it was written to and stopped.
    Degraded,
    /// The same, and its power was cut while it was written to.
    DegradedDirty,
    /// It was stopped while a drive that was put in was being filled.
    Rebuilding,
    /// Its power was cut while it was written to and such a drive was being filled.
    RebuildingDirty,
    /// New drives were filled while another could not read a block, and it was stopped.
    Lost,
}

impl Fate {
    /// Its name.
    fn words(self) -> &'static str {
        match self {
            Fate::Clean => "clean",
            Fate::Dirty => "dirty",
            Fate::Degraded => "degraded",
            Fate::DegradedDirty => "degraded dirty",
            Fate::Rebuilding => "rebuilding",
            Fate::RebuildingDirty => "rebuilding dirty",
            Fate::Lost => "lost",
        }
    }
}

/// A golden image that is to be.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// Level and number of drives.
    pub shape: (Level, usize),
    /// Slots that fail where any do; the first gets the new drive.
    pub fail: &'static [usize],
    /// What happens.
    pub fate: Fate,
}

const SHAPES: &[(Level, usize, &[usize])] = &[
    (Level::Jbod, 2, &[]),
    (Level::Raid0, 2, &[]),
    (Level::Raid1, 2, &[1]),
    (Level::Raid10, 4, &[1]),
    (Level::Raid5, 3, &[1]),
    (Level::Raid6, 4, &[1, 3]),
];

const FATES: [Fate; 7] = [
    Fate::Clean,
    Fate::Dirty,
    Fate::Degraded,
    Fate::DegradedDirty,
    Fate::Rebuilding,
    Fate::RebuildingDirty,
    Fate::Lost,
];

/// All of them.
pub fn all() -> Vec<Course> {
    let mut courses = Vec::new();
    for &(level, width, fail) in SHAPES {
        for fate in FATES {
            let whole = matches!(fate, Fate::Clean | Fate::Dirty);
            if whole || !fail.is_empty() {
                courses.push(Course { shape: (level, width), fail, fate });
            }
        }
    }
    courses
}

const STRIP: u32 = 4096;
/// Bands of every drive.
const BANDS: u64 = 3;

/// Where each part of the volume is written, in blocks from its begin: single blocks, parts of
/// strips, over their borders, whole stripes.
const FIRST: &[(usize, usize)] = &[(0, 1), (5, 2), (16, 40), (149, 6)];
const AGAIN: &[(usize, usize)] = &[(0, 1), (18, 3), (150, 2)];
const MISSING: &[(usize, usize)] = &[(5, 1), (30, 5), (70, 3)];
const LAST: &[(usize, usize)] = &[(1, 2), (20, 9), (36, 20), (151, 2), (200, 1)];

/// An array in the middle of it.
struct Scene {
    course: Course,
    rig: Rig,
    volume: Volume<Machine>,
    drives: Vec<SharedSimDrive>,
    /// What each block may hold.
    blocks: Rc<RefCell<Vec<Vec<u8>>>>,
}

/// A drive full of one byte.
fn drive(bytes: u64, seed: u64, fill: u8) -> SharedSimDrive {
    let made = SharedSimDrive::new(DriveConfig { littered: true, ..DriveConfig::new(bytes, seed) });
    made.overwrite(0, &vec![fill; bytes as usize]);
    made
}

impl Course {
    /// The name of its file.
    pub fn name(&self) -> String {
        let words = self.fate.words().replace(' ', "-");
        format!("v{FORMAT_VERSION}-{}-{words}", self.shape.0)
    }

    fn dirty(&self) -> bool {
        matches!(self.fate, Fate::Dirty | Fate::DegradedDirty | Fate::RebuildingDirty)
    }

    fn lacks(&self) -> bool {
        !matches!(self.fate, Fate::Clean | Fate::Dirty)
    }

    fn rebuilds(&self) -> bool {
        matches!(self.fate, Fate::Rebuilding | Fate::RebuildingDirty)
    }

    fn parity(&self) -> bool {
        matches!(self.shape.0, Level::Raid5 | Level::Raid6)
    }

    /// Has it happen.
    pub fn make(&self) -> Archive {
        (1..200).find_map(|seed| self.attempt(seed)).expect("a seed that is worth keeping")
    }

    fn attempt(&self, seed: u64) -> Option<Archive> {
        let mut scene = self.begin(seed);
        let telling = scene.play();
        let Scene { rig, volume, drives, blocks, .. } = scene;
        drop((rig, volume));
        if !telling || self.dirty() && !self.owes(&drives) {
            return None;
        }
        let (level, width) = self.shape;
        Some(Archive {
            about: format!("level {level} of {width} drives, {}", self.fate.words()),
            failed: match self.fate {
                Fate::Lost => Vec::new(),
                _ if self.lacks() => self.fail.to_vec(),
                _ => Vec::new(),
            },
            blocks: Rc::try_unwrap(blocks).expect("nobody writes").into_inner(),
            drives: drives.iter().map(SharedSimDrive::contents).collect(),
        })
    }

    fn begin(&self, seed: u64) -> Scene {
        let (level, width) = self.shape;
        let bytes = (BANDS + 4) * MIB;
        let drives: Vec<_> = (0..width as u64).map(|i| drive(bytes, seed + i, 0xa5)).collect();
        let rig = Rig::new(seed, 1);
        rig.create(level, &drives, STRIP).unwrap();
        let total = record(&drives[0]).layout().unwrap().array_bytes() - 3 * BLOCK as u64;
        let volume = rig.volume(total).remove(0);
        let blocks = Rc::new(RefCell::new(vec![vec![0]; total as usize / BLOCK]));
        Scene { course: *self, rig, volume, drives, blocks }
    }

    /// Whether the next start has something to do for what was cut off.
    fn owes(&self, drives: &[SharedSimDrive]) -> bool {
        if self.fail.is_empty() || self.lacks() && !self.parity() {
            return true;
        }
        let copies = crate::common::duplicates(drives);
        let rig = Rig::new(1, 1);
        rig.assemble(&references(&copies), FORCE).unwrap();
        if !self.lacks() {
            rig.wait();
        }
        let found = record(&copies[0]);
        let data = |d: &SharedSimDrive| d.peek(found.data_offset, BANDS * MIB);
        drives.iter().zip(&copies).any(|(before, after)| data(before) != data(after))
    }
}

impl Scene {
    /// Everything up to the end; false if it is not worth keeping.
    fn play(&mut self) -> bool {
        self.write_all(FIRST, 1);
        self.write_all(AGAIN, 2);
        if self.course.lacks() {
            for slot in self.course.fail {
                self.rig.fail(*slot).unwrap();
            }
            self.guarded();
            self.write_all(MISSING, 3);
        }
        if self.course.fate == Fate::Lost {
            self.lose();
        }
        if self.course.rebuilds() {
            self.replace(self.course.fail[0]);
            while self.border() == Some(0) {
                self.rig.world.run_for(Nanos::from_micros(50));
            }
        }
        if !self.course.dirty() {
            self.rig.stop();
            return !self.course.rebuilds() || self.border().is_some_and(|b| b > 0);
        }
        self.cut_off()
    }

    /// Puts a new drive in a slot. What was in it before stays beside the others.
    fn replace(&mut self, slot: usize) {
        let spare = drive(self.drives[0].info().bytes, 77, 0x5a);
        self.rig.replace(slot, &spare).unwrap();
        let before = std::mem::replace(&mut self.drives[slot], spare);
        self.drives.push(before);
    }

    /// Fills new drives where the first can't read the second block of its third strip.
    fn lose(&mut self) {
        let at = self.newest().data_offset + 2 * u64::from(STRIP) + BLOCK as u64;
        self.drives[0].fail_range(at, BLOCK as u64);
        for slot in self.course.fail {
            self.replace(*slot);
            self.rig.wait();
        }
        let list = self.rig.status().unreadable;
        assert!(!list.is_empty(), "{}: nothing is lost", self.course.name());
        for range in list {
            let blocks =
                range.offset as usize / BLOCK..(range.offset + range.bytes) as usize / BLOCK;
            self.blocks.borrow_mut()[blocks].fill(vec![LOST]);
        }
    }

    /// Writes of which nobody knows what became, and the end of the power.
    fn cut_off(&self) -> bool {
        let open = Rc::new(RefCell::new(0));
        for (from, count) in self.parts(LAST) {
            self.blocks.borrow_mut()[from..from + count].iter_mut().for_each(|b| b.push(9));
            let (volume, blocks, data) =
                (self.volume.clone(), self.blocks.clone(), data(from, count, 9));
            let open = open.clone();
            *open.borrow_mut() += 1;
            self.rig.env().spawn(Priority::First, async move {
                volume.write((from * BLOCK) as u64, data.freeze(), false).await.unwrap();
                blocks.borrow_mut()[from..from + count].fill(vec![9]);
                *open.borrow_mut() -= 1;
            });
        }
        let seed = self.rig.world.seed();
        self.rig.world.run_for(Nanos::from_micros(10 + seed * 37 % 700));
        let lacks = self.course.parity() && self.course.lacks();
        let guarded = !lacks || self.newest().groups[0].guarded;
        self.rig.world.crash();
        let rebuilt = !self.course.rebuilds() || self.border().is_some_and(|b| b > 0);
        guarded && rebuilt && *open.borrow() > 0
    }

    /// Ranges of blocks in each third of the volume.
    fn parts(&self, ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let third = self.blocks.borrow().len() / 3 / 1024 * 1024;
        let of = |part| ranges.iter().map(move |(from, count)| (part * third + from, *count));
        (0..3).flat_map(of).collect()
    }

    fn write_all(&self, ranges: &[(usize, usize)], generation: u8) {
        for (from, count) in self.parts(ranges) {
            let (volume, data) = (self.volume.clone(), data(from, count, generation));
            let at = (from * BLOCK) as u64;
            let write = async move { volume.write(at, data.freeze(), from % 2 == 0).await };
            self.rig.world.block_on(CoreId(0), write).unwrap();
            self.blocks.borrow_mut()[from..from + count].fill(vec![generation]);
        }
    }

    fn newest(&self) -> format::ArrayRecord {
        self.drives.iter().map(record).max_by_key(|r| r.sequence).unwrap()
    }

    /// Waits until the journal stands for what is written, where there is one.
    fn guarded(&self) {
        if self.course.parity() {
            while !self.newest().groups[0].guarded {
                self.rig.world.run_for(Nanos::from_micros(50));
            }
        }
    }

    /// How far the rebuild has come, while it is under way.
    fn border(&self) -> Option<u64> {
        match self.newest().slots[self.course.fail[0]].state {
            SlotState::Rebuilding { border } => Some(border),
            _ => None,
        }
    }
}

fn data(from: usize, count: usize, generation: u8) -> io::BufMut {
    let mut data = Pool::single(count * BLOCK);
    for (i, part) in data.chunks_mut(BLOCK).enumerate() {
        part.copy_from_slice(&block(from + i, generation));
    }
    data
}
