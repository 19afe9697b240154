//! The exhaustive small mode: everything that can happen to an array of at most four drives and
//! two stripes.
//!
//! | of      | every                                                                            |
//! |---------|----------------------------------------------------------------------------------|
//! | words   | sequence of so many operations of a small alphabet, a drive's failure among      |
//! |         | them; then the array is left alone until nothing more happens, and stopped       |
//! | begins  | set of drives that lack from the start on, none among them                       |
//! | borders | moment at which a request was submitted or completed, from the start on          |
//! | kept    | subset of the requests that are not durable then                                 |
//! | losses  | set of drives that the level can lose, beside those that lack or failed before   |
//!
//! Each of these is a *combination*, and none is left out, unless a bound is asked for, which
//! counts what it leaves out. What is the same is tried once:
//!
//! - Subsets of a drive's requests that leave it the same image are one.
//! - Combinations that leave the same images on the drives that are there are one, wherever they
//!   come from. A recovery draws nothing but from the image, so it would be the same again; where
//!   blocks may hold something else by then, what it read is held against that.
//!
//! Each recovery is followed by a second, which changes nothing.
//!
//! Drives write whole requests or none here; torn ones are the seeds' part. Invariant: nothing is
//! drawn at random but what the recovery's own machine draws.

use crate::before::still;
use crate::camera::Picture;
use crate::decoder::array::Decoded;
use crate::decoder::map::GroupMap;
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{Areas, Picked, pick, references};
use crate::losses::Losses;
use crate::owed::Owed;
use crate::point::{self, Aim, Content, Context, OPTIONS};
use crate::rig::{ARRAY, BOUND, Blind, Message, Rig, Watch, references_in_order};
use crate::scenario::{drive_bytes, new_array, shape};
use crate::tally::Tally;
use crate::versions::Versions;
use engine::limits::{FLIGHT_QUIET, SWEEP};
use engine::manage::command::Request;
use io::{Blocks, Env, Pool, Priority};
use layout::Level;
use sim::drive::Image;
use sim::{DriveConfig, Rng, SharedSimDrive, World, WorldConfig};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const STRIP: u64 = 4096;

/// Most requests of one drive that are not durable at a border.
const UNDECIDED_MOST: usize = 20;

/// For how long an array is left alone behind a word: until in-flight pages name nothing, and then
/// until its regions are clean.
const QUIET: Nanos = Nanos(2 * FLIGHT_QUIET.0);
const IDLE: Nanos = Nanos(3 * SWEEP.0);

/// One operation: on these blocks of a strip each.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(u64, u64, bool),
    Zero(u64, u64),
    Flush,
    /// A person takes this slot's drive out.
    Fail(usize),
}

/// The levels of a word of the command line; all without one.
pub fn levels(word: Option<&str>) -> Option<Vec<Level>> {
    let Some(word) = word else { return Some(Level::ALL.to_vec()) };
    Level::ALL.iter().find(|level| level.to_string() == word).map(|level| vec![*level])
}

fn width(level: Level) -> usize {
    match level {
        Level::Raid0 | Level::Raid1 | Level::Jbod => 2,
        Level::Raid5 => 3,
        Level::Raid6 | Level::Raid10 => 4,
    }
}

/// What can be asked of two stripes of `k` strips: a strip, part of a stripe, a stripe, across the
/// border of stripes, durable, zeros, a flush, and a failure where that costs nothing.
fn alphabet(k: u64, spare: bool) -> Vec<Operation> {
    let mut all = vec![
        Operation::Write(0, 1, false),
        Operation::Write(k - 1, 2, false),
        Operation::Write(0, k, true),
        Operation::Zero(0, 1),
        Operation::Flush,
    ];
    if k > 1 {
        all.push(Operation::Write(1, 1, true));
        all.push(Operation::Write(0, k, false));
    }
    if spare {
        all.push(Operation::Fail(1));
    }
    all
}

/// Tries every sequence of so many operations on the level; of each border and loss at most `most`
/// images, if there is a bound.
///
/// # Errors
/// What was found.
pub fn run(level: Level, operations: usize, most: Option<u64>, tally: &mut Tally) -> Outcome<()> {
    for volatile in [false, true] {
        let mut small = Small::new(level, volatile, most)?;
        let outcome = small.words(operations);
        tally.add(&small.context.tally);
        let cache = if volatile { "volatile caches" } else { "no caches" };
        outcome.map_err(|f: Failure| f.at(cache))?;
    }
    Ok(())
}

/// A small array after its creation.
struct Small {
    k: u64,
    losses: Losses,
    drives: Vec<SharedSimDrive>,
    versions: Versions,
    most: Option<u64>,
    context: Context,
    /// What volumes were found to hold.
    contents: BTreeSet<Rc<Vec<Content>>>,
}

impl Small {
    fn new(level: Level, volatile: bool, most: Option<u64>) -> Outcome<Self> {
        let width = width(level);
        let (lose, k, group) = shape(level, width);
        let new = new_array(level, STRIP as u32);
        let bytes = drive_bytes(&new, width, 1, 1);
        let drive = |i: usize| {
            SharedSimDrive::new(DriveConfig {
                block_bytes: STRIP as u32,
                volatile_cache: volatile,
                latency_least: Nanos(1_000),
                latency_most: Nanos(1_000),
                split_percent: 0,
                record: false,
                littered: true,
                ..DriveConfig::new(bytes, i as u64)
            })
        };
        let drives: Vec<_> = (0..width).map(drive).collect();
        let mut versions = Versions::new(STRIP as usize, volatile);
        let bytes = 2 * k as u64 * STRIP;
        versions.create("v", bytes);
        versions.settle(0, bytes);
        let rig = Rig::new(quiet(1));
        let list = references_in_order(&drives);
        let wrong = |e| Failure::new(Oracle::Start, format!("not made: {e}"));
        rig.ask(&mut Blind, "a creation", |r| Request::Create(new, list, r))?.map_err(wrong)?;
        let volume = |r| Request::VolumeCreate(ARRAY.into(), "v".into(), bytes, r);
        rig.ask(&mut Blind, "a volume", volume)?.map_err(wrong)?;
        rig.ask(&mut Blind, "a stop", |r| Request::Stop(ARRAY.into(), r))?.map_err(wrong)?;
        let (losses, contents) = (Losses::even(width, group, lose), BTreeSet::new());
        let context = context(&drives);
        Ok(Self { k: k as u64, losses, drives, versions, most, context, contents })
    }

    /// Every set of drives that the level can lose.
    fn sets(&self) -> Vec<u64> {
        self.losses.all(usize::MAX - 1).expect("any number is allowed")
    }

    /// Every word of so many letters, from every begin.
    fn words(&mut self, operations: usize) -> Outcome<()> {
        let spare = self.losses.bears(1);
        let letters = alphabet(self.k, spare);
        for lacking in self.sets() {
            for number in 0..letters.len().pow(operations as u32) {
                let mut left = number;
                let letter = |_| {
                    let letter = letters[left % letters.len()];
                    left /= letters.len();
                    letter
                };
                let word: Vec<Operation> = (0..operations).map(letter).collect();
                self.context.tally.seeds += 1;
                self.word(lacking, &word).map_err(|f| {
                    f.at(format_args!("begun without slots {lacking:#b}, {word:?}"))
                })?;
            }
        }
        Ok(())
    }

    /// Carries a word out once and looks at every way it can be cut.
    fn word(&mut self, lacking: u64, word: &[Operation]) -> Outcome<()> {
        let drives: Vec<_> = self.drives.iter().map(SharedSimDrive::duplicate).collect();
        vanish(&drives, lacking);
        let versions = Rc::new(RefCell::new(self.versions.clone()));
        let mut cutter = Cutter {
            base: self.drives.iter().map(SharedSimDrive::image).collect(),
            drives: drives.clone(),
            versions: versions.clone(),
            failed: 0,
            border: 0,
            borders: Vec::new(),
        };
        let rig = Rig::new(quiet(2));
        let list = references(&drives, &mut Rng::new(3));
        let status = rig.assemble(&mut cutter, list, OPTIONS)?;
        let status = status.map_err(|e| Failure::new(Oracle::Start, format!("refused: {e}")))?;
        let volume = rig.open(&status, &status.volumes[0]).swap_remove(0);
        for operation in word.iter().copied() {
            if let Operation::Fail(slot) = operation {
                self.fail(&rig, &mut cutter, (lacking, slot))?;
                continue;
            }
            let over = Rc::new(RefCell::new(None));
            let (end, held, volume) = (over.clone(), versions.clone(), volume.clone());
            rig.world.env(CoreId(0)).spawn(Priority::First, async move {
                *end.borrow_mut() = Some(carry_out(&volume, &held, operation).await);
            });
            rig.run(&mut cutter, BOUND, "an operation", || over.borrow().is_some())?;
            if over.borrow_mut().take() != Some(Ok(())) {
                let text = "a request failed that nothing stood in the way of";
                return Err(Failure::new(Oracle::Versions, text));
            }
        }
        self.end(&rig, &mut cutter)?;
        rig.world.crash();
        for border in cutter.borders {
            self.look(lacking, &border)?;
        }
        Ok(())
    }

    /// Leaves the array alone until nothing more happens, and stops it.
    fn end(&mut self, rig: &Rig, cutter: &mut Cutter) -> Outcome<()> {
        let failure = |text: String| Err(Failure::new(Oracle::Metadata, text));
        rig.pass(cutter, QUIET);
        let picked = pick(&cutter.drives);
        let decoded = Decoded::open(&picked).expect("it was started");
        let pages = still(&decoded)?;
        self.context.tally.look("metadata: in-flight pages at rest", pages);
        rig.pass(cutter, IDLE);
        let picked = pick(&cutter.drives);
        let decoded = Decoded::open(&picked).expect("it was started");
        if decoded.maps.iter().any(GroupMap::any_dirty) {
            return failure("a region stays dirty that nobody writes".into());
        }
        let flush = cutter.versions.borrow().flush_begins();
        let stopped = rig.ask(cutter, "a stop", |r| Request::Stop(ARRAY.into(), r))?;
        if let Err(error) = stopped {
            return failure(format!("not stopped: {error}"));
        }
        cutter.versions.borrow_mut().flush_ends(&flush);
        cutter.take(rig.world.boundaries());
        let picked = pick(&cutter.drives);
        let decoded = Decoded::open(&picked).expect("it was started");
        match decoded.record.groups.iter().any(|group| group.unclean) {
            true => failure(format!("stopped, and {:?}", decoded.record.groups)),
            false => Ok(()),
        }
    }

    /// Has a person take a drive out: done where the others hold everything, else refused.
    fn fail(&self, rig: &Rig, cutter: &mut Cutter, (lacking, slot): (u64, usize)) -> Outcome<()> {
        let spared = self.losses.bears(lacking | 1 << slot);
        cutter.failed |= if spared { 1 << slot } else { 0 };
        let fail = |r| Request::Fail(ARRAY.into(), format!("slot:{slot}"), r);
        let done = rig.ask(cutter, "a failure", fail)?;
        if done.is_ok() != (spared || lacking >> slot & 1 == 1) {
            let text = format!("a failure of slot {slot}: {:?}", done.map(drop));
            return Err(Failure::new(Oracle::Start, text));
        }
        Ok(())
    }

    /// Looks at every way in which a cut at a border can end.
    fn look(&mut self, lacking: u64, border: &Border) -> Outcome<()> {
        let undecided: usize = border.undecided.iter().sum();
        let ways = 1u64.checked_shl(undecided as u32).unwrap_or(u64::MAX);
        for lost in self.sets() {
            if lost & lacking != lacking || !self.losses.bears(lost | border.failed) {
                continue;
            }
            self.context.tally.combinations[0] =
                self.context.tally.combinations[0].saturating_add(ways);
            self.each_image(lost, border).map_err(|f| {
                f.at(format_args!("at border {}, slots {lost:#b} lost", border.number))
            })?;
        }
        Ok(())
    }

    /// Looks at each image that the drives can be left with that are not lost.
    fn each_image(&mut self, lost: u64, border: &Border) -> Outcome<()> {
        let there = |i: &usize| lost >> i & 1 == 0;
        let counts = || border.choices.iter().enumerate().filter(|(i, _)| there(i));
        let images = counts().fold(1u64, |all, (_, drive)| all.saturating_mul(drive.len() as u64));
        let step = self.most.map_or(1, |most| images.div_ceil(most.max(1)));
        self.context.tally.combinations[2] += images - images.div_ceil(step);
        for number in (0..images).step_by(step as usize) {
            let (mut left, mut digest) = (number, 0u64);
            let mut chosen = vec![0; border.choices.len()];
            for (i, drive) in border.choices.iter().enumerate() {
                let mut one = u64::MAX;
                if there(&i) {
                    chosen[i] = (left % drive.len() as u64) as usize;
                    left /= drive.len() as u64;
                    one = drive[chosen[i]].0;
                }
                digest = digest.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ one;
            }
            if point::known(&mut self.context, digest, &border.versions)? {
                continue;
            }
            let drives = border.choices.iter().zip(chosen).map(|(d, at)| d[at].1.duplicate());
            let drives: Vec<_> = drives.collect();
            vanish(&drives, lost);
            let versions = border.versions.clone();
            let (number, border) = (0, border.number);
            let owed = Owed::default();
            let picture = Picture { number, border, drives, versions, power: true, owed };
            self.context.tally.combinations[1] += 1;
            let refused = self.context.tally.refused;
            point::check_plainly(&mut self.context, picture, digest)?;
            if self.context.tally.refused > refused {
                let text = "refused, though the journal stands for all that was under way";
                return Err(Failure::new(Oracle::Start, text));
            }
            self.keep_one(digest);
        }
        Ok(())
    }

    /// Keeps what volumes held once, of however many images.
    fn keep_one(&mut self, digest: u64) {
        let Some(content) = self.context.found.get_mut(&digest) else { return };
        match self.contents.get(content) {
            Some(same) => *content = same.clone(),
            None => _ = self.contents.insert(content.clone()),
        }
    }
}

fn vanish(drives: &[SharedSimDrive], set: u64) {
    let of = |i: &usize| set >> i & 1 == 1;
    (0..drives.len()).filter(of).for_each(|i| drives[i].vanish());
}

fn context(drives: &[SharedSimDrive]) -> Context {
    Context {
        base: drives.iter().map(Picked::new).collect(),
        origin: drives.to_vec(),
        seen: BTreeSet::new(),
        found: BTreeMap::new(),
        looked_at: BTreeSet::new(),
        tally: Tally::default(),
        unit: STRIP,
        areas: Areas::default(),
        aim: Aim::Anywhere,
        plain: true,
        past: Vec::new(),
    }
}

/// A machine without chance in its mail.
fn quiet(seed: u64) -> WorldConfig {
    WorldConfig { mail_delay_most: Nanos(0), ..WorldConfig::new(seed) }
}

async fn carry_out(
    volume: &engine::Volume<crate::rig::Machine>,
    versions: &Rc<RefCell<Versions>>,
    operation: Operation,
) -> Result<(), io::BlockError> {
    match operation {
        Operation::Write(at, count, fua) => {
            let (from, bytes) = (at * STRIP, count * STRIP);
            let version = versions.borrow_mut().begin(0, from, bytes, false);
            let mut data = Pool::single(bytes as usize);
            versions.borrow().data(0, from, version, &mut data);
            volume.write(from, data.freeze(), fua).await?;
            versions.borrow_mut().end(0, from, bytes, version, fua);
        }
        Operation::Zero(at, count) => {
            let (from, bytes) = (at * STRIP, count * STRIP);
            let version = versions.borrow_mut().begin(0, from, bytes, true);
            volume.write_zeroes(from, bytes, false).await?;
            versions.borrow_mut().end(0, from, bytes, version, false);
        }
        Operation::Flush => {
            let flush = versions.borrow().flush_begins();
            volume.flush().await?;
            versions.borrow_mut().flush_ends(&flush);
        }
        Operation::Fail(_) => {}
    }
    Ok(())
}

/// A border of requests: what each drive can be left with by a cut there.
struct Border {
    number: u64,
    /// Of each drive, how many of its requests are kept or not.
    undecided: Vec<usize>,
    /// Of each drive, the images that differ, and a number that tells them apart.
    choices: Vec<Rc<Vec<(u64, SharedSimDrive)>>>,
    /// What blocks may hold.
    versions: Versions,
    /// Slots that somebody is taking out, or has.
    failed: u64,
}

/// Takes down every border.
struct Cutter {
    base: Vec<Image>,
    drives: Vec<SharedSimDrive>,
    versions: Rc<RefCell<Versions>>,
    failed: u64,
    border: u64,
    borders: Vec<Border>,
}

impl Cutter {
    fn choices(&self, number: usize) -> Vec<(u64, SharedSimDrive)> {
        let drive = &self.drives[number];
        let undecided = drive.undecided();
        assert!(undecided <= UNDECIDED_MOST, "{undecided} requests of a drive are undecided");
        let mut images = BTreeMap::new();
        for kept in 0..1u64 << undecided {
            let left = drive.after_choice(kept);
            images.entry(left.image().digest_from(&self.base[number])).or_insert(left);
        }
        images.into_iter().collect()
    }

    /// Takes down the border at which the machine is.
    fn take(&mut self, border: u64) {
        self.border = border;
        let mut versions = self.versions.borrow().clone();
        versions.crashed();
        let choices = (0..self.drives.len()).map(|i| Rc::new(self.choices(i))).collect();
        let undecided = self.drives.iter().map(SharedSimDrive::undecided).collect();
        let failed = self.failed;
        self.borders.push(Border { number: border, undecided, choices, versions, failed });
    }
}

impl Watch for Cutter {
    fn look(&mut self, world: &World<Message>) {
        let border = world.boundaries();
        if border != self.border {
            self.take(border);
        }
    }
}

const _: () = assert!(STRIP < MIB);
