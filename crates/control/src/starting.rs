//! The daemon's start-up: opens all drives, starts every array found on them, and their exports.
//!
//! Drives come up one by one, those behind a fabric perhaps after the daemon. A drive that is not
//! there when its array is started is recorded as failed, and stays out until a person puts it
//! back. So what lacks a drive that counts is waited for. So are drives behind a fabric that the
//! configuration names: which arrays they have is known only then.
//!
//! States of an array that was found: lacking (drives are looked for again every [`AGAIN`]) →
//! tried, once: when nothing lacks, or with what is there when the wait is over; or a person has
//! started it before, and may have stopped it since.
//!
//! Invariants
//! - An array that lacks nothing waits for no other; hosts of a subsystem wait for all of it.
//! - Once the daemon is told to end, nothing more is started.

use crate::claims::told;
use crate::convert;
use crate::look::LookError;
use crate::manager::Manager;
use core::fmt::Display;
use drives::OpenError;
use engine::manage::command::{ArrayState, ArrayStatus, SlotHealth, SlotStatus, StartOptions};
use format::ArrayRecord;
use io::local::all_of;
use redfish::messages as say;
use redfish::view::{self, Error};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use units::Uuid;

/// How often drives are looked for that are not there yet.
const AGAIN: Duration = Duration::from_millis(500);

/// What a start-up has done so far.
#[derive(Default)]
struct Done {
    /// Arrays that were tried.
    tried: BTreeSet<Uuid>,
    /// Those that lack drives, and about which that was said.
    awaited: BTreeSet<Uuid>,
    started: Vec<ArrayStatus>,
    problems: Vec<Error>,
}

impl Done {
    /// An array was started, or not.
    fn take(&mut self, outcome: Result<ArrayStatus, Error>) {
        match outcome {
            Ok(status) => {
                self.problems.extend(lacking(&status));
                self.started.push(status);
            }
            Err(problem) => self.problems.push(problem),
        }
    }
}

impl Manager {
    /// Start-up; waits so long for drives. Answers with what went wrong, which is not fatal.
    pub async fn start(&self, wait: Duration) -> Vec<Error> {
        let until = Instant::now() + wait;
        let mut ending = self.ending.subscribe();
        let mut done = Done::default();
        let unusable = loop {
            let late = Instant::now() >= until;
            let unusable = match self.scan().await {
                Ok(unusable) => unusable,
                Err(error) => {
                    done.problems.push(error);
                    break Vec::new();
                }
            };
            // Before the first of them is served: hosts find a subsystem whole.
            self.tell_absent().await;
            let lacking = self.start_found(&mut done, (late, wait)).await;
            // What is on a drive that is not reached yet nobody knows.
            if !lacking && !self.data.fabrics().awaits() || late {
                break unusable;
            }
            let next = until.min(Instant::now() + AGAIN);
            if timeout_at(next, ending.wait_for(|told| *told)).await.is_ok() {
                break unusable;
            }
        };
        let mut problems = unusable_drives(unusable);
        problems.append(&mut done.problems);
        problems.extend(self.settle_exports(&done.started).await);
        self.tell_absent().await;
        self.data.target().settle();
        self.renew().await;
        self.ready.store(true, Ordering::Release);
        self.returns.news.notify_one();
        self.refresh();
        problems
    }

    /// The daemon is to end: a start-up waits for no more drives, and hosts are sent away before
    /// any array stops, to come again.
    pub fn begin_end(&self) {
        self.ending.send_replace(true);
        self.data.target().close();
    }

    /// Starts the arrays that have all their drives, if it is `late` those that have not, too;
    /// whether any waits.
    async fn start_found(&self, done: &mut Done, (late, wait): (bool, Duration)) -> bool {
        let found = match self.found().await {
            Ok(found) => found,
            Err(error) => {
                done.problems.push(error);
                return false;
            }
        };
        let (mut lacking, mut due) = (false, Vec::new());
        for (uuid, record) in found {
            if self.in_hand().contains(&uuid) {
                continue;
            }
            let absent = self.absent(&record);
            if !late && !absent.is_empty() && !done.tried.contains(&uuid) {
                lacking = true;
                if done.awaited.insert(uuid) {
                    say_awaited(&record.name, &absent, wait);
                }
            } else if done.tried.insert(uuid) {
                due.push((uuid, record));
            }
        }
        // Before the engine takes a shared array it waits, for some seconds where another start of
        // this server had it: each for itself, and behind those that it need not wait for.
        let (shared, own): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|(_, record)| record.shared);
        for found in own {
            if *self.ending.borrow() {
                return false;
            }
            done.take(self.start_one(found).await);
        }
        if !*self.ending.borrow() {
            let starts = shared.into_iter().map(|found| self.start_one(found)).collect();
            all_of(starts).await.into_iter().for_each(|outcome| done.take(outcome));
        }
        lacking
    }

    /// Starts an array and serves it; or what is told of that.
    async fn start_one(&self, (uuid, record): (Uuid, ArrayRecord)) -> Result<ArrayStatus, Error> {
        match self.assemble_found(uuid, StartOptions::default(), &[]).await {
            Ok(status) => {
                self.start_exports(&status).await;
                Ok(status)
            }
            Err(error) => {
                let args: [&dyn Display; 2] = [&record.name, &error.error];
                Err(Error::new(&say::ARRAY_NOT_STARTED, &args).advise(error.hint))
            }
        }
    }

    /// The slots of an array that does not run whose drives count and are not there.
    pub(crate) fn absent(&self, record: &ArrayRecord) -> Vec<view::SlotInfo> {
        let mut slots = convert::found(record, &self.inventory(), None).slots;
        slots.retain(|slot| slot.state == view::SlotState::Missing);
        slots
    }
}

fn say_awaited(name: &str, absent: &[view::SlotInfo], wait: Duration) {
    let slots: Vec<String> =
        absent.iter().map(|s| format!("slot {} (serial {})", s.slot, s.serial)).collect();
    runtime::say(format_args!(
        "palisade: array \"{name}\" waits for {}, at most {} s (drive_wait_ms)\n  \
         to start it now, run: palisade array assemble {name}",
        slots.join(", "),
        wait.as_millis().div_ceil(1000)
    ));
}

/// What is said at start of drives that can't be used; those that others have in one line.
fn unusable_drives(unusable: Vec<LookError>) -> Vec<Error> {
    let (taken, rest): (Vec<_>, Vec<_>) = unusable
        .into_iter()
        .partition(|error| matches!(error, LookError::Open(OpenError::InUse { .. })));
    let mut problems = Vec::new();
    let names: Vec<String> = taken
        .iter()
        .filter_map(|error| match error {
            LookError::Open(OpenError::InUse { path }) => Some(path.display().to_string()),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        problems.push(Error::new(&say::DRIVES_IN_USE, &[&names.join(", ")]));
    }
    let missing =
        |error: LookError| told(&error).advise("correct the path in `drives` in the configuration");
    problems.extend(rest.into_iter().map(missing));
    problems
}

/// What is said at start of an array that came up without some of its drives.
fn lacking(status: &ArrayStatus) -> Option<Error> {
    let lacks = |s: &&SlotStatus| matches!(s.health, SlotHealth::Failed | SlotHealth::Missing);
    let word = |s: &SlotStatus| {
        let state = if s.health == SlotHealth::Failed { "failed" } else { "missing" };
        format!("slot {} (serial {}) is {state}", s.slot, s.serial)
    };
    let first = status.slots.iter().find(lacks)?;
    let slots: Vec<String> = status.slots.iter().filter(lacks).map(word).collect();
    let state = if status.state == ArrayState::Failed { "failed" } else { "degraded" };
    let args: [&dyn Display; 4] = [&status.name, &state, &slots.join(", "), &first.slot];
    Some(Error::new(&say::ARRAY_LACKS_DRIVES, &args))
}
