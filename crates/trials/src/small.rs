//! A small array: operations are carried out on it once, and every way is looked at in which a cut
//! of power can end each of them.
//!
//! | of     | every                                                                             |
//! |--------|-----------------------------------------------------------------------------------|
//! | borders| moment at which a request was submitted or completed, from the start on           |
//! | kept   | subset of the requests that are not durable then                                  |
//! | losses | set of drives that the level can lose, beside those that lack or failed before    |
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
//! Drives write whole requests or none here; torn ones are the seeds' part. On several cores mail
//! takes its time, and requests of hosts begin on each core in turn. Invariant: nothing is drawn at
//! random but when mail comes and what the recovery's own machine draws.

use crate::before::still;
use crate::camera::Picture;
use crate::decoder::array::Decoded;
use crate::decoder::map::GroupMap;
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{Areas, Picked, pick, references};
use crate::losses::Losses;
use crate::machine::Message;
use crate::met::Met;
use crate::operation::{Operation, Pending, carry_out};
use crate::owed::Owed;
use crate::point::{self, Aim, Content, Context, OPTIONS};
use crate::rig::{ARRAY, BOUND, Blind, Rig, Watch, reference, references_in_order};
use crate::scenario::{drive_bytes, new_array, shape};
use crate::tally::Tally;
use crate::versions::Versions;
use engine::limits::{FLIGHT_QUIET, SWEEP};
use engine::manage::command::{Request, SlotHealth};
use io::{Env, Priority};
use layout::Level;
use sim::drive::Image;
use sim::{DriveConfig, Rng, SharedSimDrive, World, WorldConfig};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos, Slot};

/// Bytes of a block, and of whatever is written whole.
pub const BLOCK: u64 = 4096;

/// Most requests of one drive that are not durable at a border, where no image is left out.
const UNDECIDED_MOST: usize = 20;

/// For how long an array is left alone behind a word: until in-flight pages name nothing, and then
/// until its regions are clean.
const QUIET: Nanos = Nanos(2 * FLIGHT_QUIET.0);
const IDLE: Nanos = Nanos(3 * SWEEP.0);

/// The longest that mail takes where there are several cores: longer than a request of a drive.
const MAIL_MOST: Nanos = Nanos(20_000);

/// What a small array is made of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its level.
    pub level: Level,
    /// Its drives.
    pub width: usize,
    /// Blocks of a strip.
    pub strip: u64,
    /// Bands of a drive. The volume has two stripes of the last one, and all of those before.
    pub bands: u64,
    /// Drives have caches that lose what is not flushed.
    pub volatile: bool,
    /// Cores of its machine.
    pub cores: u16,
    /// Of each border and set of lost drives at most so many images, if there is a bound.
    pub most: Option<u64>,
}

impl Shape {
    /// Data strips of a stripe.
    pub fn k(&self) -> u64 {
        shape(self.level, self.width).1 as u64
    }

    /// Bytes of the volume.
    fn bytes(&self) -> u64 {
        let (k, group) = (self.k(), shape(self.level, self.width).2);
        let row = self.width as u64 / group as u64 * k * MIB;
        (self.bands - 1) * row + 2 * k * self.strip * BLOCK
    }

    /// A machine: of one core without chance in its mail.
    fn machine(&self, seed: u64) -> WorldConfig {
        let mail_delay_most = if self.cores == 1 { Nanos(0) } else { MAIL_MOST };
        WorldConfig { cores: self.cores, mail_delay_most, ..WorldConfig::new(seed) }
    }
}

/// What operations begin with.
#[derive(Clone)]
pub struct State {
    drives: Vec<SharedSimDrive>,
    versions: Versions,
    /// Slots whose drives failed.
    failed: u64,
    /// The slot that the spare drive is in.
    spare: Option<usize>,
    /// How often it was started: what machines draw at a start must not be what they drew before.
    starts: u64,
}

/// A small array after its creation.
pub struct Small {
    shape: Shape,
    losses: Losses,
    /// What the drives held then.
    base: Vec<Image>,
    /// What came of all that was looked at.
    pub context: Context,
    /// What volumes were found to hold.
    contents: BTreeSet<Rc<Vec<Content>>>,
    /// What words met.
    pub met: Met,
}

impl Small {
    /// Makes an array, with so many `spares` beside it.
    ///
    /// # Errors
    /// `Start` if it can't be made.
    pub fn new(shape: Shape, spares: usize) -> Outcome<(Self, State)> {
        let (lose, _, group) = self::shape(shape.level, shape.width);
        let new = new_array(shape.level, (shape.strip * BLOCK) as u32);
        let bytes = drive_bytes(&new, shape.width, shape.cores, shape.bands);
        let drive = |i: usize| {
            SharedSimDrive::new(DriveConfig {
                block_bytes: BLOCK as u32,
                volatile_cache: shape.volatile,
                latency_least: Nanos(1_000),
                latency_most: Nanos(1_000),
                split_percent: 0,
                record: false,
                littered: true,
                ..DriveConfig::new(bytes, i as u64)
            })
        };
        let drives: Vec<_> = (0..shape.width + spares).map(drive).collect();
        let mut versions = Versions::new(BLOCK as usize, shape.volatile);
        let bytes = shape.bytes();
        versions.create("v", bytes);
        versions.settle(0, bytes);
        let rig = Rig::new(shape.machine(1));
        let list = references_in_order(&drives[..shape.width]);
        let wrong = |e| Failure::new(Oracle::Start, format!("not made: {e}"));
        rig.ask(&mut Blind, "a creation", |r| Request::Create(new, list, r))?.map_err(wrong)?;
        let volume = |r| Request::VolumeCreate(ARRAY.into(), "v".into(), bytes, r);
        rig.ask(&mut Blind, "a volume", volume)?.map_err(wrong)?;
        rig.ask(&mut Blind, "a stop", |r| Request::Stop(ARRAY.into(), r))?.map_err(wrong)?;
        let base = drives.iter().map(SharedSimDrive::image).collect();
        let losses = Losses::even(shape.width, group, lose);
        let context = context(&drives);
        let (contents, met) = (BTreeSet::new(), Met::default());
        let small = Self { shape, losses, base, context, contents, met };
        Ok((small, State { drives, versions, failed: 0, spare: None, starts: 0 }))
    }

    /// Whether these slots can go at once.
    pub fn bears(&self, slots: u64) -> bool {
        self.losses.bears(slots)
    }

    /// Every set of slots that the level can lose.
    pub fn sets(&self) -> Vec<u64> {
        self.losses.all(usize::MAX - 1).expect("any number is allowed")
    }

    /// Carries operations out and stops the array: what is there then.
    ///
    /// # Errors
    /// What was found on the way.
    pub fn after(&mut self, from: &State, word: &[Operation]) -> Outcome<State> {
        let mut cutter = self.cutter(from, 0);
        cutter.on = false;
        let rig = self.carry_out(&mut cutter, 0, word)?;
        self.end(&rig, &mut cutter)?;
        let drives = cutter.drives.iter().map(SharedSimDrive::duplicate).collect();
        let versions = cutter.versions.borrow().clone();
        let (failed, spare, starts) = (cutter.failed, cutter.spare, from.starts + 1);
        Ok(State { drives, versions, failed, spare, starts })
    }

    /// Carries operations out: `count` of the ways, evenly drawn from all, in which a cut of power
    /// can end the last of them.
    ///
    /// # Errors
    /// What was found on the way.
    pub fn cuts(&mut self, from: &State, word: &[Operation], count: u64) -> Outcome<Vec<State>> {
        let mut cutter = self.cutter(from, 0);
        cutter.on = false;
        let (last, first) = word.split_last().expect("there are operations");
        let (rig, volumes) = self.start(&mut cutter, 0)?;
        for operation in first {
            self.operate((&rig, &volumes), &mut cutter, 0, *operation)?;
        }
        cutter.on = true;
        cutter.border = rig.world.boundaries();
        self.operate((&rig, &volumes), &mut cutter, 0, *last)?;
        rig.world.crash();
        let all: u64 = cutter.borders.iter().map(|b| b.images(0)).sum();
        let (step, mut next, mut passed) = (all.div_ceil(count).max(1), 0, 0);
        let mut states = Vec::new();
        for border in &cutter.borders {
            let images = border.images(0);
            while next < passed + images {
                let drives = border.image(next - passed, 0).1;
                let (versions, starts) = (border.versions.clone(), from.starts + 1);
                let (failed, spare) = (border.failed, border.spare);
                states.push(State { drives, versions, failed, spare, starts });
                next += step;
            }
            passed += images;
        }
        Ok(states)
    }

    /// Carries a word out once, without the slots that lack, and looks at every way it can be cut.
    ///
    /// # Errors
    /// What was found.
    pub fn word(&mut self, from: &State, lacking: u64, word: &[Operation]) -> Outcome<()> {
        let mut cutter = self.cutter(from, lacking);
        let rig = self.carry_out(&mut cutter, lacking, word)?;
        self.end(&rig, &mut cutter)?;
        rig.world.crash();
        for border in cutter.borders {
            self.met.borders += 1;
            self.met.at_once += u64::from(border.under_way > 1);
            self.look(lacking, &border)?;
        }
        Ok(())
    }

    fn cutter(&self, from: &State, lacking: u64) -> Cutter {
        let drives: Vec<_> = from.drives.iter().map(SharedSimDrive::duplicate).collect();
        vanish(&drives, self.drives_of(lacking, from.spare));
        Cutter {
            base: self.base.clone(),
            most: self.shape.most,
            drives,
            versions: Rc::new(RefCell::new(from.versions.clone())),
            failed: from.failed,
            spare: from.spare,
            starts: from.starts,
            on: true,
            pending: Pending::default(),
            at: 0,
            border: 0,
            borders: Vec::new(),
        }
    }

    /// The drives of slots: a slot that the spare was put in has two.
    fn drives_of(&self, slots: u64, spare: Option<usize>) -> u64 {
        let put_in = spare.is_some_and(|slot| slots >> slot & 1 == 1);
        slots | u64::from(put_in) << self.shape.width
    }

    fn start(&self, cutter: &mut Cutter, lacking: u64) -> Outcome<(Rig, Vec<Volume>)> {
        let rig = Rig::new(self.shape.machine(2 + cutter.starts));
        let list = references(&cutter.drives, &mut Rng::new(3));
        let status = rig.assemble(cutter, list, OPTIONS)?;
        let refused = |e| format!("refused without slots {lacking:#b}: {e}");
        let status = status.map_err(|e| Failure::new(Oracle::Start, refused(e)))?;
        let volumes = rig.open(&status, &status.volumes[0]);
        Ok((rig, volumes))
    }

    fn carry_out(&self, cutter: &mut Cutter, lacking: u64, word: &[Operation]) -> Outcome<Rig> {
        let (rig, volumes) = self.start(cutter, lacking)?;
        for operation in word.iter().copied() {
            self.operate((&rig, &volumes), cutter, lacking, operation)?;
        }
        self.operate((&rig, &volumes), cutter, lacking, Operation::Join)?;
        Ok(rig)
    }

    fn operate(
        &self,
        (rig, volumes): (&Rig, &[Volume]),
        cutter: &mut Cutter,
        lacking: u64,
        operation: Operation,
    ) -> Outcome<()> {
        cutter.at += 1;
        match operation {
            Operation::Fail(slot) => return self.fail(rig, cutter, (lacking, slot)),
            Operation::Vanish(slot) => {
                cutter.drives[slot].vanish();
                cutter.failed |= 1 << slot;
                return Ok(());
            }
            Operation::Replace(slot) => return self.put_in(rig, cutter, slot, self.shape.width),
            Operation::Return(slot) => {
                cutter.drives[slot].reappear();
                return self.put_in(rig, cutter, slot, slot);
            }
            Operation::Task(kind, action) => {
                let task = |r| Request::Task(ARRAY.into(), kind, None, action, r);
                // It may have ended.
                return rig.ask(cutter, "a task", task).map(|_| ());
            }
            Operation::Rest => return self.rest(rig, cutter),
            Operation::Idle => {
                rig.pass(cutter, IDLE);
                return Ok(());
            }
            Operation::Pass(borders) => {
                let until = rig.world.boundaries() + borders;
                return rig.run(cutter, BOUND, "a request", || rig.world.boundaries() >= until);
            }
            Operation::Join => {}
            _ => {
                let (over, before) = cutter.pending.begin();
                let core = before % volumes.len();
                let (held, volume) = (cutter.versions.clone(), volumes[core].clone());
                rig.world.env(CoreId(core as u16)).spawn(Priority::First, async move {
                    let end = carry_out(&volume, &held, operation).await;
                    *over.borrow_mut() = Some(end);
                });
                if matches!(operation, Operation::Begin(..)) {
                    return Ok(());
                }
            }
        }
        let pending = cutter.pending.clone();
        rig.run(cutter, BOUND, "an operation", || pending.under_way() == 0)?;
        match pending.failed() {
            false => Ok(()),
            true => {
                let text = "a request failed that nothing stood in the way of";
                Err(Failure::new(Oracle::Versions, text))
            }
        }
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
        let out = lacking | cutter.failed;
        let spared = self.losses.bears(out | 1 << slot);
        cutter.failed |= u64::from(spared) << slot;
        let fail = |r| Request::Fail(ARRAY.into(), vec![format!("slot:{slot}")], r);
        let done = rig.ask(cutter, "a failure", fail)?;
        if done.is_ok() != (spared || out >> slot & 1 == 1) {
            let text = format!("a failure of slot {slot}: {:?}", done.map(drop));
            return Err(Failure::new(Oracle::Start, text));
        }
        Ok(())
    }

    /// Puts a drive into a slot.
    fn put_in(&self, rig: &Rig, cutter: &mut Cutter, slot: usize, number: usize) -> Outcome<()> {
        if number == self.shape.width {
            cutter.spare = Some(slot);
        }
        let drive = reference(&cutter.drives[number], number);
        let put_in = |r| Request::Replace(ARRAY.into(), Slot(slot as u16), drive, r);
        let done = rig.ask(cutter, "a drive that is put in", put_in)?;
        let refused = |e| Failure::new(Oracle::Start, format!("a drive is not put in: {e}"));
        done.map(drop).map_err(refused)
    }

    /// Waits until no task runs: who is in sync has not failed any more.
    fn rest(&self, rig: &Rig, cutter: &mut Cutter) -> Outcome<()> {
        let status = rig.wait(cutter)?.expect("it was started");
        if let Some(task) = status.tasks.first().filter(|task| !task.paused) {
            return Err(Failure::new(Oracle::Stall, format!("a task is stuck: {task:?}")));
        }
        for (slot, status) in status.slots.iter().enumerate() {
            cutter.failed &= !(u64::from(status.health == SlotHealth::InSync) << slot);
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
            self.each_image((lost, lost != lacking), border).map_err(|f| {
                let Border { at, number, .. } = border;
                f.at(format_args!("in operation {at}, at border {number}, slots {lost:#b} lost"))
            })?;
        }
        Ok(())
    }

    /// Looks at each image that the drives can be left with that are not lost.
    fn each_image(&mut self, (lost, more): (u64, bool), border: &Border) -> Outcome<()> {
        let lost = self.drives_of(lost, border.spare);
        let images = border.images(lost);
        let step = self.shape.most.map_or(1, |most| images.div_ceil(most.max(1)));
        self.context.tally.combinations[2] += images - images.div_ceil(step);
        for number in (0..images).step_by(step as usize) {
            let (digest, drives) = border.image(number, lost);
            if point::known(&mut self.context, digest, &border.versions)? {
                continue;
            }
            vanish(&drives, lost);
            let versions = border.versions.clone();
            let (number, border) = (0, border.number);
            let owed = Owed::default();
            let picture = Picture { number, border, drives, versions, power: true, owed };
            self.context.tally.combinations[1] += 1;
            self.met.start(&picture.drives, more);
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

type Volume = engine::Volume<crate::machine::Machine>;

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
        unit: BLOCK,
        areas: Areas::default(),
        aim: Aim::Anywhere,
        plain: true,
        shared: false,
        past: Vec::new(),
    }
}

/// A border of requests: what each drive can be left with by a cut there.
struct Border {
    /// The operation that is under way.
    at: usize,
    number: u64,
    /// Of each drive, how many of its requests are kept or not.
    undecided: Vec<usize>,
    /// Of each drive, the images that differ, and a number that tells them apart.
    choices: Vec<Rc<Vec<(u64, SharedSimDrive)>>>,
    /// What blocks may hold.
    versions: Versions,
    /// Slots that somebody is taking out, or has.
    failed: u64,
    /// The slot that the spare drive was put in.
    spare: Option<usize>,
    /// Requests of hosts.
    under_way: usize,
}

impl Border {
    /// How many images there are of the drives that are not lost.
    fn images(&self, lost: u64) -> u64 {
        let there = self.choices.iter().enumerate().filter(|(i, _)| lost >> i & 1 == 0);
        there.fold(1, |all: u64, (_, drive)| all.saturating_mul(drive.len() as u64))
    }

    /// One of them, and a number that tells it apart; drives that are lost are as by any cut.
    fn image(&self, number: u64, lost: u64) -> (u64, Vec<SharedSimDrive>) {
        let (mut left, mut digest, mut drives) = (number, 0u64, Vec::new());
        for (i, choices) in self.choices.iter().enumerate() {
            let (mut at, mut one) = (0, u64::MAX);
            if lost >> i & 1 == 0 {
                at = (left % choices.len() as u64) as usize;
                left /= choices.len() as u64;
                one = choices[at].0;
            }
            digest = digest.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ one;
            drives.push(choices[at].1.duplicate());
        }
        (digest, drives)
    }
}

/// Takes down every border, while it is on.
struct Cutter {
    base: Vec<Image>,
    most: Option<u64>,
    drives: Vec<SharedSimDrive>,
    versions: Rc<RefCell<Versions>>,
    failed: u64,
    spare: Option<usize>,
    starts: u64,
    on: bool,
    /// Requests of hosts.
    pending: Pending,
    /// The operation that is under way, from 1 on.
    at: usize,
    border: u64,
    borders: Vec<Border>,
}

impl Cutter {
    fn choices(&self, number: usize) -> Vec<(u64, SharedSimDrive)> {
        let drive = &self.drives[number];
        let undecided = drive.undecided();
        let most = if self.most.is_some() { 62 } else { UNDECIDED_MOST };
        assert!(undecided <= most, "{undecided} requests of a drive are undecided");
        let mut images = BTreeMap::new();
        let all = 1u64 << undecided;
        // An odd step has every bit of the choice change.
        let step = self.most.map_or(1, |most| (all / (16 * most.max(1))) | 1);
        for kept in (0..all).step_by(step as usize) {
            let left = drive.after_choice(kept);
            images.entry(left.image().digest_from(&self.base[number])).or_insert(left);
        }
        images.into_iter().collect()
    }

    /// Takes down the border at which the machine is.
    fn take(&mut self, border: u64) {
        if !self.on {
            return;
        }
        self.border = border;
        let mut versions = self.versions.borrow().clone();
        versions.crashed();
        let choices = (0..self.drives.len()).map(|i| Rc::new(self.choices(i))).collect();
        let undecided = self.drives.iter().map(SharedSimDrive::undecided).collect();
        let (at, number, failed, spare) = (self.at, border, self.failed, self.spare);
        let under_way = self.pending.under_way();
        let border = Border { at, number, undecided, choices, versions, failed, spare, under_way };
        self.borders.push(border);
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

const _: () = assert!(BLOCK < MIB);
