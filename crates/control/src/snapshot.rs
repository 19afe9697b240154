//! What the daemon knows at a moment, ready for whoever asks: nobody is asked for it then.
//!
//! Purpose: answers of the interface are made of a [`View`] that is there already. It is made of
//! what the engine told ([`engine::manage::feed`]), what is known of drives and exports, and what
//! was kept of tasks ([`crate::jobs`]).
//!
//! | what is known of arrays is | becomes | when                                                  |
//! |----------------------------|---------|-------------------------------------------------------|
//! | behind                     | current | the engine was asked for all, and answered            |
//! | current                    | behind  | the engine told more than its ring holds              |
//!
//! The view is made anew when the engine tells something, when a change is about to be answered,
//! after each look at drives, and every [`AGAIN`] for what moves by itself: hosts that come and go,
//! exports that can be served now, what drives were asked.
//!
//! Invariants
//! - [`Manager::view`] waits for nothing but the moment in which the view is put in its place:
//!   neither for the engine, a drive, a name server nor a host.
//! - Nothing that is held while a view is made is held over I/O or while somebody is waited for.
//! - A later view is of a later moment.
//! - A change is answered after the view says what it did ([`crate::changes`]).

use crate::api::{self, Error, KnownDrive, Server, View};
use crate::convert;
use crate::jobs::{Jobs, Tasks};
use crate::manager::Manager;
use engine::manage::command::{ArrayStatus, Request};
use engine::manage::feed::{Change, Feed};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use units::Uuid;

/// How often the view is made anew for what moves by itself.
const AGAIN: Duration = Duration::from_millis(500);

/// How often it is looked whether drives have changed.
const LOOK: Duration = Duration::from_secs(5);

/// Each how manieth of these looks is at all drives, changed or not.
const FULL: u32 = 12;

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A new identity. Without chance from the kernel it would be no other than the one before; it
/// always gives some.
fn random_uuid() -> Uuid {
    let (mut bytes, mut filled) = ([0; 16], 0);
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(error) => assert_eq!(error, rustix::io::Errno::INTR, "the kernel has chance"),
        }
    }
    Uuid::from_random(bytes)
}

/// What identifies this machine's service: made of the machine's identity, which it does not tell.
fn service_uuid() -> Uuid {
    let Ok(machine) = std::fs::read_to_string("/etc/machine-id") else { return random_uuid() };
    let digest = Sha256::digest(format!("palisade service {}", machine.trim()));
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, from)| *byte = from);
    Uuid::from_random(bytes)
}

/// What the engine told.
struct Told {
    /// Where it tells what changes.
    feed: Option<Arc<Feed>>,
    /// How running arrays are.
    arrays: Vec<ArrayStatus>,
    jobs: Jobs,
}

impl Told {
    /// Takes what was told since the last time; false if something is missing.
    fn catch_up(&mut self, now: u64) -> bool {
        let Some(feed) = &self.feed else { return false };
        let Ok(changes) = feed.take() else {
            self.feed = None;
            return false;
        };
        for change in changes {
            match change {
                Change::Array(array) => self.put(*array, now),
                Change::Gone(id) => {
                    let gone = self.arrays.extract_if(.., |array| array.id == id);
                    gone.for_each(|array| self.jobs.gone(&array.uuid.to_string(), now));
                }
            }
        }
        true
    }

    /// Takes how all arrays are, and where changes of that will come.
    fn begin(&mut self, feed: Arc<Feed>, arrays: Vec<ArrayStatus>, now: u64) {
        let is_there = |id| arrays.iter().any(|array| array.id == id);
        let gone = self.arrays.extract_if(.., |array| !is_there(array.id));
        gone.for_each(|array| self.jobs.gone(&array.uuid.to_string(), now));
        for array in arrays {
            self.put(array, now);
        }
        self.feed = Some(feed);
    }

    fn put(&mut self, array: ArrayStatus, now: u64) {
        let listed = array.tasks.iter();
        let tasks = Tasks {
            array: &array.uuid.to_string(),
            listed: listed.map(|t| (t.number, convert::task(&array.name, t))).collect(),
            unended: &array.unended,
            ended: &array.ended,
        };
        self.jobs.see(tasks, now);
        match self.arrays.iter_mut().find(|known| known.id == array.id) {
            Some(known) => *known = array,
            None => self.arrays.push(array),
        }
    }
}

/// The view that is there, and what it is made of.
pub struct Snapshot {
    view: Mutex<Arc<View>>,
    told: Mutex<Told>,
    /// Held by who asks the engine for all.
    asking: tokio::sync::Mutex<()>,
    /// The engine told something.
    news: Arc<Notify>,
    /// The engine is to be asked for all.
    behind: Notify,
}

impl Snapshot {
    /// Nothing is known but the daemon itself.
    pub fn new(status: api::Status) -> Self {
        let since = now();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let server = Server { name, uuid: service_uuid().to_string(), now: since, since };
        let (drives, jobs) = (Vec::new(), Vec::new());
        let view = View { server, status, drives, jobs };
        let jobs = Jobs::new(|| random_uuid().to_string());
        let told = Told { feed: None, arrays: Vec::new(), jobs };
        let (asking, news, behind) = Default::default();
        Self { view: Mutex::new(Arc::new(view)), told: Mutex::new(told), asking, news, behind }
    }

    fn view(&self) -> Arc<View> {
        self.view.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn put(&self, view: View) {
        let view = Arc::new(view);
        let old =
            core::mem::replace(&mut *self.view.lock().unwrap_or_else(|e| e.into_inner()), view);
        // Whoever drops it last frees it, but not while the new one is waited for.
        drop(old);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(|e| e.into_inner())
    }
}

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
        let view = self.compose(&told, now);
        self.snapshot.put(view);
        is_current
    }

    fn compose(&self, told: &Told, now: u64) -> View {
        let server = Server { now, ..self.view().server.clone() };
        let places = convert::places(&told.arrays);
        let mut status = self.status_of(&told.arrays);
        let drives: Vec<KnownDrive> =
            self.inventory().iter().filter_map(|known| known.described(&places)).collect();
        let numbers = |array: &api::Array| {
            let told = told.arrays.iter().find(|told| told.uuid.to_string() == array.uuid);
            told.map_or(Vec::new(), |told| told.tasks.iter().map(|task| task.number).collect())
        };
        let numbers: Vec<u64> = status.arrays.iter().flat_map(numbers).collect();
        status.ready &= told.feed.is_some();
        View { server, status, drives, jobs: told.jobs.list(&numbers) }
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
        tokio::join!(self.keep_refreshing(), self.keep_asking(), self.keep_looking());
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
