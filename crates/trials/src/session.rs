//! One session: the array is started, hosts, people and faults do their steps, and it ends.
//!
//! Steps are taken in order by several lanes, so that many are under way at a time; a step of a
//! host claims its range first, so that nothing else changes or reads it meanwhile.
//!
//! Errors of hosts' requests are right only where the level has no redundancy left for what
//! befell the drives: then they are counted, and the blocks may be old or new.

use crate::camera::Camera;
use crate::failure::{Failure, Oracle, Outcome};
use crate::rig::{ARRAY, Answer, BOUND, Machine, Rig, reference};
use crate::scenario::{Admin, Fault, Host, Scenario, Session, Step, What, shape};
use crate::tally::Tally;
use crate::versions::Versions;
use engine::array::message::Repair;
use engine::manage::command::{ArrayStatus, Request, VolumeStatus};
use engine::volume::Volume;
use io::{BlockError, Blocks, Env, Pool, Priority};
use layout::Level;
use sim::{Rng, SharedSimDrive};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{CoreId, MIB, Nanos, Slot};

/// A request of a person under way.
enum Asked {
    Array(Answer<ArrayStatus>),
    /// A drive into a slot.
    Replace(usize, usize, Answer<ArrayStatus>),
    /// Of a new volume, or one that changes from a size.
    Volume(String, Option<u64>, u64, Answer<VolumeStatus>),
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
    /// Bytes at the begin of a volume that requests lie in.
    focus: u64,
    /// Requests may fail once a drive does.
    fragile: bool,
    /// Something befell a drive, now or in a session before.
    faulty: Cell<bool>,
    tally: RefCell<Tally>,
}

impl Floor {
    /// The floor of a session.
    pub fn new(
        scenario: &Scenario,
        session: &Session,
        versions: &Rc<RefCell<Versions>>,
        drives: &[SharedSimDrive],
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
            focus: session.focus.saturating_mul(scenario.unit),
            fragile: scenario.beyond
                || shape(scenario.level, scenario.width).0 == 0
                || (parity && owing),
            faulty: Cell::new(drives.iter().any(|d| !d.unreadable().is_empty())),
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
        camera: &mut Camera,
        tally: &mut Tally,
    ) -> Outcome<Vec<usize>> {
        for volume in &status.volumes {
            self.open.borrow_mut().push((volume.name.clone(), rig.open(status, volume)));
        }
        for lane in 0..self.lanes.get() {
            let env = rig.world.env(CoreId((lane % rig.cores.len()) as u16));
            let floor = self.clone();
            let timer = env.clone();
            env.spawn(Priority::First, async move {
                floor.walk(&timer).await;
                floor.lanes.set(floor.lanes.get() - 1);
            });
        }
        // Hung drives go on by a timer of their own; a second more than any of them hangs.
        let outcome = rig.run(camera, BOUND, "the work of hosts", || {
            self.ask_for(rig);
            self.hear(rig, status);
            let over = self.lanes.get() == 0
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

    async fn walk(self: &Rc<Self>, env: &Machine) {
        loop {
            let Some(step) = self.queue.borrow_mut().pop_front() else { return };
            let mut rng = Rng::new(step.seed);
            let outcome = match step.what {
                What::Host(host, most) => self.host(env, host, most, &mut rng).await,
                What::Drive(fault, victim) => {
                    self.befall(env, fault, victim, &mut rng);
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
    async fn claim(&self, env: &Machine, most: u64, rng: &mut Rng) -> Option<(usize, u64, u64)> {
        for _ in 0..200 {
            let count = self.versions.borrow().volumes().len();
            let at = rng.index(count);
            let there = !self.versions.borrow().volumes()[at].unborn;
            let (unit, focus) = (self.unit, self.focus);
            let (from, bytes) = self.versions.borrow().pick(at, rng, (unit, focus), most);
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
            return self.flush(env).await;
        }
        let Some((at, from, bytes)) = self.claim(env, most, rng).await else { return Ok(()) };
        let Some(volume) = self.handle(at, env.core()) else {
            self.versions.borrow_mut().release(at, from, bytes);
            return Ok(());
        };
        let outcome = match host {
            Host::Read => self.read(&volume, at, from, bytes).await,
            _ => self.change(&volume, host, (at, from, bytes)).await,
        };
        self.versions.borrow_mut().release(at, from, bytes);
        outcome
    }

    async fn read(
        &self,
        volume: &Volume<Machine>,
        at: usize,
        from: u64,
        bytes: u64,
    ) -> Result<(), String> {
        let (result, got) = volume.read(from, Pool::single(bytes as usize)).await;
        if self.ended(result, "read")? {
            let excused = self.versions.borrow_mut().check(at, from, &got, false)?;
            self.tally.borrow_mut().exceptions[1] += excused;
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
            Host::Zero { fua } => (volume.write_zeroes(from, bytes, fua).await, fua),
            _ => (volume.discard(from, bytes).await, false),
        };
        // A discard may leave what was there: both stay possible until a read tells.
        if self.ended(result, "change")? && host != Host::Discard {
            self.versions.borrow_mut().end(at, from, bytes, version, fua);
        }
        Ok(())
    }

    async fn flush(&self, env: &Machine) -> Result<(), String> {
        let Some(volume) = self.handle(0, env.core()) else { return Ok(()) };
        let flush = self.versions.borrow().flush_begins();
        if self.ended(volume.flush().await, "flush")? {
            self.versions.borrow_mut().flush_ends(&flush);
        }
        Ok(())
    }

    /// Whether a request ended well; an error where it must not be is a failure.
    fn ended(&self, result: Result<(), BlockError>, what: &str) -> Result<bool, String> {
        let mut tally = self.tally.borrow_mut();
        tally.requests += 1;
        let Err(error) = result else { return Ok(true) };
        if self.fragile && self.faulty.get() {
            tally.exceptions[0] += 1;
            return Ok(false);
        }
        Err(format!("a {what} failed though redundancy covers what befell the drives: {error}"))
    }

    fn befall(&self, env: &Machine, fault: Fault, victim: usize, rng: &mut Rng) {
        let slot = self.victims[victim];
        let drive = self.drives[self.seats.borrow()[slot]].clone();
        let data = format::DATA_OFFSET;
        let name = match fault {
            Fault::Unreadable => {
                let at = data + rng.below(MIB / 4096) * 4096;
                let bytes = 4096 * (1 + rng.below(4));
                drive.fail_range(at, bytes.min(data + MIB - at));
                "unreadable blocks"
            }
            Fault::Read => {
                drive.fail_reads(rng.below(4), 1);
                "read error"
            }
            Fault::Write => {
                drive.fail_writes(rng.below(4), 1);
                "write error"
            }
            Fault::WriteMedia => {
                drive.spoil_writes(rng.below(4), 1);
                "write error on media"
            }
            Fault::Flush => {
                drive.fail_flushes(0, 1);
                "flush error"
            }
            Fault::Vanish => {
                drive.vanish();
                "vanished"
            }
            Fault::Return => {
                if !drive.is_gone() {
                    return;
                }
                drive.reappear();
                "returned"
            }
            Fault::Slow => {
                let factor = [10, 100, 1000][rng.index(3)];
                drive.set_latency(Nanos(1_000), Nanos(2_000 * factor));
                "slow"
            }
            Fault::Hang => {
                self.hang(env, drive, rng);
                "hang, then late execution"
            }
        };
        if !matches!(fault, Fault::Slow | Fault::Hang) {
            self.faulty.set(true);
        }
        self.tally.borrow_mut().fault(name, 1);
    }

    /// Holds some requests of a drive, or all, and lets them run late.
    fn hang(&self, env: &Machine, drive: SharedSimDrive, rng: &mut Rng) {
        if rng.coin() {
            drive.hang();
        } else {
            drive.hold(rng.below(3), 1 + rng.below(3));
        }
        let span = Nanos([50_000, 1_000_000, 1_000_000_000][rng.index(3)]);
        let timer = env.clone();
        env.spawn(Priority::First, async move {
            timer.sleep(span).await;
            drive.hold(0, 0);
            drive.release();
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
                self.tally.borrow_mut().fault("taken out by a person", 1);
                Asked::Array(rig.send(|r| Request::Fail(name(), format!("slot:{slot}"), r)))
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
            Admin::Scrub => {
                let all = [Repair::Nothing, Repair::Known, Repair::TrustData];
                let repair = all[(seed % 3) as usize];
                Asked::Array(rig.send(|r| Request::Scrub(name(), repair, r)))
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
        let called = name.clone();
        let resized = |r| Request::VolumeResize(ARRAY.into(), called, bytes, r);
        Some(Asked::Volume(name, Some(old), bytes, rig.send(resized)))
    }

    /// Takes the answers that have come.
    fn hear(&self, rig: &Rig, status: &ArrayStatus) {
        let mut asked = self.asked.borrow_mut();
        asked.retain(|one| match one {
            Asked::Array(answer) => answer.take().is_none(),
            Asked::Replace(slot, spare, answer) => match answer.take() {
                Some(Ok(_)) => {
                    self.seats.borrow_mut()[*slot] = *spare;
                    self.tally.borrow_mut().fault("replaced", 1);
                    false
                }
                other => other.is_none(),
            },
            Asked::Volume(name, old, bytes, answer) => {
                let Some(result) = answer.take() else { return true };
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
