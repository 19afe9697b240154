//! Alerts: what is wrong, kept over restarts, told as events and by mail.
//!
//! [`Alerts::follow`] sees each view and says what is to be told ([`redfish::alerts`]). What is to
//! be mailed waits in an outbox for each recipient; one task sends it. The mail server is
//!
//! | state   | becomes | when                                                                 |
//! |---------|---------|----------------------------------------------------------------------|
//! | well    | failing | it can't be reached, or takes no mail: that is an alert               |
//! | failing | well    | it took a mail; each attempt waits twice as long as the one before    |
//! | failing | well    | somebody changes how mail is sent, or a test arrives: it is tried anew |
//! | failing | well    | nobody waits for mail any more, as the recipients who did are gone     |
//!
//! A recipient whom the server refuses is *refused* in the same way, for itself.
//!
//! Invariants
//! - Nobody waits for mail, nor for the files, but who changes how mail is sent.
//! - Alerts about mail are not mailed. What waits for a recipient is bounded.
//! - While the daemon starts or ends nothing is raised or over: what is known then is not all.
//! - The password is in the file and in what is sent to the server, and nowhere else.

pub mod kept;
pub mod mail;

use crate::events::Events;
use crate::lock::lock;
use crate::snapshot::{now, random_uuid};
use crate::state::State;
use kept::{Found, Told};
use mail::{Failure, Mail};
use redfish::alerts::{Ledger, Letter, Outbox, conditions, event, is_of_mail};
use redfish::change::MailChange;
use redfish::events::smtp::{self, Settings};
use redfish::events::{Event, Shown, Standing, Subscription};
use redfish::messages as say;
use redfish::service::uri;
use redfish::told::{Tested, TestedOne};
use redfish::view::{self, Error, View};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

/// How long the first attempt after a failure waits.
const FIRST: Duration = Duration::from_secs(10);

/// The longest of these times.
const LONGEST: Duration = Duration::from_secs(3600);

/// How often it is looked whether something is to be sent that had to wait.
const LOOKS: Duration = Duration::from_secs(1);

/// How long somebody waits for the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// What failed, and when it is tried again.
#[derive(Default)]
struct Trouble {
    problem: Option<String>,
    attempts: u32,
    until: Option<Instant>,
}

impl Trouble {
    fn failed(&mut self, why: String, first: Duration) {
        let doublings = self.attempts.min(16);
        self.until = Some(Instant::now() + first.saturating_mul(1 << doublings).min(LONGEST));
        self.attempts = self.attempts.saturating_add(1);
        self.problem = Some(why);
    }

    fn rests(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }

    /// It is tried anew at once.
    fn again(&mut self) {
        (self.attempts, self.until) = (0, None);
    }
}

/// Who is told by mail.
#[derive(Default)]
struct Recipient {
    /// The address; empty until subscriptions were seen.
    address: String,
    outbox: Outbox,
    delivered: u64,
    trouble: Trouble,
}

struct Inner {
    ledger: Ledger,
    shown: Arc<view::Alerts>,
    /// What is to be told as events.
    events: Outbox,
    settings: Settings,
    /// The mail server.
    server: Trouble,
    /// At which recipient the server failed last.
    failed_at: Option<String>,
    /// By the identifiers of subscriptions.
    recipients: BTreeMap<String, Recipient>,
    /// The machine's name.
    host: String,
    /// Why the file can't be written.
    problem: Option<String>,
}

/// All of it.
pub struct Alerts {
    state: Option<Arc<State>>,
    /// Why it could not be read how mail is sent: the file is left as it is.
    unreadable: Option<Error>,
    inner: Mutex<Inner>,
    /// Held by who changes how mail is sent.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Held by who writes alerts.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// There is something to write.
    unwritten: Notify,
    /// There is something to send, or it is to be tried anew.
    work: Notify,
    /// How long the first attempt after a failure waits.
    first: Duration,
}

fn not_written(why: &dyn Display) -> Error {
    Error::new(&say::MAIL_NOT_WRITTEN, &[why])
}

impl Alerts {
    /// Nothing is kept.
    pub fn in_memory() -> Self {
        Self::of(None, Told::nothing(now()), Ok(Settings::default()))
    }

    /// Those of a state directory, as they were read.
    pub fn kept(state: Arc<State>, found: Found) -> (Self, Vec<Error>) {
        let mut problems = Vec::new();
        let told = found.told.unwrap_or_else(|why| {
            problems.push(why);
            // Identifiers of before are not known.
            Told::nothing(now())
        });
        problems.extend(found.settings.as_ref().err().cloned());
        (Self::of(Some(state), told, found.settings), problems)
    }

    fn of(state: Option<Arc<State>>, told: Told, settings: Result<Settings, Error>) -> Self {
        let (settings, unreadable) = match settings {
            Ok(settings) => (settings, None),
            Err(why) => (Settings::default(), Some(why)),
        };
        let Told { ledger, events, mail, .. } = told;
        let recipient =
            |(id, outbox): (String, Outbox)| (id, Recipient { outbox, ..Recipient::default() });
        let inner = Inner {
            shown: Arc::new(ledger.alerts()),
            ledger,
            events,
            settings,
            server: Trouble::default(),
            recipients: mail.into_iter().map(recipient).collect(),
            failed_at: None,
            host: String::new(),
            problem: None,
        };
        Self {
            state,
            unreadable,
            inner: Mutex::new(inner),
            changing: Arc::default(),
            writing: Arc::default(),
            unwritten: Notify::new(),
            work: Notify::new(),
            first: FIRST,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Writes and sends, for as long as the daemon runs.
    pub fn start(self: &Arc<Self>) {
        let (writer, sender) = (self.clone(), self.clone());
        tokio::spawn(async move { writer.keep_writing().await });
        tokio::spawn(async move { sender.keep_sending().await });
    }

    /// What is wrong in a view that is about to be put in place, and what is to be told of it.
    pub fn follow(&self, view: &View, is_ending: bool) -> (Arc<view::Alerts>, Vec<Event>) {
        if !view.status.ready || is_ending {
            return (self.inner().shown.clone(), Vec::new());
        }
        let (found, now) = (conditions(view), view.server.now);
        let mut inner = self.inner();
        inner.know(view);
        let told = inner.ledger.follow(&found, now);
        for one in &told {
            inner.events.put(one.clone(), now);
            if is_of_mail(&one.alert) || !inner.settings.plain.is_used() {
                continue;
            }
            for own in view.events.subscriptions.iter().filter(|own| own.is_mail()) {
                if let Some(to) = inner.recipients.get_mut(&own.id)
                    && one.is_of(&own.wants.severities)
                {
                    to.outbox.put(one.clone(), now);
                }
            }
        }
        let mut events = Vec::new();
        while let Some(letter) = inner.events.next(now) {
            inner.events.done(&letter, now);
            events.push(event(&letter));
        }
        let is_other = inner.show();
        if is_other || !told.is_empty() || !events.is_empty() {
            self.unwritten.notify_one();
        }
        if !told.is_empty() {
            self.work.notify_one();
        }
        (inner.shown.clone(), events)
    }

    /// Adds to what is shown of events how mail is sent, and how recipients of mail are.
    pub fn complete(&self, mut shown: Arc<Shown>) -> Arc<Shown> {
        let inner = self.inner();
        let plain = inner.settings.plain.clone();
        let server = match plain.is_used() {
            true => format!("{}:{}", plain.server, plain.port),
            false => String::new(),
        };
        let problem = inner.server.problem.clone().filter(|_| plain.is_used());
        let has_password = inner.settings.password.is_some();
        let own = Arc::make_mut(&mut shown);
        own.mail = Arc::new(smtp::Mail { plain, has_password, server, problem });
        if own.subscriptions.iter().any(Subscription::is_mail) {
            let all = Arc::make_mut(&mut own.subscriptions);
            for own in all.iter_mut().filter(|own| own.is_mail()) {
                own.standing = inner.recipients.get(&own.id).map_or_else(Standing::default, |to| {
                    let problem = to.trouble.problem.clone();
                    Standing { problem, delivered: to.delivered, ..Standing::default() }
                });
            }
        }
        shown
    }

    /// Why alerts can't be written.
    pub fn unkept(&self) -> Option<String> {
        let problem = self.inner().problem.clone();
        problem.or_else(|| self.unreadable.as_ref().map(|why| why.error.clone()))
    }

    /// Somebody has seen an alert. Answers with it.
    ///
    /// # Errors
    /// There is none of this identifier that stands.
    pub fn acknowledge(&self, id: &str, who: &str) -> Result<view::Alert, Error> {
        let mut inner = self.inner();
        let seen = inner.ledger.acknowledge(id, who, now());
        let alert = seen.map_err(|_| Error::new(&say::NO_ALERT, &[&id]))?;
        inner.show();
        self.unwritten.notify_one();
        Ok(alert)
    }

    /// Changes how mail is sent: in the file before it counts.
    ///
    /// # Errors
    /// It could not be written, or the file could not be read.
    pub async fn change(self: &Arc<Self>, change: MailChange) -> Result<(), Error> {
        if let Some(why) = &self.unreadable {
            return Err(why.clone());
        }
        let late = || format!("no answer within {} s", PATIENCE.as_secs());
        let turn = timeout(PATIENCE, self.changing.clone().lock_owned()).await;
        let turn = turn.map_err(|_| not_written(&late()))?;
        let mut next = self.inner().settings.clone();
        change.apply(&mut next);
        let Some(state) = self.state.clone() else {
            self.put(next);
            return Ok(());
        };
        let own = self.clone();
        // Whoever asked may give up: what is late still counts once it is written.
        let writing = tokio::spawn(async move {
            let _turn = turn;
            let file = next.clone();
            let written = spawn_blocking(move || kept::write_settings(&state, &file)).await;
            let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            written.map_err(|error| not_written(&error))?;
            own.put(next);
            Ok(())
        });
        let written = timeout(PATIENCE, writing).await.map_err(|_| not_written(&late()))?;
        written.map_err(|error| not_written(&error))?
    }

    /// Mail is sent so from now on, and tried anew.
    fn put(&self, settings: Settings) {
        let mut inner = self.inner();
        inner.settings = settings;
        inner.server = Trouble::default();
        inner.recipients.values_mut().for_each(|own| own.trouble = Trouble::default());
        self.work.notify_one();
    }

    /// Sends each recipient and each receiver a message that says nothing, and tells what came of
    /// it. Somebody asked for it.
    pub async fn test(self: &Arc<Self>, events: &Events, who: &str) -> Tested {
        let (settings, host) = {
            let inner = self.inner();
            (Arc::new(inner.settings.clone()), inner.host.clone())
        };
        let mut mails = JoinSet::new();
        for own in events.recipients() {
            let (settings, host, who) = (settings.clone(), host.clone(), who.to_owned());
            let destination = own.destination.clone();
            mails.spawn(async move {
                let sent = test_one(&settings, &host, own.recipient(), &who).await;
                (destination, sent.map_err(|failure| failure.why))
            });
        }
        let test = test_event(who);
        let (mut all, receivers) = tokio::join!(mails.join_all(), events.probe(&test));
        if all.iter().any(|(_, sent)| sent.is_ok()) {
            self.arrived();
        }
        all.extend(receivers);
        all.sort_unstable();
        let one = |(destination, sent): (String, Result<(), String>)| TestedOne {
            destination,
            delivered: sent.is_ok(),
            problem: sent.err(),
        };
        Tested { recipients: all.into_iter().map(one).collect() }
    }

    /// A test arrived: what waits is sent now.
    fn arrived(&self) {
        let mut inner = self.inner();
        inner.server.again();
        inner.recipients.values_mut().for_each(|own| own.trouble.again());
        self.work.notify_one();
    }

    async fn keep_writing(&self) {
        loop {
            self.unwritten.notified().await;
            let mut pause = LOOKS;
            while !self.write(false).await {
                sleep(pause).await;
                pause = pause.saturating_mul(2).min(Duration::from_secs(60));
            }
            sleep(LOOKS).await;
        }
    }

    /// Writes alerts; whether that could be done.
    async fn write(&self, is_last: bool) -> bool {
        let Some(state) = self.state.clone() else { return true };
        // Held to the end of the write, though nobody may wait for that any more.
        let turn = self.writing.clone().lock_owned().await;
        let file = {
            let inner = self.inner();
            let ledger = match is_last {
                true => inner.ledger.clone(),
                false => inner.ledger.reserved(),
            };
            let waiting = inner.recipients.iter().filter(|(_, own)| !own.outbox.is_empty());
            let mail = waiting.map(|(id, own)| (id.clone(), own.outbox.clone())).collect();
            Told::new(ledger, inner.events.clone(), mail)
        };
        let write = move || {
            let written = file.write(&state);
            drop(turn);
            written
        };
        let written = spawn_blocking(write).await;
        let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let problem = written.err().map(|error| format!("alerts can't be written: {error}"));
        let is_written = problem.is_none();
        self.inner().problem = problem;
        is_written
    }

    /// The daemon ends: what is known is written, if that does not take long.
    pub async fn close(&self) {
        let _ = timeout(PATIENCE, self.write(true)).await;
    }

    async fn keep_sending(&self) {
        loop {
            let waits = self.send_due().await;
            tokio::select! {
                () = self.work.notified() => {}
                () = sleep(LOOKS), if waits => {}
            }
        }
    }

    /// Sends what is due; whether something is left.
    async fn send_due(&self) -> bool {
        let ids: Vec<String> = {
            let mut inner = self.inner();
            if !inner.settings.plain.is_used() {
                inner.recipients.values_mut().for_each(|own| own.outbox = Outbox::default());
                return false;
            }
            let mut ids: Vec<String> = inner.recipients.keys().cloned().collect();
            // One at whom the server fails keeps the others from nothing.
            let failed = inner.failed_at.clone();
            let others =
                ids.iter().filter(|id| failed.as_ref().is_some_and(|own| *id <= own)).count();
            ids.rotate_left(others);
            ids
        };
        for id in ids {
            while let Some((settings, host, to, letter)) = self.next(&id) {
                let subject = redfish::alerts::mail::subject(&host, &letter);
                let text = redfish::alerts::mail::text(&host, &letter);
                let mail = Mail { to, subject, text, id: random_uuid().to_string() };
                let sent = mail::send(&settings, &host, &mail).await;
                self.note(&id, &settings, &letter, sent);
            }
        }
        self.inner().recipients.values().any(|own| !own.outbox.is_empty())
    }

    /// What is to be sent to a recipient now: how, from where, to which address, and what.
    fn next(&self, id: &str) -> Option<(Settings, String, String, Letter)> {
        let inner = self.inner();
        let own = inner.recipients.get(id).filter(|own| !own.address.is_empty())?;
        if inner.server.rests() || own.trouble.rests() || !inner.settings.plain.is_used() {
            return None;
        }
        let letter = own.outbox.next(now())?;
        Some((inner.settings.clone(), inner.host.clone(), own.address.clone(), letter))
    }

    /// Notes what came of a mail.
    fn note(&self, id: &str, by: &Settings, letter: &Letter, sent: Result<(), Failure>) {
        let mut inner = self.inner();
        // How mail is sent may be otherwise by now: what failed before says nothing.
        if sent.is_err() && inner.settings != *by {
            return;
        }
        let Inner { server, recipients, failed_at, .. } = &mut *inner;
        let own = recipients.get_mut(id);
        match (sent, own) {
            (Err(Failure { why, is_of_recipient: false }), _) => {
                server.failed(why, self.first);
                *failed_at = Some(id.to_owned());
            }
            (Err(failure), own) => {
                // The server is there.
                *server = Trouble::default();
                if let Some(own) = own {
                    own.trouble.failed(failure.why, self.first);
                }
            }
            (Ok(()), own) => {
                *server = Trouble::default();
                if let Some(own) = own {
                    own.trouble = Trouble::default();
                    own.delivered = own.delivered.saturating_add(letter.told.len() as u64);
                    own.outbox.done(letter, now());
                }
                self.unwritten.notify_one();
            }
        }
    }
}

impl Inner {
    /// Which recipients there are, and where.
    fn know(&mut self, view: &View) {
        if self.host != view.server.name {
            self.host.clone_from(&view.server.name);
        }
        let all = || view.events.subscriptions.iter().filter(|own| own.is_mail());
        self.recipients.retain(|id, _| all().any(|own| own.id == *id));
        for own in all() {
            let to = self.recipients.entry(own.id.clone()).or_default();
            if to.address.is_empty() {
                own.recipient().clone_into(&mut to.address);
            }
        }
        if self.recipients.values().all(|own| own.outbox.is_empty()) {
            self.server = Trouble::default();
        }
    }

    /// Shows what stands; whether other alerts stand than before, or another was acknowledged.
    fn show(&mut self) -> bool {
        let alerts = self.ledger.alerts();
        if *self.shown == alerts {
            return false;
        }
        let known = |all: &view::Alerts| -> Vec<(String, bool)> {
            all.alerts.iter().map(|own| (own.id.clone(), own.acknowledged.is_some())).collect()
        };
        let is_other = known(&self.shown) != known(&alerts);
        self.shown = Arc::new(alerts);
        is_other
    }
}

/// An event that says nothing.
fn test_event(who: &str) -> Event {
    let args: [&dyn Display; 2] = [&"AlertTest", &format!("{who} tries whether alerts arrive")];
    Event { at: now(), ..Event::new(&say::TEST_EVENT, &args, uri::SERVICE_CONDITIONS) }
}

/// Sends a recipient a mail that says nothing.
async fn test_one(settings: &Settings, host: &str, to: &str, who: &str) -> Result<(), Failure> {
    if !settings.plain.is_enabled {
        return Err(Failure::from("mail is switched off".to_owned()));
    }
    if let Some(lacks) = settings.plain.lacks() {
        return Err(Failure::from(format!("{lacks} of how mail is sent is not set")));
    }
    let mail = Mail {
        to: to.to_owned(),
        subject: redfish::alerts::mail::test_subject(host),
        text: redfish::alerts::mail::test_text(host, who),
        id: random_uuid().to_string(),
    };
    mail::send(settings, host, &mail).await
}

#[cfg(test)]
#[path = "alerts_tests.rs"]
mod tests;
