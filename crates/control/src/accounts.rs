//! Accounts and sessions: who may log in, and who has.
//!
//! | An account is | becomes | when |
//! |---|---|---|
//! | not there | enabled, or disabled | it is created |
//! | enabled | disabled, and back | it is changed |
//! | enabled | to change its password first | it is created or changed so |
//! | to change its password first | enabled | it has a new password |
//! | any | not there | it is deleted |
//!
//! A session is open from the login to its end: nobody used it for too long, it was ended, or its
//! account was deleted, disabled or got a new password.
//!
//! All is in one file of the state directory ([`kept`]): passwords as Argon2id leaves them
//! ([`hasher`]), tokens as SHA-256. How often logins failed ([`lockout`]) and which names and
//! passwords were right a moment ago ([`basic`]) ends with the process; where a session was begun
//! its account has logged in before. A daemon without a state directory has no accounts.
//!
//! States of a change
//!
//! | a change is | becomes | when |
//! |---|---|---|
//! | waiting | refused | the one before is not written within [`PATIENCE`] |
//! | waiting | being written | the one before is written, or was not |
//! | being written | done | it is in the file |
//! | being written | refused | it could not be written |
//! | being written | late | that takes longer than [`PATIENCE`]: whoever asked is told so |
//! | late | done, or not | the file system answers |
//!
//! A change that takes something away (an account is deleted or disabled, has a new password or may
//! do less, a session is ended) is not refused for the file's sake: it counts all the same, whoever
//! asked is told that it is not in the file, and the next write has it.
//!
//! Invariants
//! - What is answered is in the file before. Another change that could not be written did not
//!   happen; one that was late is told as not known.
//! - One change at a time is written, each behind the one before: what counts is what is in the
//!   file, less what was taken away since.
//! - A file that can't be read is left as it is, and nobody can log in.
//! - A password that was found right counts only as long as the account has it.
//! - Nothing here waits for the file on the thread that answers.

mod basic;
pub(crate) mod hasher;
mod kept;
mod lockout;
mod look;
pub(crate) mod turns;

use crate::digest;
use crate::lock::lock;
use crate::peer::{Origin, Peer};
use crate::snapshot::now;
use crate::state::{ACCOUNTS, State};
use basic::Basic;
use hasher::{Busy, Hasher};
use kept::{Account, Kept, NoSession, Session};
use lockout::Lockout;
use redfish::access::{self, Secret, is_name};
use redfish::change::{AccessChange, AccountChange, NewAccount};
use redfish::messages as say;
use redfish::view::{Access, Error, Problem};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use turns::Turns;

/// How often sessions are looked at that nobody used for too long.
const LOOK: Duration = Duration::from_secs(10);

/// A use of a session is written when the one that was written is so many seconds older.
const USES: u64 = 60;

/// How long a change waits for the file system.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many seconds somebody is asked to wait where too many log in at once.
pub const BUSY_SECONDS: u64 = 2;

/// Why somebody is not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// Name or password is wrong, or the account is disabled.
    Wrong,
    /// It failed too often: not for so many seconds.
    Locked(u64),
    /// Too many log in at once: not for so many seconds.
    Busy(u64),
}

/// Somebody whose password was right.
pub struct Proved {
    /// The account.
    pub account: access::Account,
    /// What was kept of its password then.
    password: String,
}

/// What there is of a session that was begun.
pub struct Begun {
    /// Names it.
    pub id: String,
    /// What opens it. It is told once.
    pub token: String,
}

/// Where the file is.
enum Place {
    None,
    /// It can't be read: why.
    Unreadable(Error),
    State(Arc<State>),
}

/// The file, as it was read.
pub struct Found(Kept);

/// Accounts and sessions in memory.
struct Held {
    /// Those that count.
    kept: Arc<Kept>,
    /// Those that will count once the write that is under way is done.
    coming: Option<Kept>,
    /// Whether something was taken away that the file still has.
    is_ahead: bool,
}

/// Accounts and sessions.
pub struct Accounts {
    place: Place,
    held: Mutex<Held>,
    /// Held by who changes the file, until it is written.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Why the file could not be written when that was last tried, and since when.
    failing: Mutex<Option<Problem>>,
    /// [`PATIENCE`]; tests have less.
    patience: Duration,
    /// When sessions were used last, where that is not written yet.
    used: Mutex<BTreeMap<String, u64>>,
    hasher: Hasher,
    basic: Mutex<Basic>,
    lockout: Mutex<Lockout>,
    turns: Turns,
    start: Instant,
    /// When that was, in seconds since 1970.
    began: u64,
    is_any: watch::Sender<bool>,
}

fn busy() -> Error {
    Error::new(&say::PASSWORDS_BUSY, &[])
}

impl Accounts {
    /// Without a state directory there are none.
    pub fn none() -> Self {
        Self::of(Place::None, Kept::default())
    }

    /// Reads the file of a state directory. Waits for it.
    ///
    /// # Errors
    /// It can't be read, or is not what the daemon writes.
    pub fn read(state: &State) -> Result<Found, Error> {
        let kept = match state.read(ACCOUNTS) {
            Ok(None) => Ok(Kept::default()),
            Ok(Some(bytes)) => Kept::read(&bytes),
            Err(error) => Err(error.to_string()),
        };
        kept.map(Found).map_err(|why| not_read(state, &why))
    }

    /// Those of a state directory, whose file was read or could not be.
    pub fn go_on(state: Arc<State>, found: Result<Found, Error>) -> Self {
        match found {
            Ok(Found(kept)) => Self::of(Place::State(state), kept),
            Err(why) => Self::of(Place::Unreadable(why), Kept::default()),
        }
    }

    fn of(place: Place, mut kept: Kept) -> Self {
        let began = now();
        kept.expire(began);
        let mut lockout = Lockout::new();
        for session in &kept.sessions {
            if let Ok(address) = session.from.parse() {
                let origin = Peer::Network { address }.origin(false);
                lockout.succeeded(&session.account, origin, Duration::ZERO);
            }
        }
        Self {
            place,
            is_any: watch::Sender::new(!kept.accounts.is_empty()),
            held: Mutex::new(Held { kept: Arc::new(kept), coming: None, is_ahead: false }),
            changing: Arc::default(),
            failing: Mutex::default(),
            patience: PATIENCE,
            used: Mutex::default(),
            hasher: Hasher::default(),
            basic: Mutex::new(Basic::new()),
            lockout: Mutex::new(lockout),
            turns: Turns::default(),
            start: Instant::now(),
            began,
        }
    }

    /// Why accounts can't be used or changed, if they can't though there is a state directory.
    pub fn problem(&self) -> Option<Problem> {
        match &self.place {
            Place::Unreadable(why) => Some(Problem { since: self.began, what: why.clone() }),
            _ => lock(&self.failing).clone(),
        }
    }

    /// Whether there is an account, now and from then on.
    pub fn is_any(&self) -> watch::Receiver<bool> {
        self.is_any.subscribe()
    }

    /// What can be shown.
    pub fn shown(&self) -> Access {
        let mut kept = Kept::clone(&self.kept());
        self.note_uses(&mut kept);
        kept.expire(self.now());
        let mut shown = kept.shown();
        shown.locked = lock(&self.lockout).locked(self.moment());
        shown.locked.retain(|name| kept.account(name).is_some());
        shown.problem = self.problem();
        shown
    }

    fn kept(&self) -> Arc<Kept> {
        lock(&self.held).kept.clone()
    }

    /// How late it is, in seconds since 1970, by a clock that nobody sets while the daemon runs.
    fn now(&self) -> u64 {
        self.began.saturating_add(self.start.elapsed().as_secs())
    }

    /// Moments for failures and for passwords that were right: no clock that somebody sets.
    fn moment(&self) -> Duration {
        self.start.elapsed()
    }

    fn note_uses(&self, kept: &mut Kept) {
        let used = lock(&self.used);
        for session in &mut kept.sessions {
            if let Some(at) = used.get(&session.id) {
                session.used = session.used.max(*at);
            }
        }
    }

    /// Changes what is kept, and writes it before it counts.
    async fn change<T, E: From<Error>>(
        self: &Arc<Self>,
        act: impl Fn(&mut Kept) -> Result<T, E>,
    ) -> Result<T, E> {
        let turn = self.turn().await?;
        let (told, writing) = self.write(turn, act)?;
        match timeout(self.patience, writing).await {
            Ok(outcome) => outcome.map_err(|error| not_written(&error))??,
            Err(_) => return Err(self.late().into()),
        }
        Ok(told)
    }

    /// The same of a change that takes something away: it counts though it could not be written.
    async fn take_away(
        self: &Arc<Self>,
        act: impl Fn(&mut Kept) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let turn = match self.turn().await {
            Ok(turn) => turn,
            Err(why) if why.is(&say::ACCOUNTS_NOT_WRITTEN) => return self.count(true, &act, &why),
            Err(why) => return Err(why),
        };
        let ((), writing) = self.write(turn, &act)?;
        match timeout(self.patience, writing).await {
            // This write is over: one that goes on is another's, and must not bring back what goes.
            Ok(Ok(Err(why))) if why.is(&say::ACCOUNTS_NOT_WRITTEN) => self.count(true, &act, &why),
            Ok(outcome) => outcome.map_err(|error| not_written(&error))?,
            Err(_) => self.count(false, &act, &self.late()),
        }
    }

    /// Makes a change count that is not in the file, and tells so; also in what another is about to
    /// write, if it `is_behind` that.
    fn count(
        &self,
        is_behind: bool,
        act: impl Fn(&mut Kept) -> Result<(), Error>,
        why: &Error,
    ) -> Result<(), Error> {
        let mut held = lock(&self.held);
        let mut coming = held.coming.clone();
        if let Some(coming) = coming.as_mut().filter(|_| is_behind) {
            act(coming)?;
        }
        let mut next = Kept::clone(&held.kept);
        act(&mut next)?;
        held.coming = coming;
        held.is_ahead = true;
        self.put(&mut held, next);
        Err(Error::new(&say::ACCOUNTS_UNWRITTEN, &[&why.error]))
    }

    /// Waits until no other change is being written.
    async fn turn(&self) -> Result<OwnedMutexGuard<()>, Error> {
        match &self.place {
            Place::State(_) => {}
            Place::Unreadable(why) => return Err(why.clone()),
            Place::None => return Err(no_state()),
        }
        let turn = timeout(self.patience, self.changing.clone().lock_owned()).await;
        turn.map_err(|_| not_written(&self.no_answer()))
    }

    /// Begins to write a change, which counts when it is written: what it tells, and the write.
    fn write<T, E: From<Error>>(
        self: &Arc<Self>,
        turn: OwnedMutexGuard<()>,
        act: impl Fn(&mut Kept) -> Result<T, E>,
    ) -> Result<(T, JoinHandle<Result<(), Error>>), E> {
        let Place::State(state) = &self.place else { return Err(no_state().into()) };
        let mut next = Kept::clone(&self.kept());
        self.note_uses(&mut next);
        next.expire(self.now());
        let told = act(&mut next)?;
        let bytes = next.bytes().map_err(|error| not_written(&error))?;
        lock(&self.held).coming = Some(next.clone());
        // Whoever asked may give up, and what is late may still come about.
        let (own, state) = (self.clone(), state.clone());
        let writing = tokio::spawn(async move {
            let _turn = turn;
            let written = spawn_blocking(move || write(&state, &bytes)).await;
            let (is_there, outcome) = written.unwrap_or_else(|e| (false, Err(not_written(&e))));
            let mut held = lock(&own.held);
            if let Some(coming) = held.coming.take().filter(|_| is_there) {
                held.is_ahead = coming != next;
                own.put(&mut held, coming);
            }
            drop(held);
            own.fails(outcome.as_ref().err());
            outcome
        });
        Ok((told, writing))
    }

    /// A write takes too long.
    fn late(&self) -> Error {
        let late = Error::new(&say::ACCOUNTS_LATE, &[&self.no_answer()]);
        self.fails(Some(&late));
        late
    }

    fn no_answer(&self) -> String {
        format!("no answer within {} s", self.patience.as_secs_f64())
    }

    /// Keeps how the last attempt to write the file ended, and says what is new of it.
    fn fails(&self, error: Option<&Error>) {
        let mut failing = lock(&self.failing);
        let before = failing.take();
        *failing = error.map(|what| Problem {
            since: before.as_ref().map_or_else(now, |before| before.since),
            what: what.clone(),
        });
        drop(failing);
        match (before, error) {
            (None, Some(error)) => runtime::say(format_args!("{}", error.lines())),
            (Some(_), None) => runtime::say(format_args!("palisade: accounts are written again")),
            _ => {}
        }
    }

    /// Puts what counts in place, and forgets what counts no more.
    fn put(&self, held: &mut Held, next: Kept) {
        let after = Arc::new(next);
        let before = core::mem::replace(&mut held.kept, after.clone());
        let (mut basic, mut lockout) = (lock(&self.basic), lock(&self.lockout));
        for account in &before.accounts {
            let name = &account.shown.name;
            let is_same = |own: &Account| own.shown.enabled && own.password == account.password;
            if !after.account(name).is_some_and(is_same) {
                basic.forget(name);
                match after.account(name) {
                    Some(_) => lockout.renew(name),
                    None => lockout.forget(name),
                }
            }
        }
        let is_there = |id: &String| after.sessions.iter().any(|session| session.id == *id);
        lock(&self.used).retain(|id, _| is_there(id));
        self.is_any.send_if_modified(|is_any| {
            let before = core::mem::replace(is_any, !after.accounts.is_empty());
            before != *is_any
        });
    }

    /// What a change would do besides what it says. Nothing is done.
    ///
    /// # Errors
    /// It would be refused.
    pub fn look(&self, change: &AccessChange) -> Result<Vec<String>, Error> {
        match &self.place {
            Place::State(_) => look::look(Kept::clone(&self.kept()), change, self.now()),
            Place::Unreadable(why) => Err(why.clone()),
            Place::None => Err(no_state()),
        }
    }

    /// Creates an account.
    ///
    /// # Errors
    /// It can't be: see [`Kept::create`]; or it could not be written.
    pub async fn create(self: &Arc<Self>, new: NewAccount) -> Result<(), Error> {
        let NewAccount { name, password, role, enabled, must_change } = new;
        let password = self.hasher.make(password).await.map_err(|_| busy())?;
        let shown = access::Account { name, role, enabled, must_change, generation: 0 };
        let account = Account { shown, password, generation: 0, created: now() };
        self.change(|kept| kept.create(account.clone())).await
    }

    /// Changes an account.
    ///
    /// # Errors
    /// It can't be: see [`Kept::change`]; or it could not be written.
    pub async fn alter(self: &Arc<Self>, name: &str, change: AccountChange) -> Result<(), Error> {
        let AccountChange { unlock, .. } = change;
        let change = AccountChange { unlock: false, ..change };
        if change != AccountChange::default() {
            self.rewrite(name, change).await?;
        }
        if unlock {
            // Locks are in memory only: no file is needed.
            self.kept().account(name).ok_or_else(|| Error::new(&say::NO_ACCOUNT, &[&name]))?;
            lock(&self.lockout).renew(name);
        }
        Ok(())
    }

    /// Changes what the file has of an account.
    async fn rewrite(self: &Arc<Self>, name: &str, change: AccountChange) -> Result<(), Error> {
        let password = match change.password.clone() {
            Some(password) if self.is_old(name, &password).await? => {
                return Err(Error::new(&say::SAME_PASSWORD, &[]));
            }
            Some(password) => Some(self.hasher.make(password).await.map_err(|_| busy())?),
            None => None,
        };
        let act = |kept: &mut Kept| kept.change(name, &change, password.clone());
        match self.kept().account(name).is_some_and(|own| change.takes_from(&own.shown)) {
            true => self.take_away(act).await,
            false => self.change(act).await,
        }
    }

    /// Whether an account that has to change its password has this one.
    async fn is_old(&self, name: &str, password: &Secret) -> Result<bool, Error> {
        let kept = self.kept();
        let Some(account) = kept.account(name).filter(|own| own.shown.must_change) else {
            return Ok(false);
        };
        let checked = self.hasher.check(password.clone(), Some(&account.password)).await;
        checked.map_err(|_| busy())
    }

    /// Deletes an account.
    ///
    /// # Errors
    /// It can't be: see [`Kept::delete`]; or it could not be written.
    pub async fn delete(self: &Arc<Self>, name: &str) -> Result<(), Error> {
        self.take_away(|kept| kept.delete(name)).await
    }

    /// Changes how long sessions are kept without a use.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn keep_sessions(self: &Arc<Self>, seconds: u64) -> Result<(), Error> {
        self.change(|kept| {
            kept.session_seconds = seconds;
            Ok(())
        })
        .await
    }

    /// The account of which name and password were right a moment ago.
    fn known_account(&self, name: &str, password: &Secret) -> Option<Account> {
        let kept = self.kept();
        let account = kept.account(name).filter(|own| own.shown.enabled)?;
        let is_known = lock(&self.basic).knows(name, password.reveal(), self.moment());
        is_known.then(|| account.clone())
    }

    /// The account of which name and password were right a moment ago, as it can be shown.
    pub fn known(&self, name: &str, password: &Secret) -> Option<access::Account> {
        self.known_account(name, password).map(|account| account.shown)
    }

    /// The account that name and password are right for, and whether that had to be computed.
    async fn login(
        &self,
        origin: Origin,
        name: &str,
        password: &Secret,
    ) -> Result<(Account, bool), Denied> {
        if let Some(account) = self.known_account(name, password) {
            return Ok((account, false));
        }
        let _turn = self.turns.take(origin).await.ok_or(Denied::Busy(BUSY_SECONDS))?;
        // The one before may have been the same.
        if let Some(account) = self.known_account(name, password) {
            return Ok((account, false));
        }
        let enabled = |kept: &Kept| kept.account(name).filter(|own| own.shown.enabled).cloned();
        // Names that no account can have are all the same.
        let counted = if is_name(name) { name } else { "" };
        if origin.is_locked_out() {
            let wait = lock(&self.lockout).wait(counted, origin, self.moment());
            if !wait.is_zero() {
                return Err(Denied::Locked(wait.as_secs().saturating_add(1)));
            }
        }
        let account = enabled(&self.kept());
        let kept = account.as_ref().map(|account| account.password.as_str());
        let checked = self.hasher.check(password.clone(), kept).await;
        let is_right = checked.map_err(|why: Busy| match why {
            Busy::Full | Busy::Unable => Denied::Busy(BUSY_SECONDS),
        })?;
        // As accounts change: held first.
        let held = lock(&self.held);
        let (mut basic, mut lockout) = (lock(&self.basic), lock(&self.lockout));
        // It may have another password by now, or another role.
        let still = |own: Account| {
            enabled(&held.kept).filter(|now| is_right && now.password == own.password)
        };
        match account.and_then(still) {
            Some(account) => {
                basic.learn(name, password.reveal(), self.moment());
                if origin.is_locked_out() {
                    lockout.succeeded(counted, origin, self.moment());
                }
                Ok((account, true))
            }
            None => {
                basic.doubt(name, origin);
                if origin.is_locked_out() {
                    let mark = basic.hash(name, password.reveal());
                    lockout.failed(counted, origin, mark, self.moment());
                }
                Err(Denied::Wrong)
            }
        }
    }

    /// The account that name and password of a request are right for, and whether that is a login
    /// to be told.
    ///
    /// # Errors
    /// They are wrong, or it can't be said now.
    pub async fn check(
        &self,
        origin: Origin,
        name: &str,
        password: &Secret,
    ) -> Result<(access::Account, bool), Denied> {
        let (account, is_computed) = self.login(origin, name, password).await?;
        let is_new = is_computed && lock(&self.basic).is_news(name, origin, self.moment());
        Ok((account.shown, is_new))
    }

    /// Who may begin a session with this name and password.
    ///
    /// # Errors
    /// They are wrong, or it can't be said now.
    pub async fn prove(
        &self,
        origin: Origin,
        name: &str,
        password: &Secret,
    ) -> Result<Proved, Denied> {
        let (Account { shown: account, password, .. }, _) =
            self.login(origin, name, password).await?;
        Ok(Proved { account, password })
    }

    /// Begins a session.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn begin(
        self: &Arc<Self>,
        Proved { account, password }: &Proved,
        from: &str,
    ) -> Result<Begun, NotBegun> {
        let begun = self.change(|kept| {
            let begun = kept.begin((&account.name, password), from, self.now());
            begun.map_err(|why| match why {
                NoSession::Full => NotBegun::Full,
                NoSession::Gone => NotBegun::Gone,
                NoSession::Unable => NotBegun::Failed(busy()),
            })
        });
        let (id, token) = begun.await?;
        Ok(Begun { id, token })
    }

    /// Ends a session.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn end(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        self.take_away(|kept| {
            kept.end(id);
            Ok(())
        })
        .await
    }

    /// Computes no password until what this gives is dropped.
    #[cfg(test)]
    pub(crate) fn hold_passwords(&self) -> std::sync::mpsc::Sender<()> {
        self.hasher.hold()
    }

    /// How many rows there are of each table.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes = lock(&self.lockout).sizes().to_vec();
        sizes.extend([lock(&self.basic).size(), self.turns.size()]);
        sizes
    }

    /// The session of a token, and its account; it is used now.
    pub fn session(&self, token: &str) -> Option<(access::Session, access::Account)> {
        let kept = self.kept();
        let session = kept.session(token)?;
        let account = kept.account(&session.account).filter(|own| own.shown.enabled)?;
        if !self.uses(&kept, session) {
            return None;
        }
        let shown = kept.shown();
        Some((shown.session(&session.id)?.clone(), account.shown.clone()))
    }

    /// Writes what is not written yet: the daemon ends.
    pub async fn close(self: &Arc<Self>) {
        if !lock(&self.used).is_empty() || lock(&self.held).is_ahead {
            // What can't be written is said.
            let _ = self.change(|_| Ok::<(), Error>(())).await;
        }
    }

    /// What tells whether an account is still as it was: enabled, with its role and its password.
    pub fn mark(&self, name: &str) -> Option<Mark> {
        let kept = self.kept();
        let own = kept.account(name).filter(|own| own.shown.enabled)?;
        let role = [u8::from(own.shown.must_change)];
        let parts = [own.password.as_bytes(), own.shown.role.name().as_bytes(), &role];
        Some(Mark(digest::sum(parts)))
    }

    /// Whether a session is open, which is used now.
    pub fn use_session(&self, id: &str) -> bool {
        let kept = self.kept();
        let Some(session) = kept.sessions.iter().find(|session| session.id == id) else {
            return false;
        };
        self.uses(&kept, session)
    }

    /// Whether a session is still open; it is used now then.
    fn uses(&self, kept: &Kept, session: &Session) -> bool {
        let (now, mut used) = (self.now(), lock(&self.used));
        let last = used.get(&session.id).copied().unwrap_or(session.used);
        let is_open = now < last.saturating_add(kept.session_seconds);
        if is_open {
            used.insert(session.id.clone(), now);
        }
        is_open
    }

    /// Writes now and then what is not written yet, and ends sessions that nobody used for long.
    pub async fn keep(self: &Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let mut next = Kept::clone(&self.kept());
            let before = next.clone();
            self.note_uses(&mut next);
            let uses = before.sessions.iter().zip(&next.sessions);
            let is_old = uses.into_iter().any(|(old, new)| new.used >= old.used + USES);
            if next.expire(self.now()) || is_old || lock(&self.held).is_ahead {
                // What could not be written now is written the next time.
                let _ = self.change(|_| Ok::<(), Error>(())).await;
            }
        }
    }
}

/// How an account is.
#[derive(Clone, PartialEq, Eq)]
pub struct Mark(digest::Sum);

/// Why there is no session.
pub enum NotBegun {
    /// The account is not there any more, or has another password.
    Gone,
    /// There are as many as there can be.
    Full,
    /// It could not be written.
    Failed(Error),
}

impl From<Error> for NotBegun {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn no_state() -> Error {
    Error::new(&say::NO_STATE, &[])
}

/// Writes the file; whether it is there now, and how that ended. What is there may be lost with the
/// machine's power, where that went wrong behind the point of no return.
fn write(state: &State, bytes: &[u8]) -> (bool, Result<(), Error>) {
    match state.replace(ACCOUNTS, bytes) {
        Ok(()) => (true, Ok(())),
        Err(error) if state.read(ACCOUNTS).is_ok_and(|found| found.as_deref() == Some(bytes)) => {
            (true, Err(Error::new(&say::ACCOUNTS_LATE, &[&error])))
        }
        Err(error) => (false, Err(not_written(&error))),
    }
}

/// Why the file of a state directory can't be read.
pub fn not_read(state: &State, why: &dyn core::fmt::Display) -> Error {
    let why = format!("{}: {why}", state.dir().join(ACCOUNTS).display());
    Error::new(&say::ACCOUNTS_NOT_READ, &[&why])
}

fn not_written(error: &dyn core::fmt::Display) -> Error {
    Error::new(&say::ACCOUNTS_NOT_WRITTEN, &[&error])
}

#[cfg(test)]
#[path = "accounts_tests.rs"]
mod tests;
