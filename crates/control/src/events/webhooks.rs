//! Webhooks: receivers that are told of events.
//!
//! A subscription is
//!
//! | state      | becomes    | when                                                            |
//! |------------|------------|-----------------------------------------------------------------|
//! | delivering | failing    | the receiver did not take events                                |
//! | failing    | delivering | it took them; each attempt waits twice as long as the one before |
//! | failing    | suspended  | [`ATTEMPTS`] were made, and the subscription says so             |
//! | failing    | (deleted)  | [`ATTEMPTS`] were made, and the subscription says so             |
//! | suspended  | delivering | somebody resumes it                                             |
//!
//! Subscriptions are in the file `subscriptions.json` of the state directory; without one they end
//! with the daemon. The file has for each which event its receiver has taken last: a daemon that
//! starts goes on there. It is written at the daemon's end, with each change, and every [`KEEPS`]:
//! after a crash a receiver may be told events twice, with the same identifiers.
//!
//! Invariants
//! - A receiver that hangs delays nobody else: each has a task of its own, which reads the ring.
//!   What falls out of the ring before it is delivered is counted.
//! - A subscription that is there has its task, whoever still waits for its being made.
//! - A change of subscriptions is in the file before it is answered, or did not happen.
//! - What headers hold is told to the receiver and to the file, and to nobody else.

use super::client::{Client, Failure};
use super::ring::{Batch, Place, Ring};
use crate::lock::lock;
use crate::snapshot::{now, random_uuid};
use crate::state::{SUBSCRIPTIONS as FILE, State};
use hyper::body::Bytes;
use redfish::access::Secret;
use redfish::change::{NewSubscription, SubscriptionChange};
use redfish::events::filter::{Subject, Wanted};
use redfish::events::receiver::{Header, Receiver, shortened};
use redfish::events::{
    ATTEMPTS, Event, INTERVAL_SECONDS, Policy, SUBSCRIPTIONS_MOST, Standing, Subscription, payload,
    smtp,
};
use redfish::messages::{self as say, Severity};
use redfish::view::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

/// The version of the file.
const VERSION: u32 = 1;

/// How many events are looked at, and sent at most, at one time.
const TOGETHER: usize = 32;

/// The longest wait between two attempts.
const LONGEST: Duration = Duration::from_secs(300);

/// How long somebody waits for the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the file is written if receivers took events.
const KEEPS: Duration = Duration::from_secs(60);

/// How far a receiver is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    /// The identifier of the last event that it has taken, did not want, or missed.
    taken: u64,
    /// How many events it took.
    delivered: u64,
    /// How many events it missed, or would not take.
    dropped: u64,
}

/// A subscription, as the file has it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    id: String,
    destination: String,
    context: Option<String>,
    registries: Vec<String>,
    types: Vec<String>,
    messages: Vec<String>,
    severities: Vec<String>,
    policy: Policy,
    verify: bool,
    headers: Vec<(String, String)>,
    suspended: bool,
    progress: Progress,
}

/// What the file holds.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    version: u32,
    subscriptions: Vec<Kept>,
}

impl Kept {
    /// A new one, which is told what comes after this event.
    fn new(new: NewSubscription, taken: u64) -> Self {
        let NewSubscription { destination, context, wants, policy, verify, headers } = new;
        let severities = wants.severities.iter().map(|one| one.word().to_owned()).collect();
        let (registries, types, messages) = (wants.registries, wants.types, wants.messages);
        Self {
            id: random_uuid().to_string(),
            destination,
            context,
            registries,
            types,
            messages,
            severities,
            policy,
            verify,
            headers: plain(headers),
            suspended: false,
            progress: Progress { taken, ..Progress::default() },
        }
    }

    fn take(&mut self, change: SubscriptionChange) {
        let SubscriptionChange { context, policy, verify, headers } = change;
        self.context = context.or_else(|| self.context.take());
        self.policy = policy.unwrap_or(self.policy);
        self.verify = verify.unwrap_or(self.verify);
        if let Some(headers) = headers {
            self.headers = plain(headers);
        }
    }

    /// Whether it is a recipient of mail: that is sent elsewhere, of alerts.
    fn is_mail(&self) -> bool {
        smtp::recipient(&self.destination).is_some()
    }

    fn wants(&self) -> Wanted {
        Wanted {
            registries: self.registries.clone(),
            types: self.types.clone(),
            messages: self.messages.clone(),
            severities: self.severities.iter().filter_map(|word| Severity::of(word)).collect(),
            ..Wanted::default()
        }
    }

    fn headers(&self) -> Vec<Header> {
        let secret = |(name, value): &(String, String)| (name.clone(), Secret::new(value.as_str()));
        self.headers.iter().map(secret).collect()
    }
}

fn plain(headers: Vec<Header>) -> Vec<(String, String)> {
    headers.into_iter().map(|(name, value)| (name, value.reveal().to_owned())).collect()
}

/// A subscription that is there.
struct Own {
    kept: Kept,
    /// Where its receiver is in the ring.
    place: Place,
    /// Why the last delivery failed.
    problem: Option<String>,
    /// When it was last found that it missed some.
    dropped_at: Option<u64>,
    /// Somebody changes or resumes it.
    changed: Arc<Notify>,
    task: Option<JoinHandle<()>>,
    /// How far it is by the file.
    written: Progress,
}

impl Own {
    fn new(kept: Kept, ring: &Ring) -> Self {
        let (place, has_missed) = ring.place_after(kept.progress.taken);
        let (problem, dropped_at, changed, task) = Default::default();
        let written = kept.progress;
        let mut own = Self { kept, place, problem, dropped_at, changed, task, written };
        // How many is not known.
        own.missed(has_missed.into());
        own
    }

    /// It is never told so many events.
    fn missed(&mut self, count: u64) {
        // Mail is of alerts, not of the ring's events.
        if count > 0 && !self.kept.is_mail() {
            let dropped = &mut self.kept.progress.dropped;
            *dropped = dropped.saturating_add(count);
            self.dropped_at = Some(now());
        }
    }

    /// Counts what has fallen out of the ring. Answers with what comes next.
    fn next(&mut self, ring: &Ring, most: usize) -> Batch {
        let batch = ring.after(self.place, most);
        if batch.missed > 0 {
            self.place = self.place.saturating_add(batch.missed);
            self.kept.progress.taken = ring.id_before(self.place);
            self.missed(batch.missed);
        }
        batch
    }

    /// The receiver is done with these.
    fn took(&mut self, batch: &Batch) {
        self.place = self.place.max(batch.place);
        if let Some(last) = batch.events.last() {
            self.kept.progress.taken = self.kept.progress.taken.max(last.id);
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// All of them.
pub struct Webhooks {
    ring: Arc<Ring>,
    client: Client,
    state: Option<Arc<State>>,
    /// Why the file can't be read: it is left as it is.
    unreadable: Option<Error>,
    all: Mutex<BTreeMap<String, Own>>,
    /// Held by who changes the file.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// How long the first attempt after a failure waits.
    interval: Duration,
}

/// Reads the file of a state directory. Waits for it.
///
/// # Errors
/// It can't be read, or is not what the daemon writes.
pub fn read(state: &State) -> Result<File, Error> {
    let file = match state.read(FILE) {
        Ok(None) => Ok(File::default()),
        Ok(Some(bytes)) => match serde_json::from_slice::<File>(&bytes) {
            Ok(file) if file.version == VERSION => Ok(file),
            Ok(file) => Err(format!("it is of version {}", file.version)),
            Err(error) => Err(error.to_string()),
        },
        Err(error) => Err(error.to_string()),
    };
    file.map_err(|why| {
        let why = format!("{}: {why}", state.dir().join(FILE).display());
        Error::new(&say::SUBSCRIPTIONS_NOT_READ, &[&why])
    })
}

fn not_written(why: &dyn core::fmt::Display) -> Error {
    Error::new(&say::SUBSCRIPTIONS_NOT_WRITTEN, &[why])
}

impl Webhooks {
    /// Those of a state directory, whose file was read or could not be; without one there are none
    /// yet.
    pub fn new(ring: Arc<Ring>, state: Option<Arc<State>>, found: Result<File, Error>) -> Self {
        let (file, unreadable) = match found {
            Ok(file) => (file, None),
            Err(why) => (File::default(), Some(why)),
        };
        let own = |kept: Kept| (kept.id.clone(), Own::new(kept, &ring));
        let all = file.subscriptions.into_iter().map(own).collect();
        let interval = Duration::from_secs(INTERVAL_SECONDS);
        let (client, changing) = Default::default();
        Self { ring, client, state, unreadable, all: Mutex::new(all), changing, interval }
    }

    /// Why the file could not be read, if it could not.
    pub fn problem(&self) -> Option<&Error> {
        self.unreadable.as_ref()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Own>> {
        lock(&self.all)
    }

    /// Begins to deliver.
    pub fn start(self: &Arc<Self>) {
        for (id, own) in self.all().iter_mut().filter(|(_, own)| !own.kept.is_mail()) {
            own.task.get_or_insert_with(|| self.task(id));
        }
        let own = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(KEEPS).await;
                let Some(own) = own.upgrade() else { return };
                // What can't be written now is written later.
                let _ = own.keep().await;
            }
        });
    }

    /// Delivers nothing more, and keeps how far receivers are.
    pub async fn close(self: &Arc<Self>) {
        self.all().values_mut().filter_map(|own| own.task.take()).for_each(|task| task.abort());
        // Then they are told some events twice.
        let _ = self.keep().await;
    }

    /// Whether each receiver has all that it is to be told, or can't be told it.
    pub fn is_idle(&self) -> bool {
        let end = self.ring.end();
        let is_idle = |own: &Own| {
            own.place >= end || own.kept.suspended || own.problem.is_some() || own.kept.is_mail()
        };
        self.all().values().all(is_idle)
    }

    fn task(self: &Arc<Self>, id: &str) -> JoinHandle<()> {
        let (own, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move { own.deliver(&id).await })
    }

    /// Writes how far receivers are, if the file does not say so.
    async fn keep(self: &Arc<Self>) -> Result<(), Error> {
        for own in self.all().values_mut() {
            own.next(&self.ring, 0);
        }
        match self.state.is_some()
            && self.all().values().any(|own| own.kept.progress != own.written)
        {
            true => self.change(|_| ()).await,
            false => Ok(()),
        }
    }

    /// What can be told of them.
    pub fn list(&self) -> Vec<Subscription> {
        let one = |own: &Own| Subscription {
            id: own.kept.id.clone(),
            context: own.kept.context.clone(),
            destination: own.kept.destination.clone(),
            wants: own.kept.wants(),
            policy: own.kept.policy,
            verify: own.kept.verify,
            standing: Standing {
                problem: own.problem.clone(),
                is_suspended: own.kept.suspended,
                delivered: own.kept.progress.delivered,
                dropped: own.kept.progress.dropped,
                dropped_at: own.dropped_at,
            },
        };
        self.all().values().map(one).collect()
    }

    /// Sends each receiver this event, and tells what came of it: by receiver, shortened.
    pub async fn probe(self: &Arc<Self>, event: &Event) -> Vec<(String, Result<(), String>)> {
        let all: Vec<Kept> = self.all().values().map(|own| own.kept.clone()).collect();
        let mut probes = JoinSet::new();
        for kept in all.into_iter().filter(|kept| !kept.is_mail()) {
            let body = Bytes::from(payload(kept.context.as_deref(), [event]).to_string());
            let own = self.clone();
            probes.spawn(async move {
                let sent = match Receiver::read(&kept.destination) {
                    Some(to) => own.client.post(&to, kept.verify, &kept.headers(), body).await,
                    None => Err(Failure::from("its URI can't be read".to_owned())),
                };
                let sent = sent.map_err(|failure| failure.why);
                (shortened(&kept.destination).to_owned(), sent)
            });
        }
        probes.join_all().await
    }

    /// Whether there is one of this identifier.
    pub fn has(&self, id: &str) -> bool {
        self.all().contains_key(id)
    }

    /// Makes one; its identifier, or none if there are as many as there can be.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn subscribe(
        self: &Arc<Self>,
        new: NewSubscription,
    ) -> Result<Option<String>, Error> {
        let kept = Kept::new(new, self.ring.id_before(self.ring.end()));
        let id = kept.id.clone();
        let is_made = self
            .change(|all| {
                let has_room = all.len() < SUBSCRIPTIONS_MOST;
                if has_room {
                    all.push(kept);
                }
                has_room
            })
            .await?;
        Ok(is_made.then_some(id))
    }

    /// Changes one.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn alter(
        self: &Arc<Self>,
        id: &str,
        change: SubscriptionChange,
    ) -> Result<(), Error> {
        let change = |all: &mut Vec<Kept>| {
            if let Some(own) = all.iter_mut().find(|own| own.id == id) {
                own.take(change);
            }
        };
        self.change(change).await
    }

    /// Ends one.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn end(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        self.change(|all| all.retain(|own| own.id != id)).await
    }

    /// Suspends one, or has its deliveries go on.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn suspend(self: &Arc<Self>, id: &str, is_suspended: bool) -> Result<(), Error> {
        let change = |all: &mut Vec<Kept>| {
            if let Some(own) = all.iter_mut().find(|own| own.id == id) {
                own.suspended = is_suspended;
            }
        };
        self.change(change).await?;
        // Its next attempt is at once.
        if let Some(own) = self.all().get(id) {
            own.changed.notify_one();
        }
        Ok(())
    }

    /// Changes what is kept, and writes it before it counts.
    async fn change<T>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Vec<Kept>) -> T,
    ) -> Result<T, Error> {
        if let Some(why) = &self.unreadable {
            return Err(why.clone());
        }
        let late = || format!("no answer within {} s", PATIENCE.as_secs());
        let turn = timeout(PATIENCE, self.changing.clone().lock_owned()).await;
        let turn = turn.map_err(|_| not_written(&late()))?;
        let mut next: Vec<Kept> = self.all().values().map(|own| own.kept.clone()).collect();
        let told = act(&mut next);
        let Some(state) = self.state.clone() else {
            self.put(next);
            return Ok(told);
        };
        let file = File { version: VERSION, subscriptions: next };
        let bytes = serde_json::to_vec(&file).map_err(|error| not_written(&error))?;
        let own = self.clone();
        // Whoever asked may give up: what is late still counts once it is written.
        let writing = tokio::spawn(async move {
            let _turn = turn;
            let written = spawn_blocking(move || state.replace(FILE, &bytes)).await;
            let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            written.map_err(|error| not_written(&error))?;
            own.put(file.subscriptions);
            Ok(())
        });
        let written = timeout(PATIENCE, writing).await.map_err(|_| not_written(&late()))?;
        written.map_err(|error| not_written(&error))??;
        Ok(told)
    }

    /// Puts what was written in place. What is new begins.
    fn put(self: &Arc<Self>, next: Vec<Kept>) {
        let mut all = self.all();
        all.retain(|id, _| next.iter().any(|kept| kept.id == *id));
        for kept in next {
            let Some(own) = all.get_mut(&kept.id) else {
                let mut own = Own::new(kept, &self.ring);
                own.task = (!own.kept.is_mail()).then(|| self.task(&own.kept.id));
                all.insert(own.kept.id.clone(), own);
                continue;
            };
            own.written = kept.progress;
            let kept = Kept { progress: own.kept.progress, ..kept };
            if kept != own.kept {
                own.kept = kept;
                // Its next attempt is at once: it may be another by now.
                own.changed.notify_one();
            }
        }
    }

    /// Tells a receiver of events for as long as it is there.
    async fn deliver(self: &Arc<Self>, id: &str) {
        let mut told = self.ring.watch();
        let (mut attempts, mut most) = (0, TOGETHER);
        loop {
            told.borrow_and_update();
            let Some((kept, batch, changed)) = self.next(id, most) else { return };
            if kept.suspended {
                changed.notified().await;
                attempts = 0;
                continue;
            }
            if batch.events.is_empty() {
                if told.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let Err(failure) = self.send(&kept, &batch).await else {
                (attempts, most) = (0, most.saturating_mul(2).min(TOGETHER));
                continue;
            };
            self.note(id, |own| own.problem = Some(failure.why));
            attempts += 1;
            if failure.is_of_content && attempts > ATTEMPTS && kept.policy == Policy::RetryForever {
                // Those after it may be taken.
                if most == 1 {
                    self.note(id, |own| {
                        own.took(&batch);
                        own.missed(1);
                    });
                }
                most = 1;
                self.pause(&changed, attempts).await;
                continue;
            }
            if attempts <= ATTEMPTS || !self.give_up(&kept).await {
                self.pause(&changed, attempts).await;
            }
        }
    }

    /// A subscription, and what is to be told next; none if it is not there any more.
    fn next(&self, id: &str, most: usize) -> Option<(Kept, Batch, Arc<Notify>)> {
        let mut all = self.all();
        let own = all.get_mut(id)?;
        let batch = own.next(&self.ring, most);
        Some((own.kept.clone(), batch, own.changed.clone()))
    }

    fn note(&self, id: &str, change: impl FnOnce(&mut Own)) {
        if let Some(own) = self.all().get_mut(id) {
            change(own);
        }
    }

    /// Sends what of these a receiver wants.
    async fn send(&self, kept: &Kept, batch: &Batch) -> Result<(), Failure> {
        let wants = kept.wants();
        let all = batch.events.iter().map(|one| &**one);
        let wanted: Vec<&Event> = all.filter(|one| wants.has(Subject::Event(one))).collect();
        let count = wanted.len() as u64;
        if count > 0 {
            let body = Bytes::from(payload(kept.context.as_deref(), wanted).to_string());
            let to = Receiver::read(&kept.destination);
            let to = to.ok_or_else(|| Failure::from("its URI can't be read".to_owned()))?;
            self.client.post(&to, kept.verify, &kept.headers(), body).await?;
        }
        self.note(&kept.id, |own| {
            own.took(batch);
            if count > 0 {
                own.problem = None;
                let delivered = &mut own.kept.progress.delivered;
                *delivered = delivered.saturating_add(count);
            }
        });
        Ok(())
    }

    /// Waits for the next attempt, or until somebody changes the subscription.
    async fn pause(&self, changed: &Notify, attempts: u32) {
        let doublings = attempts.saturating_sub(1).min(16);
        let wait = self.interval.saturating_mul(1 << doublings).min(LONGEST);
        tokio::select! {
            () = sleep(wait) => {}
            () = changed.notified() => {}
        }
    }

    /// Suspends or ends a subscription after so many attempts that failed; false if it goes on.
    async fn give_up(self: &Arc<Self>, kept: &Kept) -> bool {
        match kept.policy {
            Policy::RetryForever => false,
            // What can't be written is tried again after another attempt.
            Policy::SuspendRetries => self.suspend(&kept.id, true).await.is_ok(),
            Policy::TerminateAfterRetries => {
                // Its end ends this task, too: so another one does it.
                let (own, id) = (self.clone(), kept.id.clone());
                let ended = tokio::spawn(async move { own.end(&id).await }).await;
                matches!(ended, Ok(Ok(())))
            }
        }
    }
}

#[cfg(test)]
#[path = "webhooks_tests.rs"]
mod tests;
