//! What the daemon knows at a moment, and what it is made of: what the engine told
//! ([`engine::manage::feed`]), and what was kept of tasks ([`crate::jobs`]).
//!
//! | what is known of arrays is | becomes | when                                                  |
//! |----------------------------|---------|-------------------------------------------------------|
//! | behind                     | current | the engine was asked for all, and answered            |
//! | current                    | behind  | the engine told more than its ring holds              |
//!
//! Invariants
//! - [`Snapshot::view`] waits for nothing but the moment in which a view is put in its place.
//! - Every array that was told is shown to the jobs, in order.

use crate::chance;
use crate::convert;
use crate::jobs::{Jobs, Tasks};
use crate::lock::lock;
use engine::manage::command::{ArrayStatus, Change};
use engine::manage::feed::Feed;
use redfish::view::{self, Server, View};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use units::Uuid;

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Bytes that nobody can guess. The kernel always gives some.
pub fn random<const N: usize>() -> [u8; N] {
    chance::bytes().unwrap_or_else(|_| {
        // The call is forbidden.
        let mut bytes = [0; N];
        let mut read = || std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes);
        while read().is_err() {}
        bytes
    })
}

/// A new identity.
pub fn random_uuid() -> Uuid {
    Uuid::from_random(random())
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
pub struct Told {
    /// Where it tells what changes.
    pub feed: Option<Arc<Feed<Change>>>,
    /// How running arrays are.
    pub arrays: Vec<ArrayStatus>,
    /// Their tasks, to their ends and behind.
    pub jobs: Jobs,
}

impl Told {
    /// Takes what was told since the last time; false if something is missing.
    pub fn catch_up(&mut self, now: u64) -> bool {
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
    pub fn begin(&mut self, feed: Arc<Feed<Change>>, arrays: Vec<ArrayStatus>, now: u64) {
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
    pub asking: tokio::sync::Mutex<()>,
    /// The engine told something.
    pub news: Arc<Notify>,
    /// The engine is to be asked for all.
    pub behind: Notify,
}

impl Snapshot {
    /// Nothing is known but the daemon itself.
    pub fn new(status: view::Status, confirms: bool) -> Self {
        let since = now();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let uuid = service_uuid().to_string();
        let server = Server { name, uuid, now: since, since, confirms, ..Server::default() };
        let view = View { server, status, ..View::default() };
        let jobs = Jobs::new(|| random_uuid().to_string());
        let told = Told { feed: None, arrays: Vec::new(), jobs };
        let (asking, news, behind) = Default::default();
        Self { view: Mutex::new(Arc::new(view)), told: Mutex::new(told), asking, news, behind }
    }

    /// The view that is there.
    pub fn view(&self) -> Arc<View> {
        lock(&self.view).clone()
    }

    /// Puts another in its place.
    pub fn put(&self, view: View) {
        let view = Arc::new(view);
        let old = core::mem::replace(&mut *lock(&self.view), view);
        // Whoever drops it last frees it, but not while the new one is waited for.
        drop(old);
    }

    /// What the engine told. Held while a view is made of it, never over I/O or a wait.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        lock(&self.told)
    }
}
