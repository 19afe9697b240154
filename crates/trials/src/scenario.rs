//! What a seed means: a geometry, drives, and sessions of steps.
//!
//! Invariant: everything is drawn here, from the seed, before anything runs; what runs later
//! draws from generators of its own. So steps can be left out, or a machine made smaller, and the
//! rest stays as it is: that is how failures shrink.

use crate::abilities::{CATCH_UP, DRIVE_DISCARD};
use crate::paths::Trouble;
use crate::rig::ARRAY;
use crate::trouble::{self, Kind};
use core::fmt;
use engine::limits::DRIVES_MAX;
use engine::manage::command::{NewArray, TaskAction, TaskKind};
use engine::manage::plan::{Offered, plan};
use layout::Level;
use sim::drive::{DiscardContent, Tears};
use sim::{DriveConfig, Rng, WorldConfig};
use units::{MIB, Nanos};

/// What a host asks for, in bytes of the one volume or the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// Write.
    Write {
        /// Durable before the answer.
        fua: bool,
    },
    /// Write zeros.
    Zero {
        /// Durable before the answer.
        fua: bool,
    },
    /// Discard.
    Discard,
    /// Read.
    Read,
    /// Flush.
    Flush,
    /// Discard, or write zeros to, all of a row (a band of every group), which is forgotten.
    Row {
        /// Zeros are wanted.
        zero: bool,
    },
}

/// What befalls a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Blocks that can't be read until they are written.
    Unreadable,
    /// The same at the begin of the data area, where the first volume lies.
    UnreadableFront,
    /// A read fails once.
    Read,
    /// A write fails once, having written any part.
    Write,
    /// A write fails once with blocks that can't be written.
    WriteMedia,
    /// A flush fails.
    Flush,
    /// It is gone.
    Vanish,
    /// It is back.
    Return,
    /// It is much slower.
    Slow,
    /// It answers nothing for a while; what it was asked runs late.
    Hang,
    /// It answers nothing for longer than the deadline, for so many seconds; what it was asked
    /// runs late.
    Hung(u64),
    /// One of its requests makes no progress for so many seconds, less than the deadline.
    Held(u64),
    /// Blocks of its region map that can't be read until they are written.
    UnreadableMap,
}

/// What a person does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admin {
    /// Takes the drive of a victim's slot out.
    Fail,
    /// Puts a spare drive into a failed slot.
    Replace,
    /// Puts the drive that was in a failed slot back, power cut meanwhile or not.
    Return,
    /// Asks for a scrub.
    Scrub,
    /// Has a task wait, go on or end.
    Task(TaskKind, TaskAction),
    /// Makes another volume.
    Create,
    /// Deletes it.
    Delete,
    /// Changes the size of a volume, to so many pages.
    Resize(u64),
}

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Of a host: what, and how many blocks at most.
    Host(Host, u64),
    /// Of a drive: what, and which of the victims.
    Drive(Fault, usize),
    /// Of a person: what, and which of the victims.
    Person(Admin, usize),
    /// Of a port of the shelf.
    Port(Trouble),
    /// Nobody does anything new for so many seconds.
    Wait(u64),
    /// Nobody does anything new before people have their answers.
    Answered,
}

/// A step with its place in the whole scenario, by which it can be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its number.
    pub number: usize,
    /// What is done.
    pub what: What,
    /// Where all its random choices come from.
    pub seed: u64,
}

/// How a session ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The array is stopped.
    Stop,
    /// Power is cut.
    Cut,
    /// The process ends; drives keep their caches.
    Kill,
    /// The server stands still. Another takes the array over, and then the first goes on. Only of a
    /// shared array.
    Halt,
    /// The server is no more, and what it had sent to the shelf is still there. Another one comes.
    Dead(Next),
}

impl End {
    /// Whether another server comes while something of this one may still be under way.
    pub const fn has_next(self) -> bool {
        matches!(self, Self::Halt | Self::Dead(_))
    }
}

/// Who comes after a server that is no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The same host's next process: the shelf has heard of the end of the last one.
    Process,
    /// The same host, started anew.
    Boot,
    /// Another host.
    Host,
}

impl Next {
    /// What the tally calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "server dead: its next process",
            Self::Boot => "server dead: its next boot",
            Self::Host => "server dead: another server",
        }
    }
}

/// From one start of the array to its end.
#[derive(Clone, Debug)]
pub struct Session {
    /// The machine.
    pub world: WorldConfig,
    /// Requests of hosts under way at a time.
    pub lanes: usize,
    /// Requests lie in so many blocks at the begin of a volume.
    pub focus: u64,
    /// What is done.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: End,
}

/// What a seed means.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// The level.
    pub level: Level,
    /// The drives of the array and, behind them, spare ones.
    pub drives: Vec<DriveConfig>,
    /// How many of them are the array's.
    pub width: usize,
    /// Slots that faults may befall: no more of a group than it can lose. With `beyond`, one more
    /// behind them.
    pub victims: Vec<usize>,
    /// Blocks may be unreadable on one drive more than redundancy covers: then errors are right,
    /// wrong bytes never.
    pub beyond: bool,
    /// Cores of the machine that makes it.
    pub made_on: u16,
    /// Bytes of a row: one band of every group of a range.
    pub row: u64,
    /// Where the data area of every drive begins, and its bytes.
    pub data: (u64, u64),
    /// Strip size in bytes.
    pub strip: u32,
    /// Bytes that lie before the first volume and belong to nobody when it is written: so many that
    /// it lies across the border of two regions of the map.
    pub gap: u64,
    /// Bytes of the first volume.
    pub volume: u64,
    /// Requests begin and end at multiples of this.
    pub unit: u64,
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Most pictures that are taken of the whole.
    pub pictures: usize,
    /// A run of steps that it has.
    pub trouble: Option<Kind>,
    /// Its drives are behind a shelf; whether controllers of that can end each other.
    pub shelf: Option<bool>,
    /// Servers say on the drives which of them has the array.
    pub shared: bool,
}

/// What is left out or made smaller of a scenario.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Cuts {
    /// Steps left out.
    pub without: Vec<usize>,
    /// One core only.
    pub one_core: bool,
    /// One request of hosts at a time.
    pub one_lane: bool,
    /// Sessions, the first ones.
    pub sessions: Option<usize>,
    /// The only picture that is looked at.
    pub picture: Option<usize>,
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.without.is_empty() {
            let list: Vec<String> = self.without.iter().map(usize::to_string).collect();
            write!(f, " --without {}", list.join(","))?;
        }
        if self.one_core {
            f.write_str(" --one-core")?;
        }
        if self.one_lane {
            f.write_str(" --one-lane")?;
        }
        if let Some(n) = self.sessions {
            write!(f, " --sessions {n}")?;
        }
        if let Some(n) = self.picture {
            write!(f, " --picture {n}")?;
        }
        Ok(())
    }
}

/// One in so many trials has its drives behind a shelf, if it may.
const SHELVES: u64 = 4;
/// As some may not, so many of a hundred of the others have, too.
const SHELVES_MORE: u8 = 8;
/// One in so many of the others has a shared array.
const SHARED: u64 = 8;
/// Drives of such a trial, at most.
const SHELF_MOST: usize = 16;

/// Most cores of a session.
const CORES_MOST: u16 = 4;

/// What people ask for who make the array of a trial.
pub fn new_array(level: Level, strip_bytes: u32) -> NewArray {
    let (name, block_bytes) = (ARRAY.into(), None);
    NewArray { shared: false, name, level, strip_bytes, block_bytes }
}

/// Where the data area of drives of so many bytes begins, and how many it has; none of drives that
/// are too small.
fn data_area(new: &NewArray, width: usize, cores: u16, drive: &DriveConfig) -> (u64, u64) {
    let (bytes, block_bytes) = (drive.bytes, drive.block_bytes);
    let offered = Offered { path: String::new(), bytes, block_bytes, is_file: true };
    let made = plan(new, &vec![offered; width], cores);
    made.map_or((0, 0), |plan| (plan.split.data_offset, plan.layout.data_bytes()))
}

/// The smallest drive whose data area has so many bands, with some bytes behind its tail area, for
/// an array that is made on so many cores.
pub fn drive_bytes(new: &NewArray, width: usize, cores: u16, bands: u64) -> u64 {
    let mut drive = DriveConfig { block_bytes: 4096, ..DriveConfig::new(3 * MIB, 0) };
    while data_area(new, width, cores, &drive).1 < bands * MIB {
        drive.bytes += MIB;
    }
    drive.bytes + 8192
}

/// How many cores make an array so that it runs on as many as any session has: one, if that is
/// enough.
fn cores_for(new: &NewArray, width: usize) -> u16 {
    let same =
        |bands| drive_bytes(new, width, 1, bands) == drive_bytes(new, width, CORES_MOST, bands);
    if same(1) { 1 } else { CORES_MOST }
}

/// How large the drives are, and what of the array is written at all. Drawn from a generator of its
/// own.
fn bands(scenario: &mut Scenario) {
    let mut rng = Rng::new(scenario.seed ^ 0x6d61_7073);
    let more = !rng.chance(75);
    use DiscardContent::{Changing, Old, Random, Unsupported, Zero};
    let small = scenario.row <= 3 * MIB;
    let rows = if small && rng.chance(if more { 40 } else { 20 }) { 1 + rng.below(3) } else { 0 };
    let mut bands = if rows > 0 { rows + rng.below(2) } else { 1 + rng.below(2) };
    if rows > 1 && Rng::new(scenario.seed ^ 0x6761_7073).chance(20) {
        let gap = format::limits::REGION_BITS - 1;
        (bands, scenario.gap) = (bands + gap, gap * scenario.row);
    }
    let (level, width, made_on) = (scenario.level, scenario.width, scenario.made_on);
    let new = new_array(level, scenario.strip);
    let bytes = drive_bytes(&new, width, made_on, bands);
    for drive in &mut scenario.drives {
        drive.bytes = bytes;
        if DRIVE_DISCARD.there {
            drive.discard = [Old, Zero, Random, Changing, Unsupported][rng.index(5)];
        }
        if rows > 0 {
            drive.block_bytes = 4096;
        }
        // Nobody else has the pages of a drive without redundancy.
        drive.tears.unreadable |= scenario.level == Level::Jbod;
    }
    scenario.data = data_area(&new, width, made_on, &scenario.drives[0]);
    for step in scenario.sessions.iter_mut().flat_map(|s| &mut s.steps) {
        match step.what {
            What::Drive(Fault::Unreadable, victim) if rng.chance(15) => {
                step.what = What::Drive(Fault::UnreadableMap, victim);
            }
            What::Person(Admin::Replace, victim) if CATCH_UP.there && rng.chance(40) => {
                step.what = What::Person(Admin::Return, victim);
            }
            _ => {}
        }
    }
    if rows == 0 {
        return;
    }
    scenario.unit = 4096;
    scenario.volume = rows * scenario.row;
    // Each costs as much as three of others.
    scenario.pictures /= if scenario.gap > 0 { 6 } else { 3 };
    for step in scenario.sessions.iter_mut().flat_map(|s| &mut s.steps) {
        match step.what {
            What::Host(Host::Discard, most) => {
                step.what = What::Host(Host::Row { zero: false }, most);
            }
            What::Host(Host::Zero { .. }, most) if rng.coin() => {
                step.what = What::Host(Host::Row { zero: true }, most);
            }
            _ => {}
        }
    }
}

/// Has cuts of power leave nobody's bytes in what is being written before the data areas, where
/// all has a checksum. From a generator of its own, so that nothing else changes.
fn garble(scenario: &mut Scenario) {
    if Rng::new(scenario.seed ^ 0x6761_7262_6c65).chance(20) {
        let before = 0..scenario.data.0;
        scenario.drives.iter_mut().for_each(|drive| drive.tears.garbage = before.clone());
    }
}

/// Most drives of most arrays that have many: more cost more.
const WIDE: usize = 32;

fn geometry(rng: &mut Rng) -> (Level, usize) {
    let (least, level) = [
        (2, Level::Raid0),
        (2, Level::Jbod),
        (2, Level::Raid1),
        (3, Level::Raid5),
        (4, Level::Raid6),
        (4, Level::Raid10),
        (2, Level::Raid1),
        (3, Level::Raid5),
        (4, Level::Raid6),
        (3, Level::Raid5),
        (4, Level::Raid6),
        (4, Level::Raid10),
    ][rng.index(12)];
    let most = match rng.below(100) {
        0 => WIDE,
        1..10 => 9,
        _ => least + 2,
    };
    let mut width = rng.between(least as u64, most as u64) as usize;
    // From a generator of its own: what else is drawn of narrower arrays stays as it is.
    let mut own = Rng::new(rng.clone().bits() ^ 0x7769_6465);
    if most == WIDE && own.chance(25) {
        width = own.between(WIDE as u64 + 1, DRIVES_MAX as u64) as usize;
    }
    (level, if level == Level::Raid10 { width / 2 * 2 } else { width })
}

/// Drives that a group of the level can lose, data strips of a stripe, and drives of a group.
pub fn shape(level: Level, width: usize) -> (usize, usize, usize) {
    match level {
        Level::Raid0 => (0, width, width),
        Level::Jbod => (0, 1, 1),
        Level::Raid1 => (width - 1, 1, width),
        Level::Raid5 => (1, width - 1, width),
        Level::Raid6 => (2, width - 2, width),
        Level::Raid10 => (1, 1, 2),
    }
}

impl Scenario {
    /// What `seed` means.
    pub fn new(seed: u64) -> Self {
        let mut scenario = Self::plain(seed);
        bands(&mut scenario);
        garble(&mut scenario);
        trouble::add(&mut scenario);
        behind_a_shelf(&mut scenario);
        share(&mut scenario);
        scenario
    }

    /// What it means, with drives of one band.
    fn plain(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7472_6961_6c73);
        let (level, width) = geometry(&mut rng);
        let (lose, k, group) = shape(level, width);
        let block = if rng.chance(30) { 4096 } else { 512 };
        let mut strip = [4096u32, 8192, 16384, 16384, 32768, 65536][rng.index(6)];
        while u64::from(strip) * k as u64 > 256 << 10 {
            strip /= 2;
        }
        let strip = strip.max(4096);
        let many = rng.chance(10);
        let cache = rng.below(3);
        let spares = if lose > 0 { 1 + rng.index(2) } else { 0 };
        let new = new_array(level, strip);
        let made_on = if many { CORES_MOST } else { cores_for(&new, width) };
        let bytes = drive_bytes(&new, width, made_on, 1);
        let drive = |rng: &mut Rng| drive(rng, bytes, block, cache);
        let mut drives: Vec<_> = (0..width + spares).map(|_| drive(&mut rng)).collect();
        for spare in &mut drives[width..] {
            // A rebuild that lasts is met by more.
            spare.latency_most = Nanos([20_000, 300_000, 2_000_000][rng.index(3)]);
        }
        let stripe = u64::from(strip) * k as u64;
        let volume = (stripe * rng.between(1, 4)).clamp(8192, 512 << 10).min(MIB);
        let mut victims = victims(&mut rng, lose, group, width);
        let faults = !victims.is_empty() && rng.chance(45);
        let count = if faults { victims.len() } else { 0 };
        let beyond = faults && rng.chance(15);
        if beyond {
            let other = (0..width).find(|slot| !victims.contains(slot));
            victims.push(other.expect("no group loses all of its drives"));
        }
        let mut numbers = 0;
        let sessions = 0..1 + rng.index(3);
        let sessions = sessions.map(|_| session(&mut rng, &mut numbers, (count, beyond))).collect();
        let unit = u64::from(block);
        let pictures = if width > WIDE { 10 } else { 40 };
        let data = data_area(&new, width, made_on, &drives[0]);
        let row = (width - lose * (width / group)) as u64 * MIB;
        Self {
            seed,
            level,
            drives,
            width,
            victims,
            beyond,
            made_on,
            row: if level == Level::Jbod { MIB } else { row },
            data,
            strip,
            gap: 0,
            volume,
            unit,
            sessions,
            pictures,
            trouble: None,
            shelf: None,
            shared: false,
        }
    }

    /// The same with parts left out.
    pub fn reduced(mut self, cuts: &Cuts) -> Self {
        if let Some(n) = cuts.sessions {
            self.sessions.truncate(n.max(1));
        }
        for session in &mut self.sessions {
            session.steps.retain(|step| !cuts.without.contains(&step.number));
            if cuts.one_core {
                session.world.cores = 1;
            }
            if cuts.one_lane {
                session.lanes = 1;
            }
        }
        self
    }

    /// Whether any drive may lose what it acknowledged.
    pub fn volatile(&self) -> bool {
        self.drives.iter().any(|d| d.volatile_cache)
    }

    /// The smallest run of bytes that all drives write whole.
    pub fn grain(&self) -> usize {
        self.drives.iter().map(|d| d.block_bytes as usize).min().unwrap_or(512)
    }
}

fn drive(rng: &mut Rng, bytes: u64, block: u32, cache: u64) -> DriveConfig {
    let (least, most) = [(0, 1_000), (1_000, 20_000), (5_000, 100_000)][rng.index(3)];
    DriveConfig {
        block_bytes: block,
        volatile_cache: match cache {
            0 => false,
            1 => true,
            _ => rng.coin(),
        },
        latency_least: Nanos(least),
        latency_most: Nanos(most),
        split_percent: [0, 25, 100][rng.index(3)],
        write_zeroes: rng.coin(),
        record: false,
        littered: true,
        tears: Tears { unreadable: rng.chance(20), ..Tears::default() },
        ..DriveConfig::new(bytes, rng.bits())
    }
}

/// As many slots of each group as it can lose.
fn victims(rng: &mut Rng, lose: usize, group: usize, width: usize) -> Vec<usize> {
    let mut all = Vec::new();
    for first in (0..width).step_by(group) {
        let mut left: Vec<usize> = (first..first + group).collect();
        for _ in 0..lose {
            all.push(left.swap_remove(rng.index(left.len())));
        }
    }
    all
}

fn session(rng: &mut Rng, numbers: &mut usize, (victims, beyond): (usize, bool)) -> Session {
    let world = WorldConfig {
        cores: [1, 1, 1, 2, 2, 3, 4][rng.index(7)],
        mail_delay_most: Nanos([0, 1_000, 20_000, 300_000][rng.index(4)]),
        late_percent: [0, 0, 10, 40][rng.index(4)],
        ..WorldConfig::new(rng.bits())
    };
    let blocks_most = [1, 2, 8, 40, 200][rng.index(5)];
    let weights: [u64; 6] = core::array::from_fn(|i| {
        let least = if i == 0 { 4 } else { 0 };
        rng.between(least, [10, 4, 2, 2, 4, 3][i])
    });
    let count = 6 + rng.index(40);
    let steps = (0..count).map(|_| {
        let number = *numbers;
        *numbers += 1;
        Step { number, what: what(rng, &weights, blocks_most, (victims, beyond)), seed: rng.bits() }
    });
    let mut steps: Vec<Step> = steps.collect();
    if victims > 0 && rng.chance(60) {
        swap_drive(rng, numbers, victims, &mut steps);
    }
    let end = [End::Stop, End::Cut, End::Cut, End::Kill][rng.index(4)];
    let focus = [4, 12, u64::MAX, u64::MAX][rng.index(4)];
    Session { world, lanes: 1 + rng.index(6), focus, steps, end }
}

/// Has a drive taken out, and another put in its place, early among the steps.
fn swap_drive(rng: &mut Rng, numbers: &mut usize, victims: usize, steps: &mut Vec<Step>) {
    let victim = rng.index(victims);
    let mut at = rng.index(steps.len() + 1);
    let out = match rng.below(4) {
        0 => vec![What::Drive(Fault::Vanish, victim)],
        1 => vec![What::Drive(Fault::Write, victim)],
        2 => vec![What::Drive(Fault::Flush, victim), What::Host(Host::Flush, 1)],
        _ => vec![What::Person(Admin::Fail, victim)],
    };
    let mut all = out;
    all.extend((0..rng.below(5)).map(|_| What::Host(Host::Write { fua: false }, 8)));
    all.push(What::Person(Admin::Replace, victim));
    for _ in 0..rng.below(12) {
        let read = rng.coin();
        let host = if read { Host::Read } else { Host::Write { fua: rng.coin() } };
        all.push(What::Host(host, if read { 200 } else { 8 }));
    }
    for what in all {
        steps.insert(at, Step { number: *numbers, what, seed: rng.bits() });
        *numbers += 1;
        at += 1;
    }
}

fn what(
    rng: &mut Rng,
    weights: &[u64; 6],
    blocks_most: u64,
    (victims, beyond): (usize, bool),
) -> What {
    if victims > 0 && rng.chance(15) {
        use Fault::{Flush, Hang, Read, Return, Slow, Unreadable, Vanish, Write, WriteMedia};
        let all = [
            Unreadable, Unreadable, Unreadable, Read, Write, WriteMedia, Flush, Vanish, Return,
            Slow, Hang, Hang,
        ];
        if beyond && rng.coin() {
            return What::Drive(Unreadable, victims);
        }
        return What::Drive(all[rng.index(all.len())], rng.index(victims));
    }
    if rng.chance(6) {
        let admin = [
            Admin::Fail,
            Admin::Replace,
            Admin::Replace,
            Admin::Scrub,
            Admin::Create,
            Admin::Resize(1 + rng.below(40)),
        ][rng.index(6)];
        let admin = people(admin, rng);
        let needs = matches!(admin, Admin::Fail | Admin::Replace);
        if !needs || victims > 0 {
            return What::Person(admin, rng.index(victims.max(1)));
        }
    }
    let hosts = [
        Host::Write { fua: false },
        Host::Write { fua: true },
        Host::Zero { fua: rng.coin() },
        Host::Discard,
        Host::Read,
        Host::Flush,
    ];
    let mut at = rng.below(weights.iter().sum());
    let mut which = 0;
    while at >= weights[which] {
        at -= weights[which];
        which += 1;
    }
    What::Host(hosts[which], blocks_most)
}

/// What people do at other times instead.
fn people(admin: Admin, rng: &mut Rng) -> Admin {
    if rng.chance(70) {
        return admin;
    }
    let kind = [TaskKind::Rebuild, TaskKind::Resync, TaskKind::Scrub][rng.index(3)];
    let action = [TaskAction::Pause, TaskAction::Resume, TaskAction::Cancel][rng.index(3)];
    if rng.coin() { Admin::Task(kind, action) } else { Admin::Delete }
}

/// Has some drives behind a shelf, of which ports have troubles. Drawn from a generator of its own:
/// the rest stays as it is.
fn behind_a_shelf(scenario: &mut Scenario) {
    let mut rng = Rng::new(scenario.seed ^ 0x0073_6865_6c66);
    // A target that takes longer to be quiet than it says is none that anybody could fence.
    let is_late =
        |step: &Step| matches!(step.what, What::Drive(Fault::Hung(_) | Fault::Held(_), _));
    let mut steps = scenario.sessions.iter().flat_map(|session| &session.steps);
    let mut more = Rng::new(scenario.seed ^ 0x006d_6f72_6532);
    let is_one = rng.below(SHELVES) == 0 || more.chance(SHELVES_MORE);
    if !is_one || scenario.drives.len() > SHELF_MOST || steps.any(is_late) {
        return;
    }
    scenario.shelf = Some(rng.chance(60));
    // Where some drives lose what they had in caches, and others do not, more are out than faults
    // may befall.
    let has_cache = |drive: &DriveConfig| drive.volatile_cache;
    let is_mixed = scenario.volatile() && !scenario.drives.iter().all(has_cache);
    let troubles = &Trouble::ALL[..Trouble::ALL.len() - usize::from(is_mixed)];
    let numbers = scenario.sessions.iter().flat_map(|s| s.steps.iter().map(|step| step.number));
    let mut number = numbers.max().map_or(0, |last| last + 1);
    for session in &mut scenario.sessions {
        for _ in 0..rng.below(5) {
            let what = What::Port(troubles[rng.index(troubles.len())]);
            let step = Step { number, what, seed: rng.bits() };
            session.steps.insert(rng.index(session.steps.len() + 1), step);
            number += 1;
        }
    }
}

/// Has servers share some arrays, and one stand still, or be no more, while another takes over.
/// Drawn from a generator of its own.
fn share(scenario: &mut Scenario) {
    let mut rng = Rng::new(scenario.seed ^ 0x0073_6861_7265);
    // What is late, or runs for long, is so though its server is taken for dead.
    let is_late = |step: &Step| {
        let What::Drive(fault, _) = step.what else { return false };
        matches!(fault, Fault::Hung(_) | Fault::Held(_) | Fault::Hang | Fault::Slow)
    };
    let mut steps = scenario.sessions.iter().flat_map(|session| &session.steps);
    let is_one = scenario.shelf.is_some() || rng.below(SHARED) == 0;
    if !is_one || scenario.trouble.is_some_and(|kind| kind != Kind::Rows) || steps.any(is_late) {
        return;
    }
    scenario.shared = true;
    let count = scenario.sessions.len();
    if count > 1 && rng.chance(70) {
        let at = rng.index(count - 1);
        let ends = [
            End::Halt,
            End::Halt,
            End::Dead(Next::Process),
            End::Dead(Next::Boot),
            End::Dead(Next::Host),
        ];
        // Only what is behind a shelf outlives its server.
        let end = rng.index(ends.len());
        scenario.sessions[at].end = if scenario.shelf.is_some() { ends[end] } else { End::Halt };
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, width, strip, volume, victims, .. } = self;
        writeln!(
            f,
            "{level} of {width} drives (+{} spare), strips of {strip}, blocks of {}, a volume of \
             {volume} bytes, volatile caches {:?}, faults may befall slots {victims:?}",
            self.drives.len() - width,
            self.unit,
            self.drives.iter().map(|d| d.volatile_cache).collect::<Vec<_>>(),
        )?;
        if let Some(resets) = self.shelf {
            let fences = if resets { "resets" } else { "time" };
            writeln!(f, "drives behind a shelf; fences end by {fences}")?;
        }
        if self.shared {
            writeln!(f, "a shared array")?;
        }
        for (i, session) in self.sessions.iter().enumerate() {
            let Session { world, lanes, steps, end, .. } = session;
            writeln!(f, "session {i}: {} cores, {lanes} at a time, then {end:?}", world.cores)?;
            for step in steps {
                writeln!(f, "  {:3} {:?}", step.number, step.what)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_all_trials_has_its_drives_behind_a_shelf() {
        let seeds = || (0..4_000).map(Scenario::new);
        let shelves = seeds().filter(|own| own.shelf.is_some()).count();
        assert!((1_000..1_200).contains(&shelves), "{shelves} of 4000");
        let has = |own: &Scenario, end| own.sessions.iter().any(|session| session.end == end);
        let ends = [Next::Process, Next::Boot, Next::Host].map(End::Dead).into_iter();
        for end in ends.chain([End::Halt]) {
            let count = seeds().filter(|own| own.shelf.is_some() && has(own, end)).count();
            assert!(count > 20, "{count} of 4000 end {end:?}");
        }
    }

    #[test]
    fn few_arrays_have_many_drives_and_some_the_most() {
        let widths = (0..20_000).map(|seed| geometry(&mut Rng::new(seed)).1);
        let wide: Vec<usize> = widths.filter(|width| *width > WIDE).collect();
        assert!((20..100).contains(&wide.len()), "{wide:?}");
        assert!(wide.iter().all(|width| *width <= DRIVES_MAX) && wide.contains(&DRIVES_MAX));
    }
}
