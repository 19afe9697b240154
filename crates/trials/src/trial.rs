//! One seed: its sessions are run, pictures are taken, and each is looked at.

use crate::before::{Before, judge, start, still};
use crate::camera::{Camera, Picture};
use crate::decoder::array::Decoded;
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{Areas, Picked, count_fired, pick, references};
use crate::halt::{Beside, Halted};
use crate::lists;
use crate::owed::Owed;
use crate::point::{self, Aim, Context, OPTIONS};
use crate::rig::{ARRAY, Blind, Rig, references_in_order};
use crate::scenario::{Cuts, End, Next, Scenario, new_array};
use crate::session::Floor;
use crate::tally::{Cause, Tally};
use crate::trouble::Kind;
use crate::versions::Versions;
use engine::manage::command::{ArrayStatus, NewArray, Request};
use sim::{Rng, SharedSimDrive, WorldConfig};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{MIB, Nanos};

/// Between two looks at what in-flight pages say at rest, and after which they say nothing.
const STEP: Nanos = Nanos::from_millis(500);
const STILL_BY: Nanos = Nanos::from_millis(30_000);

/// A server that stood still goes on within this, once another has the array.
const WAKES_BY: Nanos = Nanos::from_millis(1_500);

/// A trial under way.
struct Trial<'a> {
    scenario: &'a Scenario,
    only: Option<usize>,
    rng: Rng,
    drives: Vec<SharedSimDrive>,
    seats: Vec<usize>,
    versions: Rc<RefCell<Versions>>,
    pictures: Vec<Picture>,
    /// What the array may owe by its starts so far.
    owed: Owed,
    taken: usize,
    /// The server that has the array next.
    host: u8,
    /// The one that had it, and stands still.
    halted: Option<Halted>,
    context: Context,
}

/// How a session begins.
struct Begun {
    status: ArrayStatus,
    /// What can't be read by then.
    lost: BTreeMap<(usize, u64), Cause>,
    /// Parity is not to be counted on.
    owing: bool,
}

/// Runs the trial of a scenario. What it counted is in `tally` also when something was found.
///
/// # Errors
/// What was found.
pub fn run(scenario: &Scenario, cuts: &Cuts, tally: &mut Tally) -> Outcome<()> {
    let drives: Vec<_> = scenario.drives.iter().cloned().map(SharedSimDrive::new).collect();
    let versions = Versions::new(scenario.grain(), scenario.volatile());
    let context = Context {
        base: drives.iter().map(Picked::new).collect(),
        origin: Vec::new(),
        seen: BTreeSet::new(),
        found: BTreeMap::new(),
        looked_at: BTreeSet::new(),
        tally: Tally { seeds: 1, ..Tally::default() },
        unit: scenario.unit,
        areas: Areas {
            // Drives of the trials are so small that it has one MiB.
            map: MIB..2 * MIB,
            data: scenario.data.0..scenario.data.0 + scenario.data.1,
            decayed: Vec::new(),
            map_decayed: false,
            set_back: false,
        },
        aim: match scenario.trouble {
            Some(Kind::Brown) => Aim::Spoiled,
            Some(Kind::Lone) => Aim::Lone,
            _ => Aim::Anywhere,
        },
        plain: false,
        shared: scenario.shared || scenario.shelf.is_some(),
        past: Vec::new(),
    };
    let mut trial = Trial {
        scenario,
        only: cuts.picture,
        rng: Rng::new(scenario.seed ^ 0x706f_696e_7473),
        drives,
        seats: (0..scenario.width).collect(),
        versions: Rc::new(RefCell::new(versions)),
        pictures: Vec::new(),
        owed: Owed::default(),
        taken: 0,
        host: 1,
        halted: None,
        context,
    };
    let outcome = trial.all();
    tally.add(&trial.context.tally);
    outcome
}

impl Trial<'_> {
    fn all(&mut self) -> Outcome<()> {
        self.create().map_err(|f| f.at("creation"))?;
        for number in 0..self.scenario.sessions.len() {
            let went_on =
                self.session(number).map_err(|f| f.at(format_args!("session {number}")))?;
            self.look_at_pictures()?;
            if !went_on {
                break;
            }
        }
        Ok(())
    }

    fn create(&mut self) -> Outcome<()> {
        let scenario = self.scenario;
        let (cores, mail_delay_most) = (scenario.made_on, Nanos(0));
        let config = WorldConfig { cores, mail_delay_most, ..WorldConfig::new(self.rng.bits()) };
        let rig = Rig::new(config);
        let shared = scenario.shared && scenario.shelf.is_none();
        let new = NewArray { shared, ..new_array(scenario.level, scenario.strip) };
        if shared {
            rig.identify(&mut Blind)?;
        }
        let list = references_in_order(&self.drives[..scenario.width]);
        let made = rig.ask(&mut Blind, "a creation", |r| Request::Create(new, list, r))?;
        made.map_err(|error| Failure::new(Oracle::Start, format!("not made: {error}")))?;
        let volume = |name: &'static str, bytes| {
            let make = |r| Request::VolumeCreate(ARRAY.into(), name.into(), bytes, r);
            let made = rig.ask(&mut Blind, "a volume", make)?;
            made.map(drop).map_err(|e| Failure::new(Oracle::Start, format!("no volume: {e}")))
        };
        let bytes = scenario.volume;
        if scenario.gap > 0 {
            volume("gap", scenario.gap)?;
        }
        volume("v", bytes)?;
        if scenario.gap > 0 {
            let drop = |r| Request::VolumeDelete(ARRAY.into(), "gap".into(), r);
            let gone = rig.ask(&mut Blind, "the end of a volume", drop)?;
            gone.map_err(|e| Failure::new(Oracle::Start, format!("the gap stays: {e}")))?;
        }
        let mut versions = self.versions.borrow_mut();
        versions.create("v", bytes);
        versions.settle(0, bytes);
        let stopped = rig.ask(&mut Blind, "a stop", |r| Request::Stop(ARRAY.into(), r))?;
        stopped.map_err(|error| Failure::new(Oracle::Start, format!("not stopped: {error}")))?;
        self.context.tally.traced(rig.world.trace_hash());
        drop(rig);
        self.context.base = self.drives.iter().map(Picked::new).collect();
        self.context.origin = self.drives.iter().map(SharedSimDrive::duplicate).collect();
        Ok(())
    }

    /// The server of a session.
    fn server(&self, number: usize) -> Outcome<Rig> {
        let session = &self.scenario.sessions[number];
        if let Some(halted) = self.halted.as_ref().filter(|own| own.is_beside()) {
            return halted.next(self.host);
        }
        self.drives.iter().for_each(SharedSimDrive::calm);
        let Some(resets) = self.scenario.shelf else {
            return Ok(Rig::of(session.world.clone(), self.host));
        };
        let next = self.scenario.sessions.get(number + 1).filter(|_| session.end.has_next());
        let more = next.map_or(0, |next| next.world.cores);
        Rig::behind(session.world.clone(), &self.drives, (resets, self.host), more)
    }

    /// Starts the array, if it can be.
    fn begin(&mut self, rig: &Rig, camera: &mut Camera) -> Outcome<Option<Begun>> {
        // What the server before had sent may still land: this one starts from what the drives held
        // as it first changed them.
        let mut said = None;
        let mut found = None;
        if let Some(paths) = rig.paths.as_ref().filter(|_| self.halted.is_some()) {
            let drives = references(&self.drives, &mut self.rng);
            said = Some(rig.assemble(&mut Blind, drives, OPTIONS)?);
            found = paths.shelf.book.take_before();
        }
        let found = found.unwrap_or_else(|| pick(&self.drives));
        let before = Before::of(&found, self.owed);
        self.owed = before.owed;
        camera.owed = self.owed;
        // With parity not to be counted on only for a cause that is known.
        let owing = before.decoded().map_or(true, |d| before.owed.any() && d.owes_regions());
        before.forgive_maps(&mut self.versions.borrow_mut(), &mut self.context.tally);
        let lost = before.lost(&self.versions.borrow(), self.scenario.unit);
        let started = match said {
            Some(said) => judge(&before, said, &mut self.context.tally)?,
            None => {
                let with = (&mut self.rng, &mut self.context.tally);
                let mut beside = Beside { other: camera, halted: &mut self.halted };
                start(rig, &mut beside, (&self.drives, &before), with)?
            }
        };
        Ok(started.map(|status| Begun { status, lost, owing }))
    }

    /// Runs a session; false if it is the last one: the array can't be started any more, or lacks
    /// more than scenarios count on.
    fn session(&mut self, number: usize) -> Outcome<bool> {
        let session = &self.scenario.sessions[number];
        let rig = self.server(number)?;
        let most = self.scenario.pictures / self.scenario.sessions.len();
        let mut camera = Camera::new(&self.drives, &self.versions, self.rng.fork(), most);
        if self.context.aim == Aim::Lone {
            camera.look_within(self.context.areas.map.end..self.context.areas.data.start);
        }
        let begun = self.begin(&rig, &mut camera);
        self.owners(&rig)?;
        let Some(Begun { status, lost, owing }) = begun? else {
            self.context.tally.refused += 1;
            return Ok(false);
        };
        if let Some(halted) = &mut self.halted {
            halted.wakes(rig.world.now(), Nanos(self.rng.below(WAKES_BY.0)));
            self.context.tally.fault(halted.name(), 1);
        }
        if self.rng.coin() {
            lists::resume(&rig, &mut camera, &status)?;
        }
        point::settle_volumes(&status, &mut self.versions.borrow_mut())?;
        let drives = (&self.drives[..], rig.paths.as_ref());
        let floor = Floor::new(self.scenario, session, &self.versions, drives, &self.seats, owing);
        *floor.lost.borrow_mut() = lost;
        let mut beside = Beside { other: &mut camera, halted: &mut self.halted };
        let seats = floor.run(&rig, &status, &mut beside, &mut self.context.tally);
        self.owners(&rig)?;
        self.seats = seats?;
        if let Some(halted) = self.halted.take() {
            halted.end(&rig);
        }
        if number + 1 == self.scenario.sessions.len() {
            self.rest(&rig)?;
        }
        let border = self.close(rig, &mut camera, (session.end, &floor))?;
        // The end itself: after a clean stop no resync covers up what is wrong.
        let mut versions = self.versions.borrow().clone();
        if !self.clean() {
            // A drive that the array can't do without did not take a flush.
            versions.crashed();
        }
        let drives = self.drives.iter().map(|d| d.after_cut(true, self.rng.bits())).collect();
        let (number, power, owed) = (0, true, self.owed);
        camera.pictures.push(Picture { number, border, drives, versions, power, owed });
        self.keep(camera);
        // What drives lost with their caches nobody has made good before the next session.
        Ok(!floor.unpowered.get())
    }

    /// Nothing of a server has landed after another had the array.
    fn owners(&mut self, rig: &Rig) -> Outcome<()> {
        let Some(paths) = &rig.paths else { return Ok(()) };
        let book = &paths.shelf.book;
        let (changes, late) = book.looked();
        self.context.tally.look("owner: changes by another server", changes);
        self.context.tally.look("owner: late changes of the server before", late);
        book.found().map_or(Ok(()), |text| Err(Failure::new(Oracle::Owner, text)))
    }

    /// Ends a session; at which border of requests.
    fn close(
        &mut self,
        rig: Rig,
        camera: &mut Camera,
        (end, floor): (End, &Floor),
    ) -> Outcome<u64> {
        if !end.has_next() {
            self.end(&rig, camera, end)?;
        }
        self.owners(&rig)?;
        count_fired(&self.drives, &self.context.areas, &mut self.context.tally);
        self.context.tally.traced(rig.world.trace_hash());
        self.context.tally.fault("parity by an accelerator", rig.aided.done.get());
        self.context.tally.fault("a job left undone", rig.aided.undone.get());
        let border = rig.world.boundaries();
        if end.has_next() {
            self.halt(rig, floor, end);
        }
        Ok(border)
    }

    /// Lets some arrays come to rest after their last session: then in-flight pages name nothing.
    fn rest(&mut self, rig: &Rig) -> Outcome<()> {
        // From a generator of its own: what else is drawn stays as it is.
        let mut own = Rng::new(self.scenario.seed ^ 0x0073_7469_6c6c);
        if !own.coin() || !rig.rest(&mut Blind)? {
            return Ok(());
        }
        let Some(status) = rig.status(&mut Blind)? else { return Ok(()) };
        let mut outcome = Ok(0);
        // A drive may be slow.
        for _ in 0..STILL_BY.0 / STEP.0 {
            rig.pass(&mut Blind, STEP);
            let picked = pick(&self.drives);
            outcome = Decoded::open(&picked).map_or(Ok(0), |decoded| still(&decoded));
            if outcome.is_ok() {
                break;
            }
        }
        if status.tasks.is_empty() {
            self.context.tally.look("metadata: in-flight pages at rest", outcome?);
        }
        Ok(())
    }

    /// Whether the newest record says that the array was stopped cleanly.
    fn clean(&self) -> bool {
        let picked = pick(&self.drives);
        let newest = picked.iter().filter_map(crate::decoder::record::newest);
        let newest = newest.max_by_key(|r| r.sequence);
        newest.is_some_and(|record| record.groups.iter().all(|g| !g.unclean))
    }

    fn end(&mut self, rig: &Rig, camera: &mut Camera, end: End) -> Outcome<()> {
        match end {
            End::Stop => {
                // A stop that a failed drive keeps from being clean is one all the same.
                let stop = |r| Request::Stop(ARRAY.into(), r);
                let _ = rig.ask(camera, "a stop", stop)?;
                rig.world.kill();
            }
            End::Cut => {
                rig.world.crash();
                self.versions.borrow_mut().crashed();
            }
            End::Kill | End::Halt | End::Dead(_) => {
                rig.world.kill();
                self.versions.borrow_mut().crashed();
            }
        }
        Ok(())
    }

    /// The server stands still, or is no more, and another one comes next.
    fn halt(&mut self, rig: Rig, floor: &Floor, end: End) {
        if rig.paths.is_some() {
            self.drives.iter().for_each(SharedSimDrive::calm);
        }
        let next = if let End::Dead(next) = end { Some(next) } else { None };
        let (volumes, how) = (floor.volumes(), (self.scenario.unit, next));
        let halted = Halted::new(rig, &volumes, &self.versions, how, &mut self.rng);
        self.halted = Some(halted);
        if next.is_none_or(|next| next == Next::Host) {
            self.host = 3 - self.host;
        }
        self.versions.borrow_mut().crashed();
    }

    fn keep(&mut self, camera: Camera) {
        for mut picture in camera.pictures {
            picture.number = self.taken;
            self.taken += 1;
            self.pictures.push(picture);
        }
    }

    fn look_at_pictures(&mut self) -> Outcome<()> {
        for picture in core::mem::take(&mut self.pictures) {
            let (number, border) = (picture.number, picture.border);
            let mut rng = Rng::new(self.scenario.seed ^ (number as u64) << 32);
            if self.only.is_some_and(|only| only != number) {
                continue;
            }
            let now: Vec<_> = picture.drives.iter().map(SharedSimDrive::duplicate).collect();
            point::check(&mut self.context, picture, &mut rng, 0)
                .map_err(|f| f.at(format_args!("picture {number} at border {border}")))?;
            self.context.past.push(now);
        }
        Ok(())
    }
}
