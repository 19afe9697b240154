//! The exhaustive small mode: everything that can happen to an array of at most four drives and
//! two stripes.
//!
//! Every sequence of operations of a small alphabet, cut at every border of a request, with every
//! subset of the requests that are not durable kept, and with each set of drives lost that the
//! level can lose. Drives write whole requests or none here; torn ones are the seeds' part.
//!
//! Invariant: nothing is drawn at random but what the recovery's own machine draws.

use crate::abilities::REGION_MAP;
use crate::camera::Picture;
use crate::failure::{Failure, Outcome};
use crate::fleet::{Areas, Picked, references};
use crate::point::{self, Aim, Context, OPTIONS};
use crate::rig::{ARRAY, BOUND, Blind, Message, Rig, Watch, references_in_order};
use crate::scenario::shape;
use crate::tally::Tally;
use crate::versions::Versions;
use engine::manage::command::{NewArray, Request};
use io::{Blocks, Env, Pool, Priority};
use layout::Level;
use sim::{DriveConfig, Rng, SharedSimDrive, World, WorldConfig};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const STRIP: u64 = 4096;

/// Most subsets of requests kept at one border.
const KEPT_MOST: u64 = 64;

/// One operation: on these blocks of a strip each.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(u64, u64, bool),
    Zero(u64, u64),
    Flush,
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
/// border of stripes, durable, zeros, a flush.
fn alphabet(k: u64) -> Vec<Operation> {
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
    all
}

/// Tries every sequence of so many operations on the level.
///
/// # Errors
/// What was found.
pub fn run(level: Level, operations: usize, tally: &mut Tally) -> Outcome<()> {
    for (volatile, map) in [(false, false), (true, false), (false, true), (true, true)] {
        if map && !REGION_MAP.there {
            continue;
        }
        let small = Small::new(level, volatile, map)?;
        let letters = alphabet(small.k);
        let count = letters.len().pow(operations as u32);
        for number in 0..count {
            let mut left = number;
            let word: Vec<Operation> = (0..operations)
                .map(|_| {
                    let letter = letters[left % letters.len()];
                    left /= letters.len();
                    letter
                })
                .collect();
            let mut sum = Tally { seeds: 1, ..Tally::default() };
            let outcome = small.word(&word, &mut sum);
            tally.add(&sum);
            let cache = if volatile { "volatile caches" } else { "no caches" };
            let with = if map { "a map" } else { "no map" };
            outcome.map_err(|f: Failure| f.at(format_args!("{with}, {cache}, {word:?}")))?;
        }
    }
    Ok(())
}

/// A small array after its creation.
struct Small {
    k: u64,
    /// Sets of drives that it can lose, none first.
    losses: Vec<Vec<usize>>,
    drives: Vec<SharedSimDrive>,
    versions: Versions,
}

impl Small {
    fn new(level: Level, volatile: bool, map: bool) -> Outcome<Self> {
        let width = width(level);
        let (lose, k, group) = shape(level, width);
        let drive = |i: usize| {
            SharedSimDrive::new(DriveConfig {
                block_bytes: STRIP as u32,
                volatile_cache: volatile,
                latency_least: Nanos(1_000),
                latency_most: Nanos(1_000),
                split_percent: 0,
                record: false,
                littered: true,
                ..DriveConfig::new(crate::scenario::drive_bytes(1, map), i as u64)
            })
        };
        let drives: Vec<_> = (0..width).map(drive).collect();
        let mut versions = Versions::new(STRIP as usize, volatile);
        let bytes = 2 * k as u64 * STRIP;
        versions.create("v", bytes);
        versions.settle(0, bytes);
        let rig = Rig::new(quiet(1));
        let new = NewArray {
            name: ARRAY.into(),
            level,
            strip_bytes: STRIP as u32,
            block_bytes: None,
            region_map: map,
        };
        let list = references_in_order(&drives);
        let wrong = |e| Failure::new(crate::failure::Oracle::Start, format!("not made: {e}"));
        rig.ask(&mut Blind, "a creation", |r| Request::Create(new, list, r))?.map_err(wrong)?;
        let volume = |r| Request::VolumeCreate(ARRAY.into(), "v".into(), bytes, r);
        rig.ask(&mut Blind, "a volume", volume)?.map_err(wrong)?;
        rig.ask(&mut Blind, "a stop", |r| Request::Stop(ARRAY.into(), r))?.map_err(wrong)?;
        let losses = losses(lose, group, width);
        Ok(Self { k: k as u64, losses, drives, versions })
    }

    /// Carries a word out once and looks at every way it can be cut.
    fn word(&self, word: &[Operation], tally: &mut Tally) -> Outcome<()> {
        let drives: Vec<_> = self.drives.iter().map(SharedSimDrive::duplicate).collect();
        let versions = Rc::new(RefCell::new(self.versions.clone()));
        let mut cutter = Cutter {
            drives: drives.clone(),
            versions: versions.clone(),
            border: 0,
            pictures: Vec::new(),
        };
        let rig = Rig::new(quiet(2));
        let list = references(&drives, &mut Rng::new(3));
        let status = rig.assemble(&mut cutter, list, OPTIONS)?;
        let status = status
            .map_err(|e| Failure::new(crate::failure::Oracle::Start, format!("refused: {e}")))?;
        let volume = rig.open(&status, &status.volumes[0]).swap_remove(0);
        let over = Rc::new(RefCell::new(None));
        let (end, word, held) = (over.clone(), word.to_vec(), versions.clone());
        rig.world.env(CoreId(0)).spawn(Priority::First, async move {
            let mut outcome = Ok(());
            for operation in word {
                outcome = outcome.and(carry_out(&volume, &held, operation).await);
            }
            *end.borrow_mut() = Some(outcome);
        });
        rig.run(&mut cutter, BOUND, "a word", || over.borrow().is_some())?;
        if over.borrow_mut().take() != Some(Ok(())) {
            let text = "a request of a healthy array failed";
            return Err(Failure::new(crate::failure::Oracle::Versions, text));
        }
        rig.world.crash();
        self.look(cutter.pictures, tally)
    }

    fn look(&self, pictures: Vec<Picture>, tally: &mut Tally) -> Outcome<()> {
        let mut context = Context {
            base: self.drives.iter().map(Picked::new).collect(),
            origin: self.drives.clone(),
            seen: BTreeSet::new(),
            found: BTreeMap::new(),
            looked_at: BTreeSet::new(),
            tally: Tally::default(),
            unit: STRIP,
            areas: Areas::default(),
            beyond: false,
            aim: Aim::Anywhere,
            past: Vec::new(),
        };
        let mut outcome = Ok(());
        for (number, picture) in pictures.into_iter().enumerate() {
            let border = picture.border;
            // One loss each, in turn; the first is none.
            for loss in [0, 1 + number % self.losses.len().max(2)] {
                let Some(lost) = self.losses.get(loss) else { continue };
                let drives: Vec<_> = picture.drives.iter().map(SharedSimDrive::duplicate).collect();
                lost.iter().for_each(|i| drives[*i].vanish());
                let one = Picture { drives, ..picture.clone() };
                let mut rng = Rng::new(number as u64);
                outcome = point::check_plainly(&mut context, one, &mut rng)
                    .map_err(|f| f.at(format_args!("at border {border}, lost {lost:?}")));
                if outcome.is_err() {
                    break;
                }
            }
            if outcome.is_err() {
                break;
            }
        }
        tally.add(&context.tally);
        outcome
    }
}

/// A machine without chance in its mail.
fn quiet(seed: u64) -> WorldConfig {
    WorldConfig { mail_delay_most: Nanos(0), ..WorldConfig::new(seed) }
}

fn losses(lose: usize, group: usize, width: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    if lose > 0 {
        all.extend((0..width).map(|i| vec![i]));
    }
    if lose > 1 || (lose > 0 && group < width) {
        let fine = |a: usize, b: usize| lose > 1 || a / group != b / group;
        let pairs = (0..width).flat_map(|a| (a + 1..width).map(move |b| (a, b)));
        all.extend(pairs.filter(|(a, b)| fine(*a, *b)).map(|(a, b)| vec![a, b]));
    }
    all
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
    }
    Ok(())
}

/// Takes a picture of every way a cut at every border can end.
struct Cutter {
    drives: Vec<SharedSimDrive>,
    versions: Rc<RefCell<Versions>>,
    border: u64,
    pictures: Vec<Picture>,
}

impl Watch for Cutter {
    fn look(&mut self, world: &World<Message>) {
        let border = world.boundaries();
        if border == self.border {
            return;
        }
        self.border = border;
        let mut versions = self.versions.borrow().clone();
        versions.crashed();
        let counts: Vec<usize> = self.drives.iter().map(SharedSimDrive::undecided).collect();
        let bits: usize = counts.iter().sum();
        let ways = 1u64 << bits.min(40);
        let step = (ways / KEPT_MOST).max(1) | 1;
        for way in (0..ways).step_by(if ways <= KEPT_MOST { 1 } else { step as usize }) {
            let mut left = way;
            let drives = self.drives.iter().zip(&counts).map(|(drive, count)| {
                let kept = left & ((1 << count) - 1);
                left >>= count;
                drive.after_choice(kept)
            });
            let drives = drives.collect();
            let versions = versions.clone();
            self.pictures.push(Picture { number: 0, border, drives, versions, power: true });
        }
    }
}

const _: () = assert!(STRIP < MIB);
