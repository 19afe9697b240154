//! Keeps the view: what the daemon knows at a moment, ready for whoever asks.
//!
//! Purpose: answers of the interface are made of a [`View`] that is there already. It is made anew
//! when the engine tells something, when a change is about to be answered, after each look at
//! drives, and every [`AGAIN`] for what moves by itself: hosts that come and go, exports that can
//! be served now, what drives were asked.
//!
//! Invariants
//! - [`Manager::view`] waits for nothing but the moment in which the view is put in its place:
//!   neither for the engine, a drive, a name server nor a host.
//! - Nothing that is held while a view is made is held over I/O or while somebody is waited for.
//! - A later view is of a later moment.
//! - What two views differ by is told as events before the later one is in its place.
//! - A change is answered after the view says what it did ([`crate::changes`]).

use crate::convert;
use crate::counters::Seen;
use crate::fc;
use crate::manager::Manager;
use crate::next;
use crate::ownership::taken_by;
use crate::snapshot::{Told, now};
use engine::manage::command::{ArrayStatus, Request};
use engine::manage::feed::Feed;
use redfish::view::{Error, KnownDrive, Server, Shown, View};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the view is made anew for what moves by itself.
const AGAIN: Duration = Duration::from_millis(500);

/// How often it is looked whether drives have changed.
const LOOK: Duration = Duration::from_secs(5);

/// Each how manieth of these looks is at all drives, changed or not.
const FULL: u32 = 12;

impl Manager {
    /// What the daemon knows now.
    pub fn view(&self) -> Arc<View> {
        self.snapshot.view()
    }

    /// Makes the view of what is known now; false if the engine has to be asked for all.
    pub(crate) fn refresh(&self) -> bool {
        let now = now();
        // Held to the end, so that a view that is older does not take the place of a newer one.
        let mut told = self.snapshot.told();
        let is_current = told.catch_up(now);
        told.jobs.forget(now);
        let mut view = self.compose(&told, now);
        if self.returns.concerns(&told.arrays) {
            self.returns.news.notify_one();
        }
        if told.arrays.iter().any(|array| taken_by(array).is_some()) {
            self.ownership.news.notify_one();
        }
        let before = self.view();
        view.events = before.events.clone();
        let (alerts, told) = self.alerts().follow(&view, *self.ending.borrow());
        view.alerts = alerts;
        self.events().follow(&before, &view);
        self.events().tell_all(told, now);
        view.events = self.shown_events();
        // Drives that came are found in their slots, and are described, at once.
        let ids = view.drives.iter().map(|known| &known.id);
        if !ids.eq(before.drives.iter().map(|known| &known.id)) {
            self.attend.notify_one();
        }
        self.snapshot.put(view);
        self.history.see(&before, &self.view());
        is_current
    }

    /// Makes the view say which events there are, and who is told of them.
    pub(crate) fn refresh_events(&self) {
        // Held to the end, as above.
        let _told = self.snapshot.told();
        let (view, events) = (self.view(), self.shown_events());
        if view.events != events {
            self.snapshot.put(View { events, ..View::clone(&view) });
        }
    }

    /// What can be shown of events, and of mail.
    fn shown_events(&self) -> Arc<Shown> {
        self.alerts().complete(self.events().shown())
    }

    fn compose(&self, told: &Told, now: u64) -> View {
        let confirms = self.confirm.is_required();
        let open_metrics = self.metrics.is_open();
        let server = Server { now, confirms, open_metrics, ..self.view().server.clone() };
        let places = convert::places(&told.arrays);
        let mut status = self.status_of(&told.arrays);
        let mut drives: Vec<KnownDrive> =
            self.inventory().iter().filter_map(|known| known.described(&places)).collect();
        let behind = self.data.fabrics().remotes();
        for known in &mut drives {
            known.remote = behind.get(Path::new(&known.drive.path)).cloned();
            known.hardware = self.wellness.hardware(&known.drive.path).unwrap_or_default();
        }
        status.next.extend(next::unwell(&drives));
        // In the order of the arrays in the view.
        let mut arrays: Vec<&ArrayStatus> = told.arrays.iter().collect();
        arrays.sort_by_key(|array| (&array.name, array.uuid));
        let numbers: Vec<u64> =
            arrays.iter().flat_map(|array| &array.tasks).map(|task| task.number).collect();
        let (jobs, log) = (told.jobs.list(&numbers), self.audit.log());
        let tasks = self.slow.list(now);
        let access = Arc::new(self.accounts().shown());
        let https = self.https().view();
        let counters = self.data.ledger().sample(|| Seen {
            cores: self.data.core_counts(),
            drives: self.inventory().times(),
            visits: self.data.target().visits(),
            jobs: told.jobs.counters(),
        });
        let (events, past) = (Arc::default(), self.history.past());
        let surroundings = self.wellness.around();
        let rest = View { past, surroundings, ports: fc::ports(), ..View::default() };
        View { server, status, drives, jobs, log, tasks, access, https, counters, events, ..rest }
    }

    /// Makes the view say what changed before this was called.
    pub async fn renew(&self) {
        if !self.refresh() {
            // An engine that does not answer is stopping.
            let _ = self.ask_for_all().await;
            self.refresh();
        }
    }

    /// Asks the engine how all arrays are, and to tell what changes from then on.
    async fn ask_for_all(&self) -> Result<(), Error> {
        let _asking = self.snapshot.asking.lock().await;
        if self.snapshot.told().feed.is_some() {
            return Ok(());
        }
        let news = self.snapshot.news.clone();
        let feed = Feed::new(move || news.notify_one());
        let given = feed.clone();
        let arrays = self.data.ask(|reply| Request::Feed(given, reply)).await?;
        self.snapshot.told().begin(feed, arrays, now());
        Ok(())
    }

    /// Keeps the view: it follows the engine, looks at drives, and makes it anew now and then.
    pub async fn keep_view(&self) {
        tokio::join!(
            self.keep_refreshing(),
            self.keep_asking(),
            self.keep_looking(),
            self.keep_seeing_owners(),
            self.keep_reporting(),
        );
    }

    async fn keep_refreshing(&self) {
        loop {
            if !self.refresh() {
                self.snapshot.behind.notify_one();
            }
            // Whichever comes first.
            let _ = tokio::time::timeout(AGAIN, self.snapshot.news.notified()).await;
        }
    }

    async fn keep_asking(&self) {
        loop {
            self.snapshot.behind.notified().await;
            if self.ask_for_all().await.is_ok() {
                self.refresh();
            }
        }
    }

    async fn keep_looking(&self) {
        for look in 1_u32.. {
            tokio::time::sleep(LOOK).await;
            // A start-up looks by itself.
            if self.view().status.ready {
                let _ = self.look_again(look.is_multiple_of(FULL)).await;
                self.refresh();
            }
        }
    }
}

#[cfg(test)]
#[path = "renewal_tests.rs"]
pub(crate) mod tests;
