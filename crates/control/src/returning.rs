//! Has drives behind a fabric take their slots again, and starts arrays that waited for them:
//! [`crate::returns`] says which and when.
//!
//! Nobody tells when a path leads to a drive again. So it is looked every [`LOOK`] for as long as
//! something is out, every [`LATE`] as long as what the configuration names was never reached, and
//! not at all otherwise.
//!
//! A start-up does not wait for ever. An array of which all drives are behind a fabric, named by
//! the configuration and reached only after that is started then, as it would have been.
//!
//! Invariants
//! - An array of which drives hang holds up no other.
//! - While something is done here for an array, requests that change it wait, or it waits for them.

use crate::convert;
use crate::fabrics::{Fabrics, is_behind};
use crate::manager::Manager;
use crate::ownership;
use crate::returns::{Late, Returns, Seen, Step};
use core::fmt::Display;
use engine::manage::command::{ArrayStatus, StartOptions};
use format::ArrayRecord;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{SlotInfo, SlotState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;
use units::{Slot, Uuid};

/// How often it is looked whether paths lead to drives that are out.
const LOOK: Duration = Duration::from_millis(250);

/// The same where arrays may be found whose drives were not reached at the start.
const LATE: Duration = Duration::from_secs(1);

/// Whether a path leads to the drive of a name whose serial number begins so.
fn is_reached(fabrics: &Fabrics, path: &str, serial: &str) -> bool {
    let is_it = |own: (String, String)| own.0.starts_with(serial);
    fabrics.identity(Path::new(path)).is_some_and(is_it)
}

/// Something is being done for an array: until this is dropped, however it ends.
struct Doing<'a> {
    returns: &'a Returns,
    array: Uuid,
    is_done: bool,
}

impl Drop for Doing<'_> {
    fn drop(&mut self) {
        self.returns.did(self.array, self.is_done, Instant::now());
    }
}

impl Manager {
    /// Looks after drives that are out, for as long as the daemon runs.
    pub(crate) async fn keep_returning(self: Arc<Self>) {
        let (mut under_way, mut late) = (JoinSet::new(), Late::default());
        loop {
            let goes_on = self.look_for_returned(&mut under_way).await;
            let is_over = self.ready.load(Ordering::Acquire);
            let is_late = late.goes_on(is_over, self.data.fabrics().awaits(), Instant::now());
            if is_late {
                self.start_late(&mut under_way).await;
            }
            // What has ended has said so.
            while under_way.try_join_next().is_some() {}
            match (goes_on, is_late) {
                (true, _) => drop(timeout(LOOK, self.returns.news.notified()).await),
                (false, true) => drop(timeout(LATE, self.returns.news.notified()).await),
                (false, false) => self.returns.news.notified().await,
            }
        }
    }

    /// Begins what there is to do; whether there may be more later.
    async fn look_for_returned(self: &Arc<Self>, under_way: &mut JoinSet<()>) -> bool {
        let version = self.returns.version();
        let Ok(arrays) = self.running().await else { return true };
        let fabrics = self.data.fabrics().clone();
        let is_reached = |path: &str, serial: &str| is_reached(&fabrics, path, serial);
        let found = convert::returned(&self.inventory(), &arrays);
        let seen = Seen { is_reached: &is_reached, found: &found };
        let (steps, goes_on) = self.returns.look((&arrays, version), &seen, Instant::now());
        for (array, step) in steps {
            let own = self.clone();
            under_way.spawn(async move {
                let mut doing = Doing { returns: &own.returns, array, is_done: false };
                doing.is_done = own.step(array, step).await;
                drop(doing);
                own.renew().await;
                own.returns.news.notify_one();
            });
        }
        goes_on
    }

    /// Starts arrays that were found too late for the start-up.
    async fn start_late(self: &Arc<Self>, under_way: &mut JoinSet<()>) {
        let found = self.found().await.unwrap_or_default();
        for (uuid, record) in found {
            if !self.is_late(uuid, &record) || !self.returns.begin(uuid, Instant::now()) {
                continue;
            }
            let own = self.clone();
            under_way.spawn(async move {
                let mut doing = Doing { returns: &own.returns, array: uuid, is_done: false };
                let held = own.holds.take(&uuid.to_string(), true).await;
                doing.is_done = !own.is_late(uuid, &record) || own.start_whole(uuid).await;
                drop((held, doing));
                own.renew().await;
            });
        }
    }

    /// Whether an array would have been started at the start-up if its drives had been reached.
    fn is_late(&self, uuid: Uuid, record: &ArrayRecord) -> bool {
        if self.in_hand().contains(&uuid) || self.is_refused(uuid) || *self.ending.borrow() {
            return false;
        }
        let slots = convert::found(record, &self.inventory(), None).slots;
        let is_named = |slot: &SlotInfo| {
            slot.drive.as_ref().is_some_and(|own| is_behind(own) && self.is_named(own))
        };
        slots.iter().filter(|slot| slot.state != SlotState::Failed).all(is_named)
    }

    /// Does something for an array; whether it is done, or not to be tried again.
    async fn step(&self, array: Uuid, step: Step) -> bool {
        if *self.ending.borrow() {
            return false;
        }
        let uuid = array.to_string();
        let alone = matches!(step, Step::Restart | Step::Start);
        let _held = self.holds.take(&uuid, alone).await;
        match step {
            Step::Return(path, slot) => self.give_back(&uuid, (&path, slot)).await,
            Step::Wait(count) => self.wait_for_drives(&uuid, count).await,
            Step::Restart => self.restart(&uuid).await && self.start_again(array).await,
            Step::Start => self.start_again(array).await,
            Step::Resume => {
                if let Ok(status) = self.running_array(&uuid).await {
                    self.start_exports(&status).await;
                    self.tell_absent().await;
                }
                true
            }
        }
    }

    /// Has a drive take the slot again that it left.
    async fn give_back(&self, uuid: &str, (path, slot): (&str, Slot)) -> bool {
        let Ok(array) = self.running_array(uuid).await else { return true };
        // A person may have failed it since.
        if !self.returns.begin_return(array.uuid, slot) {
            return true;
        }
        let outcome = self.return_drive(&array, (path, slot)).await;
        let Err(error) = outcome else {
            runtime::say(format_args!(
                "palisade: {path} is reached again, and gets what slot {slot} of array \"{}\" \
                 missed",
                array.name
            ));
            return true;
        };
        let changed = [
            &say::DRIVE_NOT_AS_IT_WENT,
            &say::DRIVE_HOLDS_DATA,
            &say::ANOTHER_DRIVE,
            &say::ARRAY_OWNED,
        ];
        let is_unread =
            self.inventory().at(path).is_none_or(|known| known.content.problem.is_some());
        if is_unread || !changed.iter().any(|entry| error.is(entry)) {
            // It may be gone again, or somebody has it: it is tried again.
            return false;
        }
        self.returns.refused(array.uuid, slot);
        let args: [&dyn Display; 4] = [&path, &slot, &array.name, &error.error];
        self.events().tell(&say::DRIVE_NOT_TAKEN, &args, &uri::pool(uuid));
        true
    }

    /// An array has lost too many drives, and is to start again once it has them: hosts that ask
    /// for its volumes go on asking.
    async fn wait_for_drives(&self, uuid: &str, count: usize) -> bool {
        let Ok(array) = self.running_array(uuid).await else { return true };
        let name = &array.name;
        self.events().tell(&say::ARRAY_WAITS, &[name, &count], &uri::pool(uuid));
        runtime::say(format_args!(
            "palisade: array \"{name}\" can't do without {count} drives to which no path leads\n  \
             it starts by itself once they are reached (palisade drive paths)"
        ));
        self.suspend_exports(&array).await;
        true
    }

    /// Stops an array that is to be started again; whether it is.
    async fn restart(&self, uuid: &str) -> bool {
        let Ok(array) = self.running_array(uuid).await else { return false };
        let lacks = array.slots.iter().any(|slot| slot.left_behind);
        if !self.returns.is_waiting(array.uuid) || !lacks {
            return false;
        }
        // Before it is stopped: nobody may think that it does not come back.
        self.returns.stops(&array);
        let is_stopped = self.stop_running(&array).await.is_ok();
        if !is_stopped && self.running_array(uuid).await.is_ok() {
            self.returns.runs_on(array.uuid);
        }
        is_stopped
    }

    /// Starts an array that was stopped for that, if all its drives that count are there; whether
    /// that is not to be tried again.
    async fn start_again(&self, uuid: Uuid) -> bool {
        if *self.ending.borrow() || !self.returns.is_waiting(uuid) {
            return true;
        }
        // What can't be opened is as good as missing.
        let (Ok(_), Ok(found)) = (self.look_again(false).await, self.found().await) else {
            return false;
        };
        let Some(record) = found.get(&uuid) else { return false };
        self.absent(record).is_empty() && self.start_whole(uuid).await
    }

    /// Starts an array that was found, and has all its drives; whether that is not to be tried
    /// again.
    async fn start_whole(&self, uuid: Uuid) -> bool {
        if *self.ending.borrow() {
            return true;
        }
        let outcome = self.assemble_found(uuid, StartOptions::default(), &[]).await;
        // A shelf that starts comes and goes for a while.
        let is_final = outcome.as_ref().is_err_and(ownership::is_anothers);
        if outcome.is_err() && !is_final && self.returns.tries_again(uuid) {
            self.forget_problem(uuid);
            return false;
        }
        if is_final && self.returns.is_waiting(uuid) {
            self.was_taken_meanwhile(uuid).await;
        }
        self.returns.settled(uuid);
        if let Ok(status) = &outcome {
            runtime::say(format_args!(
                "palisade: array \"{}\" is started: all its drives are reached",
                status.name
            ));
            self.serve_all(status).await;
        }
        self.tell_absent().await;
        true
    }

    /// Ends the exports of an array that waits for its drives.
    async fn suspend_exports(&self, array: &ArrayStatus) {
        const WHY: &str = "its array waits for drives";
        self.end_machines(array).await;
        let mut exports = self.exports.lock().await;
        for status in &array.exports {
            exports.suspend_as(&convert::export_id(&array.name, status.id), WHY).await;
        }
        drop(exports);
        self.tell_absent().await;
    }
}
