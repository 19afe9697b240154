//! One session: the array is started, hosts, people and faults do their steps, and it ends.
//!
//! Steps are taken in order by several lanes, so that many are under way at a time; a step of a
//! host claims its range first, so that nothing else changes or reads it meanwhile.
//!
//! Errors of hosts' requests are right only where the level has no redundancy left for what
//! befell the drives: then they are counted, and the blocks may be old or new.

use crate::decoder::record::{self, State};
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::Picked;
use crate::machine::Machine;
use crate::paths::{Paths, Trouble};
use crate::rig::{ARRAY, Answer, BOUND, Rig, Watch, reference};
use crate::scenario::{Admin, Fault, Host, Scenario, Session, Step, What, shape};
use crate::tally::{Cause, Tally};
use crate::versions::Versions;
use core::future::Future;
use engine::array::message::Repair;
use engine::limits::DRIVE_DEADLINE;
use engine::manage::command::{ArrayStatus, Request, VolumeStatus};
use engine::volume::Volume;
use io::{BlockError, Blocks, Env, Pool, Priority};
use layout::Level;
use sim::{Rng, SharedSimDrive};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos, Slot};

/// The longest that a request of a host may take while no drive hangs.
const PROMPT: Nanos = Nanos::from_millis(2_000);
/// The longest that a request waits for a drive that hangs: the deadline, and a quarter of it.
const DRIVE_TIMEOUT: Nanos = Nanos(DRIVE_DEADLINE.0 / 4 * 5);

/// A request of a person under way.
enum Asked {
    /// What it is called if it is done.
    Array(Option<&'static str>, Answer<ArrayStatus>),
    /// A drive into a slot.
    Replace(usize, usize, Answer<ArrayStatus>),
    /// A drive that was never in a slot, as if it were back there: nobody said that it may be
    /// written.
    Refused(Answer<ArrayStatus>),
    /// Of a new volume, or one that changes from a size.
    Volume(String, Option<u64>, u64, Answer<VolumeStatus>),
    /// The end of a volume.
    Delete(String, Answer<()>),
}

/// A drive that was made to hang, in part or whole.
struct Hang {
    drive: usize,
    /// It was not out when it began to hang. One that is out may be joining just then.
    counted: bool,
    /// How much longer a request may take that waits for it.
    wait: Nanos,
    /// Since when nobody new waits for it: it goes on, or a record says that it is out.
    over: Cell<Option<Nanos>>,
}

/// What the lanes of a session share.
pub struct Floor {
    versions: Rc<RefCell<Versions>>,
    queue: RefCell<VecDeque<Step>>,
    lanes: Cell<usize>,
    /// The volumes by name, as each core sees them.
    open: RefCell<Vec<(String, Vec<Volume<Machine>>)>>,
    persons: RefCell<Vec<(Admin, usize, u64)>>,
    asked: RefCell<Vec<Asked>>,
    failure: RefCell<Option<Failure>>,
    /// All drives, which of them sits in each slot, and the next spare one.
    drives: Vec<SharedSimDrive>,
    seats: RefCell<Vec<usize>>,
    spare: Cell<usize>,
    victims: Vec<usize>,
    unit: u64,
    /// Where the data area of every drive begins, and its bytes.
    data: (u64, u64),
    /// Bytes of a row.
    row: u64,
    /// Bytes at the begin of a volume that requests lie in.
    focus: u64,
    /// Requests may fail once a drive does.
    fragile: bool,
    /// Units of volumes that were lost before, and not written since, and why: they can't be read.
    pub lost: RefCell<BTreeMap<(usize, u64), Cause>>,
    /// Something befell a drive, now or in a session before.
    faulty: Cell<bool>,
    /// Nobody does anything new before.
    quiet_until: Cell<Nanos>,
    /// Nor before people have their answers.
    hushed: Cell<bool>,
    /// What hangs, or did.
    hangs: RefCell<Vec<Rc<Hang>>>,
    /// The shelf lost its power, and drives what they had in caches.
    pub unpowered: Cell<bool>,
    /// How the drives are reached, if they are behind a shelf.
    paths: Option<Rc<Paths>>,
    tally: RefCell<Tally>,
}

impl Floor {
    /// The floor of a session.
    pub fn new(
        scenario: &Scenario,
        session: &Session,
        versions: &Rc<RefCell<Versions>>,
        (drives, paths): (&[SharedSimDrive], Option<&Rc<Paths>>),
        seats: &[usize],
        owing: bool,
    ) -> Rc<Self> {
        let parity = matches!(scenario.level, Level::Raid5 | Level::Raid6);
        Rc::new(Self {
            versions: versions.clone(),
            queue: RefCell::new(session.steps.iter().copied().collect()),
            lanes: Cell::new(session.lanes),
            open: RefCell::default(),
            persons: RefCell::default(),
            asked: RefCell::default(),
            failure: RefCell::default(),
            drives: drives.to_vec(),
            seats: RefCell::new(seats.to_vec()),
            spare: Cell::new(seats.iter().copied().max().map_or(0, |s| s + 1).max(scenario.width)),
            victims: scenario.victims.clone(),
            unit: scenario.unit,
            data: scenario.data,
            row: scenario.row,
            focus: session.focus.saturating_mul(scenario.unit),
            fragile: scenario.beyond
                || shape(scenario.level, scenario.width).0 == 0
                || (parity && owing),
            faulty: Cell::new(drives.iter().any(|d| !d.unreadable().is_empty())),
            lost: RefCell::default(),
            quiet_until: Cell::new(Nanos(0)),
            hushed: Cell::new(false),
            hangs: RefCell::default(),
            unpowered: Cell::new(false),
            paths: paths.cloned(),
            tally: RefCell::default(),
        })
    }

    /// Runs the session to the end of its steps. Gives which drive sits in each slot.
    ///
    /// # Errors
    /// What was found.
    pub fn run(
        self: &Rc<Self>,
        rig: &Rig,
        status: &ArrayStatus,
        watch: &mut dyn Watch,
        tally: &mut Tally,
    ) -> Outcome<Vec<usize>> {
        for volume in &status.volumes {
            self.open.borrow_mut().push((volume.name.clone(), rig.open(status, volume)));
        }
        for lane in 0..self.lanes.get() {
            let env = rig.env(CoreId((lane % rig.cores.len()) as u16));
            let floor = self.clone();
            let timer = env.clone();
            env.spawn(Priority::First, async move {
                floor.walk(&timer).await;
                floor.lanes.set(floor.lanes.get() - 1);
            });
        }
        // Drives that hang go on by a timer of their own.
        let steps = self.queue.borrow().clone();
        let waits = steps.iter().map(|step| match step.what {
            What::Wait(seconds) | What::Drive(Fault::Hung(seconds), _) => seconds,
            _ => 0,
        });
        let bound = BOUND.after(Nanos::from_millis(waits.sum::<u64>() * 1000));
        let outcome = rig.run(watch, bound, "the work of hosts", || {
            self.ask_for(rig);
            self.hear(rig, status);
            // What is late by then comes before the end.
            let over = self.lanes.get() == 0
                && !rig.paths.as_ref().is_some_and(|paths| paths.is_in_trouble())
                && self.persons.borrow().is_empty()
                && self.asked.borrow().is_empty();
            over || self.failure.borrow().is_some()
        });
        tally.add(&self.tally.take());
        outcome?;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.seats.borrow().clone()),
        }
    }

    /// The volumes as each core sees them, by what the versions know them as.
    pub fn volumes(&self) -> Vec<(usize, Vec<Volume<Machine>>)> {
        let (open, versions) = (self.open.borrow(), self.versions.borrow());
        let known = |(name, cores): &(String, Vec<_>)| Some((versions.named(name)?, cores.clone()));
        open.iter().filter_map(known).collect()
    }

    async fn walk(self: &Rc<Self>, env: &Machine) {
        loop {
            while env.now() < self.quiet_until.get() {
                env.sleep(Nanos::from_millis(200)).await;
            }
            while self.hushed.get() {
                env.sleep(Nanos::from_micros(50)).await;
                let asked = self.persons.borrow().len() + self.asked.borrow().len();
                self.hushed.set(asked > 0);
            }
            let Some(step) = self.queue.borrow_mut().pop_front() else { return };
            let mut rng = Rng::new(step.seed);
            let outcome = match step.what {
                What::Host(host, most) => self.host(env, host, most, &mut rng).await,
                What::Drive(fault, victim) => {
                    self.befall(env, fault, victim, &mut rng);
                    Ok(())
                }
                What::Wait(seconds) => {
                    let until = env.now().after(Nanos::from_millis(seconds * 1000));
                    self.quiet_until.set(until.max(self.quiet_until.get()));
                    Ok(())
                }
                What::Answered => {
                    self.hushed.set(true);
                    Ok(())
                }
                What::Port(trouble) => {
                    self.trouble(trouble, &mut rng);
                    Ok(())
                }
                What::Person(admin, victim) => {
                    self.persons.borrow_mut().push((admin, victim, rng.bits()));
                    Ok(())
                }
            };
            if let Err(text) = outcome {
                let place = format!("step {} ({:?})", step.number, step.what);
                let failure = Failure::new(Oracle::Versions, text).at(place);
                self.failure.borrow_mut().get_or_insert(failure);
                return;
            }
            env.sleep(Nanos::from_micros(rng.below(4) * 10)).await;
        }
    }

    /// A volume that is there, and a range of it that is free; taken from here on.
    async fn claim(
        &self,
        env: &Machine,
        host: Host,
        most: u64,
        rng: &mut Rng,
    ) -> Option<(usize, u64, u64)> {
        for _ in 0..200 {
            let count = self.versions.borrow().volumes().len();
            let at = rng.index(count);
            let there = !self.versions.borrow().volumes()[at].unborn;
            let (unit, focus) = (self.unit, self.focus);
            let (from, bytes) = match host {
                Host::Row { .. } => self.versions.borrow().pick(at, rng, (self.row, u64::MAX), 1),
                _ => self.versions.borrow().pick(at, rng, (unit, focus), most),
            };
            if there && self.versions.borrow_mut().claim(at, from, bytes) {
                return Some((at, from, bytes));
            }
            env.sleep(Nanos::from_micros(30)).await;
        }
        None
    }

    fn handle(&self, at: usize, core: CoreId) -> Option<Volume<Machine>> {
        let name = self.versions.borrow().volumes()[at].name.clone();
        let open = self.open.borrow();
        open.iter().find(|(n, _)| *n == name).map(|(_, cores)| cores[core.index()].clone())
    }

    async fn host(
        &self,
        env: &Machine,
        host: Host,
        most: u64,
        rng: &mut Rng,
    ) -> Result<(), String> {
        if host == Host::Flush {
            return self.in_time(env, self.flush(env)).await;
        }
        let Some((at, from, bytes)) = self.claim(env, host, most, rng).await else { return Ok(()) };
        let Some(volume) = self.handle(at, env.core()) else {
            self.versions.borrow_mut().release(at, from, bytes);
            return Ok(());
        };
        let outcome = match host {
            Host::Read => self.in_time(env, self.read(&volume, at, from, bytes)).await,
            _ => self.in_time(env, self.change(&volume, host, (at, from, bytes))).await,
        };
        self.versions.borrow_mut().release(at, from, bytes);
        outcome
    }

    /// A request of a host takes no longer than drives can make it that hang meanwhile.
    async fn in_time(
        &self,
        env: &Machine,
        request: impl Future<Output = Result<(), String>>,
    ) -> Result<(), String> {
        let begun = env.now();
        self.look_who_is_out(begun);
        request.await?;
        let hangs = self.hangs.borrow();
        let meanwhile = hangs.iter().filter(|hang| hang.over.get().is_none_or(|at| at > begun));
        let most = meanwhile.fold(PROMPT, |most, hang| most.after(hang.wait));
        let most = self.paths.as_ref().map_or(most, |paths| most.after(paths.waits(begun)));
        let took = env.now().since(begun);
        if took > most {
            return Err(format!("a request took {took:?}, more than {most:?}"));
        }
        Ok(())
    }

    /// Whoever is out now holds up nobody who comes later.
    fn look_who_is_out(&self, now: Nanos) {
        for hang in self.hangs.borrow().iter() {
            if hang.counted && hang.over.get().is_none() && self.is_out(hang.drive) {
                hang.over.set(Some(now));
            }
        }
    }

    /// Whether the newest record says that a drive is out.
    fn is_out(&self, number: usize) -> bool {
        let newest = |drive: &SharedSimDrive| record::newest(&Picked::new(drive));
        let all = self.drives.iter().filter_map(newest);
        let Some(all) = all.max_by_key(|own| (own.epoch.counter, own.sequence)) else {
            return false;
        };
        let counts = |own: record::Record| {
            all.slots.iter().any(|slot| slot.drive == own.drive && slot.state != State::Failed)
        };
        newest(&self.drives[number]).is_some_and(|own| !counts(own))
    }

    async fn read(
        &self,
        volume: &Volume<Machine>,
        at: usize,
        from: u64,
        bytes: u64,
    ) -> Result<(), String> {
        let (result, got) = volume.read(from, Pool::single(bytes as usize)).await;
        if self.ended(result, "read", (at, from, bytes))? {
            let excused = self.versions.borrow_mut().check(at, from, &got, false)?;
            self.tally.borrow_mut().over_budget += excused;
        }
        Ok(())
    }

    async fn change(
        &self,
        volume: &Volume<Machine>,
        host: Host,
        (at, from, bytes): (usize, u64, u64),
    ) -> Result<(), String> {
        let zeros = !matches!(host, Host::Write { .. });
        let version = self.versions.borrow_mut().begin(at, from, bytes, zeros);
        let (result, fua) = match host {
            Host::Write { fua } => {
                let mut data = Pool::single(bytes as usize);
                self.versions.borrow().data(at, from, version, &mut data);
                (volume.write(from, data.freeze(), fua).await, fua)
            }
            // Pages of the region map are durable, so this is.
            Host::Row { zero: true } => (volume.write_zeroes(from, bytes, false).await, true),
            Host::Row { zero: false } => (volume.discard(from, bytes).await, true),
            Host::Zero { fua } => (volume.write_zeroes(from, bytes, fua).await, fua),
            _ => (volume.discard(from, bytes).await, false),
        };
        // A discard may leave what was there: both stay possible until a read tells.
        if self.ended(result, "change", (at, from, bytes))? && host != Host::Discard {
            self.lost.borrow_mut().retain(|unit, _| !self.meets(*unit, (at, from, bytes)));
            self.versions.borrow_mut().end(at, from, bytes, version, fua);
        }
        Ok(())
    }

    async fn flush(&self, env: &Machine) -> Result<(), String> {
        let Some(volume) = self.handle(0, env.core()) else { return Ok(()) };
        let flush = self.versions.borrow().flush_begins();
        if self.ended(volume.flush().await, "flush", (0, 0, 0))? {
            self.versions.borrow_mut().flush_ends(&flush);
        }
        Ok(())
    }

    /// Whether a unit lies in a range of a volume, in part.
    fn meets(&self, (of, unit): (usize, u64), (at, from, bytes): (usize, u64, u64)) -> bool {
        of == at && unit < from + bytes && from < unit + self.unit
    }

    /// Whether a request of a range ended well; an error where it must not be is a failure.
    fn ended(
        &self,
        result: Result<(), BlockError>,
        what: &str,
        range: (usize, u64, u64),
    ) -> Result<bool, String> {
        let mut tally = self.tally.borrow_mut();
        tally.requests += 1;
        let Err(error) = result else { return Ok(true) };
        let lost = self.lost.borrow();
        let lost = lost.iter().filter(|(unit, _)| self.meets(**unit, range)).map(|(_, why)| *why);
        let over = self.fragile && self.faulty.get() || self.unpowered.get();
        if let Some(cause) = lost.min().or(over.then_some(Cause::OverBudget)) {
            tally.lean(cause);
            return Ok(false);
        }
        Err(format!("a {what} failed though redundancy covers what befell the drives: {error}"))
    }

    /// What it does is counted where it meets a request.
    fn befall(&self, env: &Machine, fault: Fault, victim: usize, rng: &mut Rng) {
        let slot = self.victims[victim];
        let number = self.seats.borrow()[slot];
        let drive = self.drives[number].clone();
        let (data, bytes_of_data) = self.data;
        match fault {
            Fault::Unreadable => {
                let at = data + rng.below(bytes_of_data.min(4 * MIB) / 4096) * 4096;
                let bytes = 4096 * (1 + rng.below(4));
                drive.fail_range(at, bytes.min(data + bytes_of_data - at));
            }
            Fault::UnreadableFront => drive.fail_range(data + rng.below(32) * 4096, 4096),
            Fault::Read => drive.fail_reads(rng.below(4), 1),
            Fault::Write => drive.fail_writes(rng.below(4), 1),
            Fault::WriteMedia => drive.spoil_writes(rng.below(4), 1),
            Fault::Flush => drive.fail_flushes(0, 1),
            Fault::Vanish => drive.vanish(),
            Fault::Return => {
                if !drive.is_gone() {
                    return;
                }
                drive.reappear();
                self.tally.borrow_mut().fault("returned", 1);
            }
            Fault::Slow => {
                let factor = [10, 100, 1000][rng.index(3)];
                drive.set_latency(Nanos(1_000), Nanos(2_000 * factor));
            }
            Fault::Hang | Fault::Hung(_) | Fault::Held(_) => self.hang(env, fault, number, rng),
            Fault::UnreadableMap => {
                drive.fail_range(MIB + rng.below(4) * 4096, 4096 * (1 + rng.below(2)));
            }
        }
        if !matches!(fault, Fault::Slow | Fault::Hang) {
            self.faulty.set(true);
        }
    }

    /// A port of the shelf has a trouble, if the other has none.
    fn trouble(&self, trouble: Trouble, rng: &mut Rng) {
        let is_so = self.paths.as_ref().is_some_and(|own| own.befall(trouble, rng));
        if !is_so {
            return;
        }
        self.tally.borrow_mut().fault(trouble.name(), 1);
        if trouble == Trouble::Power && self.drives.iter().any(|own| own.info().volatile_cache) {
            // More drives may be gone than can be spared, with what was not flushed.
            self.unpowered.set(true);
            self.versions.borrow_mut().lost_caches();
        }
    }

    /// Holds some requests of a drive, or all, and lets them run late.
    fn hang(&self, env: &Machine, fault: Fault, number: usize, rng: &mut Rng) {
        let drive = self.drives[number].clone();
        let (span, wait) = match fault {
            Fault::Hung(seconds) => {
                // Or it takes new requests, and what it was asked before runs all the later.
                if rng.coin() {
                    drive.hang();
                } else {
                    drive.hold(rng.below(3), 1 + rng.below(3));
                }
                (Nanos::from_millis(seconds * 1000), DRIVE_TIMEOUT)
            }
            Fault::Held(seconds) => {
                drive.hold(rng.below(6), 1);
                let span = Nanos::from_millis(seconds * 1000);
                (span, span)
            }
            _ => {
                if rng.coin() {
                    drive.hang();
                } else {
                    drive.hold(rng.below(3), 1 + rng.below(3));
                }
                let span = Nanos([50_000, 1_000_000, 1_000_000_000][rng.index(3)]);
                (span, span)
            }
        };
        let counted = !self.is_out(number);
        let hang = Rc::new(Hang { drive: number, counted, wait, over: Cell::new(None) });
        self.hangs.borrow_mut().push(hang.clone());
        let timer = env.clone();
        env.spawn(Priority::First, async move {
            timer.sleep(span).await;
            drive.hold(0, 0);
            drive.release();
            hang.over.set(Some(timer.now()));
        });
    }

    /// Hands the requests of people to the engine.
    fn ask_for(&self, rig: &Rig) {
        let persons = core::mem::take(&mut *self.persons.borrow_mut());
        for (admin, victim, seed) in persons {
            self.ask_one(rig, admin, victim, seed);
        }
    }

    fn ask_one(&self, rig: &Rig, admin: Admin, victim: usize, seed: u64) {
        let slot = self.victims.get(victim).copied().unwrap_or(0);
        let name = || ARRAY.to_owned();
        let asked = match admin {
            Admin::Fail => {
                self.faulty.set(true);
                let out = rig.send(|r| Request::Fail(name(), vec![format!("slot:{slot}")], r));
                Asked::Array(Some("taken out by a person"), out)
            }
            Admin::Replace => {
                let spare = self.spare.get();
                if spare >= self.drives.len() {
                    return;
                }
                let drive = reference(&self.drives[spare], spare);
                self.spare.set(spare + 1);
                let place = Slot(slot as u16);
                let answer = rig.send(|r| Request::Replace(name(), place, drive, r));
                Asked::Replace(slot, spare, answer)
            }
            Admin::Return => {
                let seat = self.seats.borrow()[slot];
                let drive = &self.drives[seat];
                if drive.is_gone() {
                    if seed & 1 == 1 {
                        drive.power_cut(seed);
                    }
                    drive.reappear();
                }
                let (drive, place) = (reference(drive, seat), Slot(slot as u16));
                if seed & 4 == 0 {
                    self.return_other(rig, place);
                }
                let answer = match seed & 2 {
                    0 => rig.send(|r| Request::Replace(name(), place, drive, r)),
                    _ => rig.send(|r| Request::Return(name(), place, drive, r)),
                };
                Asked::Replace(slot, seat, answer)
            }
            Admin::Scrub => {
                let all = [Repair::Nothing, Repair::Known, Repair::TrustData];
                let repair = all[(seed % 3) as usize];
                Asked::Array(None, rig.send(|r| Request::Scrub(name(), repair, r)))
            }
            Admin::Task(kind, action) => {
                Asked::Array(None, rig.send(|r| Request::Task(name(), kind, None, action, r)))
            }
            Admin::Delete => {
                if !self.versions.borrow_mut().delete("w") {
                    return;
                }
                self.open.borrow_mut().retain(|(name, _)| name != "w");
                let answer = rig.send(|r| Request::VolumeDelete(name(), "w".into(), r));
                Asked::Delete("w".into(), answer)
            }
            Admin::Create => {
                if self.versions.borrow().volumes().len() > 1 {
                    return;
                }
                self.versions.borrow_mut().create("w", 32768);
                let made = |r| Request::VolumeCreate(name(), "w".into(), 32768, r);
                Asked::Volume("w".into(), None, 32768, rig.send(made))
            }
            Admin::Resize(pages) => match self.resize(rig, pages * 4096) {
                Some(asked) => asked,
                None => return,
            },
        };
        self.asked.borrow_mut().push(asked);
    }

    /// Asks for a drive that was never there to be put back in a slot.
    fn return_other(&self, rig: &Rig, slot: Slot) {
        let spare = self.spare.get();
        let Some(other) = self.drives.get(spare) else { return };
        let other = reference(other, spare);
        let answer = rig.send(|r| Request::Return(ARRAY.to_owned(), slot, other, r));
        self.asked.borrow_mut().push(Asked::Refused(answer));
    }

    /// Asks for another size of the first volume, if what that takes away is free.
    fn resize(&self, rig: &Rig, bytes: u64) -> Option<Asked> {
        let versions = &mut *self.versions.borrow_mut();
        let volume = versions.volumes().first()?;
        let (old, name) = (*volume.sizes.first()?, volume.name.clone());
        if volume.sizes.len() > 1 || volume.unborn || bytes == old {
            return None;
        }
        if bytes < old && !versions.claim(0, bytes, old - bytes) {
            return None;
        }
        versions.resize(0, bytes);
        let called = name.as_str().into();
        let resized = |r| Request::VolumeResize(ARRAY.into(), called, bytes.into(), r);
        Some(Asked::Volume(name, Some(old), bytes, rig.send(resized)))
    }

    /// What it is called that a drive took a slot.
    fn joined(&self, slot: usize, before: usize, drive: usize) -> &'static str {
        let record = record::newest(&Picked::new(&self.drives[drive]));
        let whole = record.and_then(|r| r.slots.get(slot).map(|s| s.whole)).unwrap_or(0);
        match before == drive {
            false => "replaced",
            true if whole > 0 => "put back and caught up",
            true => "put back and filled",
        }
    }

    /// Takes the answers that have come.
    fn hear(&self, rig: &Rig, status: &ArrayStatus) {
        let mut asked = self.asked.borrow_mut();
        asked.retain(|one| match one {
            Asked::Array(what, answer) => {
                let Some(result) = answer.take() else { return true };
                if let (Some(what), Ok(_)) = (what, result) {
                    self.tally.borrow_mut().fault(what, 1);
                }
                false
            }
            Asked::Refused(answer) => match answer.take() {
                Some(Ok(_)) => panic!("a drive that was never here is taken for one that is back"),
                other => other.is_none(),
            },
            Asked::Replace(slot, spare, answer) => match answer.take() {
                Some(Ok(_)) => {
                    let before = core::mem::replace(&mut self.seats.borrow_mut()[*slot], *spare);
                    self.tally.borrow_mut().fault(self.joined(*slot, before, *spare), 1);
                    false
                }
                other => other.is_none(),
            },
            Asked::Delete(name, answer) => {
                let Some(result) = answer.take() else { return true };
                let versions = &mut *self.versions.borrow_mut();
                // Where it failed the volume may be there or not; nobody works with it any more.
                if result.is_ok() {
                    let at = versions.named(name).expect("it was there");
                    versions.forget(at);
                }
                false
            }
            Asked::Volume(name, old, bytes, answer) => {
                let Some(result) = answer.take() else { return true };
                if result.is_err() && self.unpowered.get() {
                    // It may be on drives that have gone since.
                    return false;
                }
                let versions = &mut *self.versions.borrow_mut();
                let at = versions.named(name).expect("it was asked for");
                match (result, old) {
                    (Ok(volume), None) => {
                        versions.settle(at, *bytes);
                        let open = (name.clone(), rig.open(status, &volume));
                        self.open.borrow_mut().push(open);
                    }
                    (Err(_), None) => versions.forget(at),
                    (Ok(_), Some(_)) => versions.settle(at, *bytes),
                    (Err(_), Some(old)) => {
                        versions.settle(at, *old);
                        versions.release(at, *bytes, old.saturating_sub(*bytes));
                    }
                }
                false
            }
        });
    }
}
