//! What the daemon does for its clients: arrays.
//!
//! Purpose: checks what only the control plane can see ([`crate::claims`], names), then asks the
//! engine; the engine's answer is final.
//!
//! Invariants
//! - A name that two arrays have, running or found, names neither where one could be lost by it.
//! - What a running array's drives held before it took them is no array any more.

use crate::accounts::Accounts;
use crate::alerts::Alerts;
use crate::asking::{self, Asking, News};
use crate::audit::Audit;
use crate::chap::Chap;
use crate::claims::{Lookups, being_used};
use crate::config::Described;
use crate::confirm::Confirm;
use crate::convert;
use crate::data::Data;
use crate::events::Events;
use crate::exports::{Exports, Standing};
use crate::failure;
use crate::gpu::Parity;
use crate::history::History;
use crate::holds::Holds;
use crate::https::Https;
use crate::inventory::{Inventory, Known};
use crate::local::{Local, Socket};
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::names;
use crate::next::{self, Idle, Refused};
use crate::ownership::{self, Ownership};
use crate::plan::{Planned, Seen};
use crate::plugs::{Absent, Plugs};
use crate::returns::Returns;
use crate::shelves::Shelves;
use crate::snapshot::{Snapshot, now};
use crate::state::State;
use crate::tasks::SlowOnes;
use crate::wellness::Wellness;
use drives::SharedDrive;
use engine::manage::command::{
    ArrayStatus, ManageError, Repair, Reply, Request, SlotHealth, SlotStatus, StartOptions,
    TaskAction,
};
use format::ArrayRecord;
use redfish::messages::{self as say, Entry};
use redfish::view::{self, Ending, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::sync::{Notify, watch};
use units::Uuid;

/// Why an array could not be started, and which drives of it were there.
#[derive(Clone)]
struct Problem {
    why: Error,
    paths: BTreeSet<String>,
}

/// The control plane's state.
pub struct Manager {
    pub(crate) data: Data,
    parity: Arc<Parity>,
    memory: view::Memory,
    pub(crate) exports: tokio::sync::Mutex<Exports>,
    /// Which exports are served.
    pub(crate) standing: Standing,
    inventory: Mutex<Inventory>,
    /// Where the kernel tells of devices.
    pub(crate) sysfs: PathBuf,
    /// Drives that are pulled out and plugged in.
    pub(crate) plugs: Plugs,
    /// Drives behind a fabric that are out, and arrays that wait for them.
    pub(crate) returns: Returns,
    /// Who this server is to others that reach the same drives.
    pub(crate) ownership: Ownership,
    /// Drives as devices.
    pub(crate) wellness: Wellness,
    /// Shelves that tell of themselves.
    pub(crate) shelves: Shelves,
    /// Drives are to be described anew.
    pub(crate) attend: Arc<Notify>,
    /// What the configuration named when it was last looked at, without symbolic links.
    named_paths: Mutex<Vec<PathBuf>>,
    /// Lookups of paths that are under way.
    pub(crate) looking_up: Mutex<Lookups>,
    /// Held by who reserves drives, or begins looks at those that nobody has.
    pub(crate) looking: tokio::sync::Mutex<()>,
    /// Held by who looks at all drives.
    pub(crate) scanning: tokio::sync::Mutex<()>,
    patterns: Mutex<Vec<String>>,
    pub(crate) audit: Audit,
    state: Option<Arc<State>>,
    accounts: Arc<Accounts>,
    /// Secrets of exports over iSCSI.
    pub(crate) chap: Chap,
    https: Arc<Https>,
    /// What Prometheus reads.
    pub(crate) metrics: Metrics,
    /// What the configuration says of drives' health, of enclosures and of shelves.
    pub(crate) described: watch::Sender<Described>,
    /// What charts show.
    pub(crate) history: History,
    events: Events,
    alerts: Arc<Alerts>,
    /// Who may do what on the socket.
    local: Mutex<Arc<Local>>,
    socket: OnceLock<Socket>,
    /// Why arrays that were found do not run.
    problems: Mutex<BTreeMap<Uuid, Problem>>,
    /// Arrays that the engine is starting, as they were found; that may take some seconds.
    starting: Mutex<BTreeMap<Uuid, ArrayRecord>>,
    pub(crate) ready: AtomicBool,
    pub(crate) snapshot: Snapshot,
    /// Changes that take long.
    pub(crate) slow: SlowOnes,
    /// Arrays that a person has started, made or stopped: a start-up leaves them alone.
    in_hand: Mutex<BTreeSet<Uuid>>,
    /// Tokens of plans.
    pub(crate) confirm: Confirm,
    /// Who changes which array.
    pub(crate) holds: Holds,
    /// Whether the daemon is to end.
    pub(crate) ending: watch::Sender<bool>,
}

impl Manager {
    /// Knows nothing yet but where drives may be.
    pub fn new(
        data: Data,
        parity: Arc<Parity>,
        memory: view::Memory,
        patterns: Vec<String>,
        confirm: bool,
    ) -> Self {
        let standing = Standing::new(data.target().clone(), data.ledger().clone());
        let attend: Arc<Notify> = Arc::default();
        let (wake, news) = (attend.clone(), attend.clone());
        let asking = Asking::by_kernel(move |news| match news {
            News::Answered => wake.notify_one(),
            News::NotAllowed => asking::say_not_allowed(),
            News::NotOpened => asking::say_not_opened(),
        });
        Self {
            attend,
            shelves: Shelves::new(move || news.notify_one()),
            wellness: Wellness::new(asking),
            snapshot: Snapshot::new(daemon(&data, &parity, memory.clone()), confirm),
            exports: tokio::sync::Mutex::new(Exports::new(data.clone(), standing.clone())),
            slow: SlowOnes::default(),
            standing,
            named_paths: Mutex::default(),
            looking_up: Mutex::default(),
            data,
            parity,
            memory,
            inventory: Mutex::default(),
            sysfs: drives::sysfs::ROOT.into(),
            plugs: Plugs::default(),
            returns: Returns::default(),
            ownership: Ownership::default(),
            looking: tokio::sync::Mutex::default(),
            scanning: tokio::sync::Mutex::default(),
            patterns: Mutex::new(patterns),
            audit: Audit::in_memory(None),
            state: None,
            accounts: Arc::new(Accounts::none()),
            chap: Chap::read(None),
            https: Arc::new(Https::new(None, now, |_| {})),
            metrics: Metrics::default(),
            described: watch::Sender::new(Described::default()),
            history: History::default(),
            events: Events::in_memory(None),
            alerts: Arc::new(Alerts::in_memory()),
            local: Mutex::new(Arc::new(Local::read(None).unwrap_or_else(|_| Local::owners()))),
            socket: OnceLock::new(),
            problems: Mutex::default(),
            starting: Mutex::default(),
            ready: AtomicBool::new(false),
            in_hand: Mutex::default(),
            confirm: Confirm::new(confirm),
            holds: Holds::default(),
            ending: watch::Sender::new(false),
        }
    }

    /// Keeps what is not on the drives in a state directory, if there is one, with its accounts and
    /// its log.
    #[must_use]
    pub fn keeping(self, state: Option<Arc<State>>, accounts: Accounts, audit: Audit) -> Self {
        let accounts = Arc::new(accounts);
        let trail = {
            let audit = audit.clone();
            move |what: &str| audit.say(what, Ending::Ok)
        };
        let https = Arc::new(Https::new(state.clone(), now, trail));
        let chap = Chap::read(state.clone());
        Self { state, audit, accounts, chap, https, ..self }
    }

    /// Reads what the kernel tells of devices in this directory.
    #[must_use]
    pub fn reading(self, sysfs: PathBuf) -> Self {
        Self { sysfs, ..self }
    }

    /// Tells these events.
    #[must_use]
    pub fn telling(self, events: Events) -> Self {
        Self { events, ..self }
    }

    /// Goes on with this past.
    #[must_use]
    pub fn recalling(self, history: History) -> Self {
        Self { history, ..self }
    }

    /// Raises these alerts.
    #[must_use]
    pub fn alerting(self, alerts: Alerts) -> Self {
        Self { alerts: Arc::new(alerts), ..self }
    }

    /// Alerts.
    pub const fn alerts(&self) -> &Arc<Alerts> {
        &self.alerts
    }

    /// Events.
    pub const fn events(&self) -> &Events {
        &self.events
    }

    /// Accounts and sessions.
    pub const fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }

    /// HTTPS.
    pub const fn https(&self) -> &Arc<Https> {
        &self.https
    }

    /// Who may do what on the socket.
    pub fn local(&self) -> Arc<Local> {
        lock(&self.local).clone()
    }

    /// Others may do something on the socket from now on.
    pub fn set_local(&self, local: Local) {
        *lock(&self.local) = Arc::new(local);
    }

    /// The daemon's socket, once it is there.
    pub fn socket(&self) -> Option<&Socket> {
        self.socket.get()
    }

    /// This is the daemon's socket, from now on.
    pub fn set_socket(&self, socket: Socket) {
        // There is one.
        let _ = self.socket.set(socket);
    }

    /// The state directory, if there is one.
    pub fn state(&self) -> Option<&Arc<State>> {
        self.state.as_ref()
    }

    /// The audit log.
    pub const fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Where drives may be.
    pub(crate) fn patterns(&self) -> Vec<String> {
        lock(&self.patterns).clone()
    }

    /// Drives may be elsewhere from now on; those that are in use stay so.
    pub(crate) fn look_at(&self, patterns: Vec<String>) {
        *lock(&self.patterns) = patterns;
    }

    pub(crate) fn inventory(&self) -> MutexGuard<'_, Inventory> {
        lock(&self.inventory)
    }

    pub(crate) fn named_paths(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        lock(&self.named_paths)
    }

    pub(crate) fn in_hand(&self) -> MutexGuard<'_, BTreeSet<Uuid>> {
        lock(&self.in_hand)
    }

    /// A person has an array in hand from now on: nothing starts it by itself.
    pub(crate) fn take_in_hand(&self, uuid: Uuid) {
        self.in_hand().insert(uuid);
        self.returns.settled(uuid);
    }

    fn problems(&self) -> MutexGuard<'_, BTreeMap<Uuid, Problem>> {
        lock(&self.problems)
    }

    /// Whether an array that does not run was refused with the drives that are there.
    pub(crate) fn is_refused(&self, uuid: Uuid) -> bool {
        let paths = self.inventory().paths_of(uuid);
        self.problems().get(&uuid).is_some_and(|known| known.paths == paths)
    }

    /// This is why an array that was found does not run.
    pub(crate) fn refuse(&self, uuid: Uuid, why: Error) {
        let paths = self.inventory().paths_of(uuid);
        self.refuse_at(uuid, why, paths);
    }

    /// The same, with the drives at these paths.
    pub(crate) fn refuse_at(&self, uuid: Uuid, why: Error, paths: BTreeSet<String>) {
        self.problems().insert(uuid, Problem { why, paths });
    }

    /// Whether this is why an array that was found does not run.
    pub(crate) fn is_refused_as(&self, uuid: Uuid, all: &[&Entry]) -> bool {
        let problems = self.problems();
        problems.get(&uuid).is_some_and(|known| all.iter().any(|entry| known.why.is(entry)))
    }

    /// It is tried again.
    pub(crate) fn forget_problem(&self, uuid: Uuid) {
        self.problems().remove(&uuid);
    }

    /// All running arrays.
    pub(crate) async fn running(&self) -> Result<Vec<ArrayStatus>, Error> {
        self.data.ask(Request::Status).await
    }

    /// Asks the engine about an array; advice that comes back names it.
    pub(crate) async fn ask_of<T: Send + 'static>(
        &self,
        array: &ArrayStatus,
        make: impl FnOnce(String, Reply<T>) -> Request<SharedDrive>,
    ) -> Result<T, Error> {
        let uuid = array.uuid.to_string();
        let answer = self.data.ask(|reply| make(uuid, reply)).await;
        answer.map_err(|error| error.about(&array.name))
    }

    /// The arrays that were found on drives nobody has and do not run.
    pub(crate) async fn found(&self) -> Result<BTreeMap<Uuid, ArrayRecord>, Error> {
        Ok(self.found_beside(&self.running().await?))
    }

    /// Refuses an array that is being started: its drives are the engine's.
    pub(crate) fn refuse_starting(&self, uuid: Uuid) -> Result<(), Error> {
        let path = self.inventory().paths_of(uuid).into_iter().next();
        match lock(&self.starting).contains_key(&uuid) {
            true => Err(being_used(&path.unwrap_or_default())),
            false => Ok(()),
        }
    }

    /// The arrays that do not run while these do: found ones, and those that are being started.
    pub(crate) fn not_running(&self, running: &[ArrayStatus]) -> BTreeMap<Uuid, ArrayRecord> {
        let mut all = lock(&self.starting).clone();
        all.retain(|uuid, _| running.iter().all(|array| array.uuid != *uuid));
        all.extend(self.found_beside(running));
        all
    }

    fn found_beside(&self, running: &[ArrayStatus]) -> BTreeMap<Uuid, ArrayRecord> {
        let places = convert::places(running);
        let mut found = convert::found_records(&self.inventory(), |k| !places.is_taken(k));
        found.retain(|uuid, _| !places.arrays.contains(uuid));
        found
    }

    /// Stops every array cleanly. Answers with what went wrong.
    pub async fn shut_down(&self) -> Vec<Error> {
        let running = match self.running().await {
            Ok(running) => running,
            Err(error) => return vec![error],
        };
        let mut problems = Vec::new();
        for status in running {
            problems.extend(self.stop_running(&status).await.err());
        }
        problems
    }

    /// Everything at a glance, while these arrays run.
    pub(crate) fn status_of(&self, running: &[ArrayStatus]) -> view::Status {
        let ready = self.ready.load(Ordering::Acquire);
        let mut status = view::Status {
            ready,
            arrays: self.arrays_of(running),
            state: view::Kept {
                directory: self.state().map(|state| state.dir().display().to_string()),
                problem: self.audit.problem(),
            },
            ..daemon(&self.data, &self.parity, self.memory.clone())
        };
        status.next = next::next(&status, &self.idle(running));
        for problem in self.problems_of_state() {
            let dir = status.state.directory.as_deref().unwrap_or("the state directory");
            let action = format!("make room in {dir}, or repair its file system");
            status.next.push(view::Next { what: problem.clone(), action });
            status.state.problem.get_or_insert(problem);
        }
        let accounts = self.accounts.problem().map(|own| (own.what.error, own.what.hint));
        // Without accounts that can be read there is none for HTTPS, either.
        let is_any = *self.accounts.is_any().borrow() || accounts.is_none();
        let https = self.https.view();
        let https = https.problems.iter().filter(|_| is_any);
        let https = https.map(|own| (own.what.error.clone(), own.what.hint.clone()));
        let told = accounts.into_iter().chain(https);
        status.next.extend(told.map(|(what, action)| view::Next { what, action }));
        status
    }

    /// Why files of the state directory are not written or read, those of accounts, the audit log
    /// and HTTPS left aside.
    fn problems_of_state(&self) -> Vec<String> {
        let all = [self.events.unkept(), self.alerts.unkept(), self.history.problem()];
        all.into_iter().flatten().collect()
    }

    /// What is known beside what is shown, while these arrays run.
    fn idle(&self, running: &[ArrayStatus]) -> Idle {
        let problems = self.problems().clone();
        let refused = |(uuid, Problem { why, paths }): (Uuid, Problem)| {
            let is_outdated = self.inventory().paths_of(uuid) != paths;
            (uuid.to_string(), Refused { why, is_outdated })
        };
        let returned = convert::returned(&self.inventory(), running).into_iter();
        let held = |array: &&ArrayStatus| ownership::is_held(array, ownership::now_millis());
        let gone = |gone: Absent| next::Gone {
            array: gone.array.to_string(),
            path: gone.path,
            is_waited_for: gone.is_waited_for,
        };
        Idle {
            returned: returned
                .map(|((array, slot), path)| ((array.to_string(), slot), path))
                .collect(),
            absent: self.plugs.absent(running).into_iter().map(gone).collect(),
            gone: self.returns.gone().into_iter().map(|(a, slot)| (a.to_string(), slot)).collect(),
            waiting: self.returns.waiting().iter().map(Uuid::to_string).collect(),
            refused: problems.into_iter().map(refused).collect(),
            in_hand: self.in_hand().iter().map(Uuid::to_string).collect(),
            held: running.iter().filter(held).map(|array| array.uuid.to_string()).collect(),
        }
    }

    /// All arrays, running and found.
    pub async fn arrays(&self) -> Result<Vec<view::Array>, Error> {
        Ok(self.arrays_of(&self.running().await?))
    }

    /// All arrays, while these run.
    fn arrays_of(&self, running: &[ArrayStatus]) -> Vec<view::Array> {
        let found = self.not_running(running);
        let mut arrays = {
            let (inventory, problems) = (self.inventory(), self.problems());
            let connections = self.standing.connections();
            let standing = (&self.standing, &connections);
            let own = |status| convert::array(status, &inventory, standing);
            let mut arrays: Vec<_> = running.iter().map(own).collect();
            arrays.extend(found.iter().map(|(uuid, record)| {
                let problem = problems.get(uuid).map(|known| known.why.error.clone());
                let found = convert::found(record, &inventory, problem);
                view::Array { owner: self.shown_owner(record, &inventory), ..found }
            }));
            // What is about to start again may not be found yet.
            let is_listed = |own: &ArrayStatus| {
                found.contains_key(&own.uuid) || running.iter().any(|other| other.uuid == own.uuid)
            };
            let starting = self.returns.stopped().into_iter().filter(|own| !is_listed(own));
            arrays.extend(starting.map(|status| view::Array {
                state: view::ArrayState::Stopped,
                ..convert::array(&status, &inventory, standing)
            }));
            arrays
        };
        convert::tell_pulled(&mut arrays, &self.plugs.pulled(running));
        self.warn(&mut arrays);
        arrays.sort_by(|a, b| (&a.name, &a.uuid).cmp(&(&b.name, &b.uuid)));
        arrays
    }

    /// The array of this UUID.
    pub async fn array(&self, uuid: &str) -> Result<view::Array, Error> {
        let found = self.arrays().await?.into_iter().find(|array| array.uuid == uuid);
        found.ok_or_else(|| names::unknown_array(uuid))
    }

    /// The running array of this UUID.
    pub(crate) async fn running_array(&self, uuid: &str) -> Result<ArrayStatus, Error> {
        let wanted: Option<Uuid> = uuid.parse().ok();
        let running = self.running().await?;
        if let Some(array) = running.into_iter().find(|array| Some(array.uuid) == wanted) {
            return Ok(array);
        }
        self.array(uuid).await?;
        Err(names::not_running(uuid))
    }

    pub(crate) async fn describe(&self, status: &ArrayStatus) -> view::Array {
        let standing = (&self.standing, &self.standing.connections());
        let mut described = [convert::array(status, &self.inventory(), standing)];
        self.warn(&mut described);
        let [array] = described;
        array
    }

    /// Starts an array that does not run; of a plan, only if all drives are there that were seen
    /// for it.
    pub(crate) async fn assemble_array(
        &self,
        uuid: &str,
        request: view::AssembleArray,
        planned: Option<&Planned>,
    ) -> Result<view::Array, Error> {
        let wanted: Uuid = uuid.parse().map_err(|_| names::unknown_array(uuid))?;
        if self.running().await?.iter().any(|status| status.uuid == wanted) {
            return Err(names::already_running(uuid));
        }
        self.refuse_starting(wanted)?;
        // What can't be opened is as good as missing; the engine decides what that means.
        let _ = self.scan().await?;
        if !self.found().await?.contains_key(&wanted) {
            return Err(names::unknown_array(uuid));
        }
        self.take_in_hand(wanted);
        let view::AssembleArray { start_degraded, accept_loss, take_over, other_server_is_off } =
            request;
        let others_are_off = other_server_is_off;
        let options = StartOptions { start_degraded, accept_loss, take_over, others_are_off };
        let seen = planned.map(|planned| planned.seen.as_slice()).unwrap_or_default();
        let outcome = self.assemble_found(wanted, options, seen).await;
        if let Ok(status) = &outcome {
            self.serve_all(status).await;
        }
        self.tell_absent().await;
        Ok(self.describe(&outcome?).await)
    }

    /// Starts an array that was found; why it is not started is kept.
    pub(crate) async fn assemble_found(
        &self,
        uuid: Uuid,
        options: StartOptions,
        seen: &[Seen],
    ) -> Result<ArrayStatus, Error> {
        let name = self.called(uuid, &self.running().await?);
        let outcome = match self.identify_for(uuid).await {
            Ok(()) => self.assemble_now(uuid, options, seen).await?,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(status) => {
                self.forget_problem(uuid);
                Ok(status)
            }
            Err(error) => {
                let error = error.about(&name);
                self.refuse(uuid, error.clone());
                if ownership::is_anothers(&error) {
                    // Once it is nobody's, a person says which server starts it.
                    self.in_hand().insert(uuid);
                }
                Err(error)
            }
        }
    }

    /// Has the engine start an array that was found; what keeps it from being asked is no outcome.
    async fn assemble_now(
        &self,
        uuid: Uuid,
        options: StartOptions,
        seen: &[Seen],
    ) -> Result<Result<ArrayStatus, Error>, Error> {
        let references = self.claim_found(uuid, |_| true).await?;
        let paths: Vec<String> = references.iter().map(|r| r.path.clone()).collect();
        if !self.are_as_seen(&paths, seen) {
            self.inventory().reserve(&paths, false);
            return Err(Error::new(&say::PLAN_CHANGED, &[]));
        }
        let record = convert::found_records(&self.inventory(), |_| true).remove(&uuid);
        lock(&self.starting).extend(record.map(|record| (uuid, record)));
        let wanted = Some(uuid.to_string());
        let request = |reply| Request::Assemble(wanted, references, options, reply);
        let answer = self.data.ask_engine(request).await;
        self.inventory().reserve(&paths, false);
        lock(&self.starting).remove(&uuid);
        Ok(match answer? {
            Ok(mut started) => {
                started.pop().ok_or_else(|| failure::told(&ManageError::NothingFound))
            }
            Err(error) => Err(failure::not_started(&error, options)),
        })
    }

    /// Whether all drives that were seen for a plan are among these, as they were.
    fn are_as_seen(&self, paths: &[String], seen: &[Seen]) -> bool {
        let inventory = self.inventory();
        let now: Vec<String> =
            paths.iter().filter_map(|path| inventory.at(path)).map(Known::seen).collect();
        seen.iter().all(|seen| now.contains(&seen.identity))
    }

    /// What commands call an array that was found: its name, unless another has it, too.
    fn called(&self, uuid: Uuid, running: &[ArrayStatus]) -> String {
        let found = convert::found_records(&self.inventory(), |_| true);
        let name = found.get(&uuid).map(|record| record.name.clone());
        let is_other = |name: &String| {
            running.iter().any(|s| s.name == *name && s.uuid != uuid)
                || found.iter().any(|(other, r)| r.name == *name && *other != uuid)
        };
        name.filter(|name| !is_other(name)).unwrap_or(uuid.to_string())
    }

    /// Stops a running array.
    pub(crate) async fn stop_array(&self, uuid: &str) -> Result<(), Error> {
        if let Some(waits) = self.returns.stopped_one(uuid) {
            // It was to be started again, and is not.
            self.take_in_hand(waits);
            self.tell_absent().await;
            return Ok(());
        }
        let status = self.running_array(uuid).await?;
        let _stops = self.is_to_stop(&status).await?;
        self.leave_exports(&status).await?;
        self.stop_running(&status).await?;
        self.take_in_hand(status.uuid);
        Ok(())
    }

    pub(crate) async fn stop_running(&self, status: &ArrayStatus) -> Result<(), Error> {
        let _leaving = self.events.leaving(&status.uuid.to_string());
        self.end_exports(status).await;
        let outcome = self.ask_of(status, Request::Stop).await;
        self.ended(status, &outcome).await;
        outcome
    }

    /// Lets the drives of an array go that shall have ended; if it runs still, serves it again.
    async fn ended(&self, status: &ArrayStatus, outcome: &Result<(), Error>) {
        let running = self.running().await.unwrap_or_default();
        if outcome.is_err() && running.iter().any(|other| other.uuid == status.uuid) {
            self.serve_all(status).await;
            return;
        }
        let paths: Vec<String> = status.slots.iter().filter_map(|s| s.path.clone()).collect();
        self.revisit(&paths).await;
        self.exports_ended(status).await;
    }

    /// Deletes an array, running or found: its records are erased, also those of drives that it
    /// has excluded; but none on drives that its plan did not show, if it was planned.
    pub(crate) async fn delete_array(
        &self,
        uuid: &str,
        planned: Option<&Planned>,
    ) -> Result<view::Deleted, Error> {
        let array = self.array(uuid).await?;
        self.refuse_anothers_array(&array).await?;
        if let Ok(uuid) = array.uuid.parse() {
            self.refuse_starting(uuid)?;
            self.returns.settled(uuid);
        }
        let mut erased = Vec::new();
        if array.state != view::ArrayState::Stopped {
            let status = self.running_array(&array.uuid).await?;
            let _stops = self.is_to_stop(&status).await?;
            self.leave_exports(&status).await?;
            let _leaving = self.events.leaving(&array.uuid);
            // They are erased after the array is gone: nobody may take them meanwhile.
            let paths = convert::counted_paths(&status);
            if let Err(why) = self.reserve(&paths).await {
                self.serve_all(&status).await;
                return Err(why);
            }
            self.end_exports(&status).await;
            let outcome = self.ask_of(&status, Request::Delete).await;
            self.let_go(&paths).await;
            self.ended(&status, &outcome).await;
            let (done, running) = (outcome.is_ok(), self.running().await?);
            if done {
                let of_array = format!("{}-", status.uuid);
                self.chap.forget(|key| key.starts_with(&of_array)).await;
            }
            if running.iter().any(|other| other.uuid == status.uuid) {
                outcome?;
            }
            let counts =
                |s: &&SlotStatus| done && s.health != SlotHealth::Failed && s.path.is_some();
            erased.extend(status.slots.iter().filter(counts).map(|s| s.serial.clone()));
        }
        let identity: Uuid = uuid.parse().map_err(|_| names::unknown_array(uuid))?;
        let shown = planned.map(Planned::drives);
        let rest = self.erase_records(identity, shown.as_deref()).await;
        self.tell_absent().await;
        let rest = rest?;
        if let Some(problem) = rest.problems.into_iter().next() {
            return Err(Error::new(&say::RECORDS_NOT_ERASED, &[&problem]));
        }
        self.forget_counts(&array).await;
        erased.extend(rest.serials);
        let mut left = self.left(&array, &erased);
        left.extend(rest.left);
        Ok(view::Deleted { done: true, left })
    }

    /// An array is deleted: what was counted of its volumes and exports goes with it.
    async fn forget_counts(&self, array: &view::Array) {
        let ledger = self.data.ledger();
        let volumes = array.volumes.iter().filter_map(|volume| volume.uuid.parse().ok());
        volumes.for_each(|uuid| ledger.forget_volume(uuid));
        // Exports of a running array that has the same name are others.
        let Ok(running) = self.running().await else { return };
        if running.iter().all(|other| other.name != array.name) {
            let is_own =
                |export: &str| export.rsplit_once(':').is_some_and(|(name, _)| name == array.name);
            ledger.forget_exports(is_own);
            self.data.target().forget_visits(is_own);
        }
    }

    /// The slots of a deleted array whose drives may still hold a record: they are not among the
    /// erased ones, and can't be read.
    fn left(&self, array: &view::Array, erased: &[String]) -> Vec<String> {
        let inventory = self.inventory();
        // A record may hold only the beginning of a long serial number.
        let is_erased = |s: &str| erased.iter().any(|whole| whole.starts_with(s));
        let readable = |s: &str| {
            let here = |k: &Known| k.about.as_ref().is_some_and(|a| a.serial.starts_with(s));
            inventory.iter().any(|k| here(k) && k.content.problem.is_none())
        };
        let slots = array.slots.iter();
        let left = slots.filter(|s| !is_erased(&s.serial) && !readable(&s.serial));
        left.map(|s| format!("slot {} (serial {})", s.slot, s.serial)).collect()
    }

    /// Has a job's task wait, go on or end.
    pub(crate) async fn act_on(&self, id: &str, action: TaskAction) -> Result<(), Error> {
        let open = self.snapshot.told().jobs.open(id);
        let (array, kind, number) = open.ok_or_else(|| names::no_task(id))?;
        let array = self.running_array(&array).await?;
        let kind = convert::engine_kind(kind);
        let ask = |uuid, reply| Request::Task(uuid, kind, Some(number), action, reply);
        self.ask_of(&array, ask).await.map(drop)
    }

    /// Starts a scrub.
    pub(crate) async fn scrub_array(
        &self,
        uuid: &str,
        wanted: view::ScrubArray,
    ) -> Result<view::Array, Error> {
        let array = self.running_array(uuid).await?;
        let repair = match wanted {
            view::ScrubArray { repair: false, .. } => Repair::Nothing,
            view::ScrubArray { trust_data: false, .. } => Repair::Known,
            view::ScrubArray { trust_data: true, .. } => Repair::TrustData,
        };
        let ask = |uuid, reply| Request::Scrub(uuid, repair, reply);
        let status = self.ask_of(&array, ask).await?;
        Ok(self.describe(&status).await)
    }
}

/// The daemon, without arrays.
fn daemon(data: &Data, parity: &Parity, memory: view::Memory) -> view::Status {
    view::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        cores: data.cores(),
        ready: false,
        parity: parity.status(),
        memory,
        ..view::Status::default()
    }
}
