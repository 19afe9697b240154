//! Shelves that tell of themselves by a management service: one task follows each.
//!
//! | a service is | becomes | when                                                           |
//! |--------------|---------|----------------------------------------------------------------|
//! | new          | well    | it was read: its chassis, and what hangs on it                  |
//! | new          | silent  | it can't be read                                                |
//! | well         | well    | it is read again: on an event, and each [`Pace::again`]          |
//! | well         | silent  | a reading failed, and so did the next attempt                    |
//! | silent       | well    | it was read; pauses between attempts grow to [`Pace::longest`]   |
//!
//! Invariants
//! - Nobody waits for a service, nor for its file of credentials, but the task that follows it:
//!   what others see is what was read last, and since when the service is silent.
//! - What was read stays while the service is silent, and over a new configuration that has the
//!   same service.
//! - A stream that is over, or that is refused, says nothing of the service: it is asked for again
//!   before the next reading.
//! - Nothing here runs on a data core.

mod chassis;
mod service;

use crate::config;
use crate::config::shelves::Credentials;
use crate::lock::lock;
use crate::nameplate;
use crate::pinned::{Connection, Limits, Service, Stream};
use crate::snapshot::now;
use chassis::{Seen, Told};
use core::convert::Infallible;
use redfish::view::{self, Silence};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, sleep_until, timeout, timeout_at};

/// The most events that are taken from a stream between two readings: the rest waits there.
const EVENTS: usize = 1000;

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// What a service may take.
    pub limits: Limits,
    /// What reading all of it may take.
    pub reading: Duration,
    /// How often it is read, if no event tells of a change.
    pub again: Duration,
    /// How long after an event it is read, so that many are one; and how long after the reading
    /// before, if events go on: then each pause is twice as long as the one before.
    pub together: Duration,
    /// The longest of these pauses. They begin anew after a reading that is followed by none for
    /// as long.
    pub calm: Duration,
    /// The pause after the first attempt that failed; each is twice as long as the one before.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let limit = Duration::from_secs(5);
        Self {
            limits: Limits { connect: limit, answer: limit, quiet: Duration::from_secs(60) },
            reading: Duration::from_secs(30),
            again: Duration::from_secs(30),
            together: Duration::from_millis(100),
            calm: Duration::from_secs(5),
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
        }
    }
}

/// What is known of a shelf.
#[derive(Default)]
struct Known {
    told: Arc<Told>,
    seen: Seen,
    /// When that was read, in seconds since 1970.
    read: Option<u64>,
    silence: Option<Silence>,
    /// Held by who reads the file of credentials.
    reading: Arc<tokio::sync::Mutex<()>>,
    /// Held by who looks up the service's name.
    lookup: Arc<tokio::sync::Mutex<()>>,
}

/// Who follows a shelf.
struct Follower {
    own: config::Shelf,
    known: Arc<Mutex<Known>>,
    tell: Arc<dyn Fn() + Send + Sync>,
    pace: Pace,
}

/// A shelf that is followed.
struct Followed {
    own: config::Shelf,
    known: Arc<Mutex<Known>>,
    task: JoinHandle<()>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// All shelves that are followed.
pub struct Shelves {
    all: Mutex<Vec<Followed>>,
    tell: Arc<dyn Fn() + Send + Sync>,
    pace: Pace,
}

impl Shelves {
    /// None yet. What becomes known of one is told so, and has to be taken then.
    pub fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self { all: Mutex::default(), tell: Arc::new(tell), pace: Pace::default() }
    }

    /// Follows these from now on, and no others; each is tried at once.
    pub fn follow(&self, wanted: &[config::Shelf]) {
        let mut all = lock(&self.all);
        let before = core::mem::take(&mut *all);
        for own in wanted {
            let same = before.iter().find(|other| other.own.redfish == own.redfish);
            let known = same.map_or_else(Arc::default, |other| other.known.clone());
            let follower = Follower {
                own: own.clone(),
                known: known.clone(),
                tell: self.tell.clone(),
                pace: self.pace,
            };
            let task = tokio::spawn(async move { follower.run().await });
            all.push(Followed { own: own.clone(), known, task });
        }
    }

    /// The shelves as enclosures. These are the daemon's drives: their identifiers and paths.
    pub fn enclosures(&self, drives: &[(String, String)]) -> Vec<view::Enclosure> {
        lock(&self.all).iter().map(|one| enclosure(one, drives)).collect()
    }
}

fn enclosure(one: &Followed, drives: &[(String, String)]) -> view::Enclosure {
    let (told, read, silence) = {
        let known = lock(&one.known);
        (known.told.clone(), known.read, known.silence.clone())
    };
    let mut shelf = view::Shelf { read, silence, ..told.shelf.clone() };
    shelf.url = one.own.redfish.to_string();
    for bay in &mut shelf.bays {
        let Some(begins) = bay.subsystem.as_ref().map(|nqn| format!("nvme://{nqn}/")) else {
            continue;
        };
        let is_on = |(_, path): &&(String, String)| path.starts_with(&begins);
        bay.own = drives.iter().filter(is_on).map(|(id, _)| id.clone()).collect();
    }
    let name = one.own.name();
    view::Enclosure {
        id: nameplate::id(&name),
        name,
        model: told.model.clone(),
        slots: shelf.bays.iter().map(slot).collect(),
        shelf: Some(shelf),
        ..view::Enclosure::default()
    }
}

/// A slot, with the first of the daemon's drives there. Its indicator is the shelf's to switch.
fn slot(bay: &view::ShelfBay) -> view::EnclosureSlot {
    view::EnclosureSlot { slot: bay.slot.clone(), drive: bay.own.first().cloned(), located: None }
}

/// Begins a stream of the service's events, if it has any for us.
async fn listen(
    service: &Service<'_>,
    own: &mut Connection,
    root: &Value,
) -> Result<Option<Stream>, String> {
    let Some(path) = service::stream(own, root).await? else { return Ok(None) };
    // One that streams to as many as it can is read all the same.
    let Ok(other) = service.connect().await else { return Ok(None) };
    Ok(other.stream(&path).await.ok())
}

impl Follower {
    /// Follows the shelf until it is dropped.
    async fn run(self) {
        let mut pause = self.pace.first;
        loop {
            let (mut is_read, begun) = (false, Instant::now());
            let Err(why) = self.visit(&mut is_read).await;
            // One that was read may have been restarted: the next attempt tells.
            if !is_read {
                self.miss(why);
            } else if begun.elapsed() > self.pace.longest {
                pause = self.pace.first;
            }
            sleep(pause).await;
            pause = (pause * 2).min(self.pace.longest);
        }
    }

    /// Reads the service again and again, until something fails.
    async fn visit(&self, is_read: &mut bool) -> Result<Infallible, String> {
        let credentials = self.credentials().await?;
        let service = Service {
            url: &self.own.redfish,
            fingerprint: self.own.fingerprint,
            credentials: &credentials,
            limits: self.pace.limits,
            lookup: lock(&self.known).lookup.clone(),
        };
        let (mut stream, mut pause) = (None, self.pace.together);
        loop {
            let mut own = service.connect().await?;
            let root = service::root(&mut own).await?;
            if stream.is_none() {
                // Before the reading, so that no change is missed between the two.
                stream = listen(&service, &mut own, &root).await?;
            }
            let answers = timeout(self.pace.reading, service::ask(&mut own, &root)).await;
            let late = || format!("not all is told within {} s", self.pace.reading.as_secs_f64());
            let answers = answers.map_err(|_| late())??;
            drop(own);
            let told = spawn_blocking(move || chassis::told(&answers)).await;
            self.see(told.map_err(|error| error.to_string())?);
            *is_read = true;
            self.wait(&mut stream, &mut pause).await;
        }
    }

    /// Waits until it is time to read again. A stream that is over is none any more.
    async fn wait(&self, stream: &mut Option<Stream>, pause: &mut Duration) {
        let (read, pace) = (tokio::time::Instant::now(), &self.pace);
        let told = async {
            match stream.as_mut() {
                Some(own) => own.news().await.is_ok(),
                None => core::future::pending().await,
            }
        };
        let told = timeout(pace.again, told).await;
        if told.is_err() || read.elapsed() >= pace.calm {
            *pause = pace.together;
        }
        let Ok(mut goes_on) = told else { return };
        let until = (tokio::time::Instant::now() + pace.together).max(read + *pause);
        *pause = (*pause * 2).min(pace.calm);
        let drain = async {
            for _ in 0..EVENTS {
                let Some(own) = stream.as_mut().filter(|_| goes_on) else { break };
                goes_on = own.news().await.is_ok();
            }
        };
        let _ = timeout_at(until, drain).await;
        if !goes_on {
            *stream = None;
        }
        sleep_until(until).await;
    }

    /// Reads the file of credentials. One that hangs keeps one thread, not one for each attempt.
    async fn credentials(&self) -> Result<Credentials, String> {
        let (path, turn) = (self.own.credentials.clone(), lock(&self.known).reading.clone());
        let of = |why: &dyn core::fmt::Display| {
            format!("credentials: {}: {why}", self.own.credentials.display())
        };
        let read = async {
            let turn = turn.lock_owned().await;
            let read = move || {
                let _turn = turn;
                Credentials::read(&path)
            };
            spawn_blocking(read).await
        };
        let read = timeout(self.pace.limits.answer, read).await;
        let read = read.map_err(|_| of(&"it does not answer"))?;
        read.map_err(|error| of(&error))?.map_err(|why| of(&why))
    }

    /// The service said this.
    fn see(&self, mut told: Told) {
        let is_other = {
            let mut known = lock(&self.known);
            known.seen.miss(&mut told.shelf.parts);
            let is_other = known.silence.is_some() || known.read.is_none() || *known.told != told;
            (known.read, known.silence) = (Some(now()), None);
            if *known.told != told {
                known.told = Arc::new(told);
            }
            is_other
        };
        if is_other {
            (self.tell)();
        }
    }

    /// The service does not answer.
    fn miss(&self, why: String) {
        {
            let mut known = lock(&self.known);
            let since = known.silence.as_ref().map_or_else(now, |own| own.since);
            let why: String = why.chars().filter(|c| !c.is_control()).take(300).collect();
            known.silence = Some(Silence { since, why });
        }
        (self.tell)();
    }
}

#[cfg(test)]
#[path = "shelves_tests.rs"]
mod tests;
