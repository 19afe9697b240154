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
//! with the daemon. A daemon that starts tells receivers what comes from then on.
//!
//! Invariants
//! - A receiver that hangs delays nobody else: each has a task of its own, which reads the ring.
//!   What falls out of the ring before it is delivered is counted.
//! - A change of subscriptions is in the file before it is answered, or did not happen.
//! - What headers hold is told to the receiver and to the file, and to nobody else.

use super::client::Client;
use super::ring::{Place, Ring};
use crate::api::Error;
use crate::snapshot::random_uuid;
use crate::state::{SUBSCRIPTIONS as FILE, State};
use hyper::body::Bytes;
use redfish::access::Secret;
use redfish::change::{NewSubscription, SubscriptionChange};
use redfish::events::filter::{Subject, Wanted};
use redfish::events::receiver::{Header, Receiver};
use redfish::events::{
    ATTEMPTS, Event, INTERVAL_SECONDS, Policy, SUBSCRIPTIONS_MOST, Standing, Subscription, payload,
};
use redfish::messages::{self as say, Severity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

/// The version of the file.
const VERSION: u32 = 1;

/// How many events are looked at, and sent at most, at one time.
const TOGETHER: usize = 32;

/// The longest wait between two attempts.
const LONGEST: Duration = Duration::from_secs(300);

/// How long somebody waits for the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// A subscription, as the file has it.
#[derive(Clone, Serialize, Deserialize)]
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
}

/// What the file holds.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    version: u32,
    subscriptions: Vec<Kept>,
}

impl Kept {
    fn new(new: NewSubscription) -> Self {
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
    standing: Standing,
    /// Somebody resumes it.
    resumed: Arc<Notify>,
    task: Option<JoinHandle<()>>,
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

/// What came of an attempt that failed.
enum Next {
    Again,
    Suspended,
    Ended,
}

/// Reads the file of a state directory. Waits for it.
///
/// # Errors
/// It can't be read, or is not what the daemon writes.
pub fn read(state: &State) -> Result<File, Error> {
    let file = match state.read(FILE) {
        Ok(None) => Ok(File::default()),
        Ok(Some(bytes)) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
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
        let own = |kept: Kept| {
            let standing = Standing { is_suspended: kept.suspended, ..Standing::default() };
            (kept.id.clone(), Own { kept, standing, resumed: Arc::default(), task: None })
        };
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
        self.all.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Begins to deliver.
    pub fn start(self: &Arc<Self>) {
        let ids: Vec<String> = self.all().keys().cloned().collect();
        for id in ids {
            self.begin(&id);
        }
    }

    /// Delivers nothing more.
    pub fn stop(&self) {
        self.all().values_mut().filter_map(|own| own.task.take()).for_each(|task| task.abort());
    }

    fn begin(self: &Arc<Self>, id: &str) {
        let (own, name, place) = (self.clone(), id.to_owned(), self.ring.end());
        let task = tokio::spawn(async move { own.deliver(&name, place).await });
        match self.all().get_mut(id) {
            Some(own) => own.task = Some(task),
            None => task.abort(),
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
            standing: own.standing.clone(),
        };
        self.all().values().map(one).collect()
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
        let kept = Kept::new(new);
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
        if is_made {
            self.begin(&id);
        }
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
        self.change(change).await
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

    /// Puts what was written in place.
    fn put(&self, next: Vec<Kept>) {
        let mut all = self.all();
        all.retain(|id, _| next.iter().any(|kept| kept.id == *id));
        for kept in next {
            match all.get_mut(&kept.id) {
                Some(own) => {
                    own.standing.is_suspended = kept.suspended;
                    own.kept = kept;
                    // Its next attempt is at once: it may be another by now.
                    own.resumed.notify_one();
                }
                None => {
                    let (standing, resumed) = Default::default();
                    let own = Own { kept, standing, resumed, task: None };
                    all.insert(own.kept.id.clone(), own);
                }
            }
        }
    }

    /// Tells a receiver of events for as long as it is there.
    async fn deliver(self: &Arc<Self>, id: &str, mut place: Place) {
        let mut told = self.ring.watch();
        loop {
            told.borrow_and_update();
            let batch = self.ring.after(place, TOGETHER);
            place = batch.place;
            if batch.missed > 0 {
                self.note(id, |standing| {
                    standing.dropped = standing.dropped.saturating_add(batch.missed);
                });
            }
            if batch.events.is_empty() {
                if told.changed().await.is_err() {
                    return;
                }
                continue;
            }
            if !self.send(id, &batch.events).await {
                return;
            }
        }
    }

    fn note(&self, id: &str, change: impl FnOnce(&mut Standing)) {
        if let Some(own) = self.all().get_mut(id) {
            change(&mut own.standing);
        }
    }

    /// Sends what of these a receiver wants, until it has taken them; false if it is not there any
    /// more.
    async fn send(self: &Arc<Self>, id: &str, events: &[Arc<Event>]) -> bool {
        let mut attempts = 0;
        loop {
            let Some((kept, resumed)) = self.own(id) else { return false };
            if kept.suspended {
                resumed.notified().await;
                attempts = 0;
                continue;
            }
            let wants = kept.wants();
            let wanted: Vec<&Event> = events
                .iter()
                .map(|one| &**one)
                .filter(|one| wants.has(Subject::Event(one)))
                .collect();
            if wanted.is_empty() {
                return true;
            }
            let count = wanted.len() as u64;
            let body = Bytes::from(payload(kept.context.as_deref(), wanted).to_string());
            let outcome = match Receiver::read(&kept.destination) {
                Some(to) => self.client.post(&to, kept.verify, &kept.headers(), body).await,
                None => Err("its URI can't be read".to_owned()),
            };
            let Err(why) = outcome else {
                self.note(id, |standing| {
                    standing.problem = None;
                    standing.delivered = standing.delivered.saturating_add(count);
                });
                return true;
            };
            self.note(id, |standing| standing.problem = Some(why));
            attempts += 1;
            match self.after_failure(&kept, attempts).await {
                Next::Again => self.pause(&resumed, attempts).await,
                Next::Suspended => {}
                Next::Ended => return false,
            }
        }
    }

    fn own(&self, id: &str) -> Option<(Kept, Arc<Notify>)> {
        self.all().get(id).map(|own| (own.kept.clone(), own.resumed.clone()))
    }

    /// Waits for the next attempt, or until somebody changes the subscription.
    async fn pause(&self, resumed: &Notify, attempts: u32) {
        let doublings = attempts.saturating_sub(1).min(16);
        let wait = self.interval.saturating_mul(1 << doublings).min(LONGEST);
        tokio::select! {
            () = sleep(wait) => {}
            () = resumed.notified() => {}
        }
    }

    /// What becomes of a subscription after so many attempts that failed.
    async fn after_failure(self: &Arc<Self>, kept: &Kept, attempts: u32) -> Next {
        if attempts <= ATTEMPTS {
            return Next::Again;
        }
        match kept.policy {
            Policy::RetryForever => Next::Again,
            // What can't be written is tried again after another attempt.
            Policy::SuspendRetries => match self.suspend(&kept.id, true).await {
                Ok(()) => Next::Suspended,
                Err(_) => Next::Again,
            },
            Policy::TerminateAfterRetries => {
                // Its end ends this task, too: so another one does it.
                let (own, id) = (self.clone(), kept.id.clone());
                let ended = tokio::spawn(async move { own.end(&id).await }).await;
                if matches!(ended, Ok(Ok(()))) { Next::Ended } else { Next::Again }
            }
        }
    }
}
