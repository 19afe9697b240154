//! The daemon: the management interface on a Unix socket, from start-up to a clean stop.
//!
//! States: starting (socket taken, so that a second daemon is refused; drives opened, arrays
//! started, requests answered already) → ready (said on standard output) → stopping (SIGTERM or
//! SIGINT: arrays stopped cleanly) → gone (everything closed, then the socket removed: another
//! daemon can take its place).
//!
//! A drive that hangs keeps the daemon from none of it. What was asked of the drive keeps it open,
//! and with it its claim, so that nobody has it before all of that has ended; and it keeps a thread
//! in the kernel, and so the process, without anything else being open in it. That ends by itself
//! when the drive answers.
//!
//! Invariant: a change that was begun is carried to its end, whether or not the client stays.

use crate::accounts::{self, Accounts};
use crate::address;
use crate::alerts::{self, Alerts};
use crate::answer;
use crate::audit::{self, Audit};
use crate::config::Config;
use crate::counters::Ledger;
use crate::data::{self, Data};
use crate::events::Events;
use crate::gpu::Parity;
use crate::history::{self, History};
use crate::http;
use crate::local::{self, Socket};
use crate::manager::Manager;
use crate::memory;
use crate::notify::Service;
use crate::reload::{self, Reader};
use crate::room::Room;
use crate::services;
use crate::snapshot;
use crate::state::{self, State};
use core::fmt::Display;
use engine::Settings;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{self, Ending, Error};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Write};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use units::Nanos;

/// How often exports that can't be served are tried again.
const RETRY: Duration = Duration::from_secs(3);

/// How long the start waits for the state directory.
const OPENS: Duration = Duration::from_secs(5);

/// How long it waits for the audit log, which may be long, to be read.
const READS: Duration = Duration::from_secs(30);

/// How often it is said again that clients are turned away.
const QUIET: Duration = Duration::from_secs(60);

pub use parity_gpu::leave_if_stuck;

/// Runs the daemon until it is told to stop. `read` gives the configuration anew, as the start read
/// it.
///
/// # Errors
/// What kept it from starting. Arrays that can't be started do not; they are reported.
pub fn serve(
    config: Config,
    read: impl Fn() -> Result<Config, Error> + Send + Sync + 'static,
) -> Result<(), Error> {
    serve_with(config, Arc::new(read), |manager| manager)
}

/// The same, but that in place of each drive a stand-in says how it is: files are asked, too, and
/// no drive is. Only to measure what asking costs.
///
/// # Errors
/// As for [`serve`].
pub fn serve_by_stand_ins(
    config: Config,
    read: impl Fn() -> Result<Config, Error> + Send + Sync + 'static,
) -> Result<(), Error> {
    serve_with(config, Arc::new(read), Manager::asking_stand_ins)
}

fn serve_with(config: Config, read: Reader, change: fn(Manager) -> Manager) -> Result<(), Error> {
    // Before there are threads.
    let memory = memory::keep(config.parity);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot_start(&error))?;
    let socket = config.socket();
    let outcome = runtime.block_on(run(config, read, &socket, (memory, change)));
    // A look at a drive that does not answer may never end. All else is dropped, and closed.
    runtime.shutdown_background();
    let problems = outcome?;
    // Someone may have removed it before.
    let _ = std::fs::remove_file(&socket);
    let _ = std::fs::remove_file(::services::socket(&socket));
    match problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(problem),
    }
}

/// Clients are open files: raises the limit of them as far as it goes.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // What can't be raised stays as it is; clients beyond it are reported when they come.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

pub(crate) fn cannot_start(error: &std::io::Error) -> Error {
    Error::new(&say::CANNOT_START, &[error])
}

/// Gives a new manager what it takes again with each reload.
fn configure(manager: &Manager, config: &Config) {
    let access = config.access.as_ref();
    manager.set_local(local::known(access).unwrap_or_else(local::Local::owners));
    manager.https().set(config.https());
    manager.metrics.set_open(config.metrics);
    manager.described.send_replace(config.described());
    manager.data.fabrics().set_deadline(config.drive_deadline_ms);
    manager.data.fabrics().set(config.fabrics.clone(), manager.state().cloned());
}

/// Serves until it is told to stop, with a manager that is changed so. Answers with what went wrong
/// then.
async fn run(
    config: Config,
    read: Reader,
    socket: &FilePath,
    (memory, change): (view::Memory, fn(Manager) -> Manager),
) -> Result<Vec<Error>, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| cannot_start(&e))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| cannot_start(&e))?;
    let hangup = signal(SignalKind::hangup()).map_err(|e| cannot_start(&e))?;
    let service = Arc::new(Service::found());
    let kernel = parity_kernel()?;
    raise_file_limit();
    let (listener, own_socket) = listen(socket, config.access.is_some()).await?;
    let parity = Arc::new(Parity::open(kernel, config.parity, config.parity_check));
    say_parity(kernel);
    memory::say(&memory);
    say_fences(&config);
    let deadline = Nanos::from_millis(config.drive_deadline_ms);
    let settings = Settings { deadline, ..Settings::default() };
    let ledger = Arc::new(Ledger::new(config.counters, snapshot::now()));
    let started = data::start(config.cores, settings, parity.clone(), ledger);
    let (cores, data) = started.map_err(|e| cannot_start(&e))?;
    let beating = keep_beating(&service, &data);
    let turned_away = tokio::spawn(say_turned_away(data.clone()));
    let manager = Manager::new(data, parity, memory, config.drives.clone(), config.confirm);
    let manager = remembering(change(manager), &config).await;
    manager.set_socket(own_socket);
    configure(&manager, &config);
    report(manager.accounts().problem().map(|own| own.what).as_slice());
    let manager = Arc::new(manager);
    let wait = Duration::from_millis(config.drive_wait_ms);
    let tasks = serve_clients(&manager, listener);
    let starting = begin(&manager, &service, wait, socket);
    let viewed = manager.clone();
    let keeping = tokio::spawn(async move { viewed.keep_view().await });
    let attending = attend(&manager);
    let sessions = keep_sessions(&manager);
    let retrying = tokio::spawn(keep_retrying(manager.clone()));
    let again = keep_reloading(manager.clone(), service.clone(), config, read, hangup);
    let reloading = tokio::spawn(again);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    service.stopping();
    // What was being started is started first, so that it can be stopped.
    manager.begin_end();
    manager.events().tell(&say::DAEMON_ENDS, &[], uri::MANAGER);
    let _ = starting.await;
    reloading.abort();
    attending.iter().for_each(JoinHandle::abort);
    retrying.abort();
    sessions.abort();
    turned_away.abort();
    manager.end_services().await;
    let problems = manager.shut_down().await;
    keeping.abort();
    report(&problems);
    // What became of arrays is told; an engine that hangs is not asked.
    manager.refresh();
    manager.events().finish().await;
    tasks.iter().for_each(JoinHandle::abort);
    write_last(&manager).await;
    // Until here the stop took as long as drives and the state directory do.
    beating.abort();
    if !cores.stop() {
        say_stuck();
    }
    Ok(problems)
}

/// Starts arrays, and says when that is done.
fn begin(
    manager: &Arc<Manager>,
    service: &Arc<Service>,
    wait: Duration,
    socket: &FilePath,
) -> JoinHandle<()> {
    let (manager, service, socket) = (manager.clone(), service.clone(), socket.to_owned());
    tokio::spawn(async move {
        report(&manager.start(wait).await);
        // What it serves is known by now: nothing is taken for left over.
        serve_services(&manager, &socket).await;
        say_ready();
        service.ready();
    })
}

/// Lets `palisade services` come.
async fn serve_services(manager: &Arc<Manager>, socket: &FilePath) {
    match services::listen(socket).await {
        Ok(listener) => {
            let (own, noted) = (manager.standing.services().clone(), manager.clone());
            let data = manager.data.clone();
            tokio::spawn(own.keep(data, listener, move || {
                noted.refresh();
            }));
        }
        Err(error) => {
            let at = ::services::socket(socket);
            report(&[Error::new(&say::SOCKET_NOT_MADE, &[&at.display(), &error])]);
        }
    }
}

/// Gives a new manager what is kept beside the drives, and where the kernel tells of devices.
async fn remembering(manager: Manager, config: &Config) -> Manager {
    let (state, accounts, audit) = keep(config.state.as_deref()).await;
    let (events, history) = (tell(state.as_ref()).await, recall(state.as_ref(), OPENS).await);
    let alerts = alert(state.as_ref()).await;
    manager
        .keeping(state, accounts, audit)
        .reading(config.sysfs())
        .telling(events)
        .recalling(history)
        .alerting(alerts)
}

/// Writes what is kept beside the drives to its end.
async fn write_last(manager: &Manager) {
    manager.keep_judges().await;
    manager.accounts().close().await;
    manager.audit().say("the daemon ends", Ending::Ok);
    manager.audit().close();
    manager.events().close().await;
    manager.history.close().await;
    manager.alerts().close().await;
}

/// Serves clients on the socket and by HTTPS, and webhooks.
fn serve_clients(manager: &Arc<Manager>, listener: UnixListener) -> [JoinHandle<()>; 2] {
    manager.events().start();
    manager.alerts().start();
    let answer = {
        let manager = manager.clone();
        move |asked| {
            let manager = manager.clone();
            async move { answer::answer(&manager, asked).await }
        }
    };
    let room = Arc::new(Room::new({
        let manager = manager.clone();
        move |peer| manager.local().who(peer).is_some_and(|(_, role)| role.is_some())
    }));
    let socket = tokio::spawn(http::serve(listener, room.clone(), answer.clone()));
    let accounts = manager.accounts().is_any();
    [socket, tokio::spawn(manager.https().clone().keep(room, answer, accounts))]
}

/// Follows drives that are pulled out and plugged in, those that no path leads to, how they are,
/// and arrays that other servers take over.
fn attend(manager: &Arc<Manager>) -> [JoinHandle<()>; 4] {
    let (plugged, well) = (manager.clone(), manager.clone());
    [
        tokio::spawn(manager.clone().keep_returning()),
        tokio::spawn(manager.clone().keep_owned()),
        tokio::spawn(async move { plugged.keep_plugged().await }),
        tokio::spawn(async move { well.keep_well().await }),
    ]
}

/// Ends sessions that nobody uses, for as long as the daemon runs.
fn keep_sessions(manager: &Manager) -> JoinHandle<()> {
    let accounts = manager.accounts().clone();
    tokio::spawn(async move { accounts.keep().await })
}

/// Tells the service manager, until all is stopped and written, that every thread of the daemon
/// turns.
fn keep_beating(service: &Arc<Service>, data: &Data) -> JoinHandle<()> {
    let (service, data) = (service.clone(), data.clone());
    let turn = move || {
        let data = data.clone();
        async move { data.turn().await }
    };
    tokio::spawn(async move { service.keep(turn).await })
}

/// Tries exports again that can't be served.
async fn keep_retrying(manager: Arc<Manager>) {
    loop {
        tokio::time::sleep(RETRY).await;
        manager.retry_exports().await;
    }
}

fn say_stuck() {
    runtime::say(format_args!(
        "palisade: a drive does not answer: this process stays until it does, and keeps only that \
         drive open\n  start the daemon again; it can use the drive once this process has ended"
    ));
}

/// Reads the configuration again whenever SIGHUP says so.
async fn keep_reloading(
    manager: Arc<Manager>,
    service: Arc<Service>,
    mut config: Config,
    read: Reader,
    mut hangup: Signal,
) {
    while hangup.recv().await.is_some() {
        service.reloading();
        reload::reload(&manager, &mut config, &read).await;
        service.reloaded();
    }
}

/// Opens the state directory, if there is to be one, with its accounts and the audit log. Arrays
/// are served without it, too: whoever can't reach their data has the greater harm.
async fn keep(configured: Option<&FilePath>) -> (Option<Arc<State>>, Accounts, Audit) {
    let variable = std::env::var_os(state::VARIABLE);
    let in_memory = |problem| {
        let audit = Audit::in_memory(problem);
        audit.say(audit::STARTS, Ending::Ok);
        (None, Accounts::none(), audit)
    };
    let Some(dir) = state::place(configured, variable.as_deref()) else { return in_memory(None) };
    match open(dir, OPENS, READS).await {
        Ok((state, accounts, audit)) => (Some(state), accounts, audit),
        Err(error) => {
            report(core::slice::from_ref(&error));
            in_memory(Some(error.error))
        }
    }
}

/// Opens the state directory, its accounts and the audit log, within these times. What takes
/// longer changes nothing there once it ends, and gives the directory back; but accounts that can't
/// be read are told, and the rest is used.
async fn open(
    dir: PathBuf,
    opens: Duration,
    reads: Duration,
) -> Result<(Arc<State>, Accounts, Audit), Error> {
    let shown = dir.display().to_string();
    let failed = |why: &dyn Display| Error::new(&say::STATE_FAILED, &[&shown, why]);
    let opened = within(opens, failed, move || State::open(&dir)).await?;
    let read = move || {
        let kept = Audit::read(&opened)?;
        Ok((opened, kept))
    };
    let failed = |why: &dyn Display| Error::new(&say::AUDIT_NOT_READ, &[&shown, why]);
    let (state, kept) = within(reads, failed, read).await?;
    let audit = Audit::go_on(&state, kept)?;
    let state = Arc::new(state);
    let own = state.clone();
    let failed = |why: &dyn Display| accounts::not_read(&state, why);
    let found = within(opens, failed, move || Accounts::read(&own)).await;
    let accounts = Accounts::go_on(state.clone(), found);
    Ok((state, accounts, audit))
}

/// Opens what the state directory keeps of events. Without it events are told all the same.
async fn tell(state: Option<&Arc<State>>) -> Events {
    let in_memory = |problem: Option<Error>| {
        report(problem.as_slice());
        Events::in_memory(problem.as_ref().map(|problem| problem.error.as_str()))
    };
    let Some(state) = state.cloned() else { return in_memory(None) };
    let dir = state.dir().display().to_string();
    let failed = |why: &dyn Display| Error::new(&say::EVENTS_NOT_READ, &[&dir, why]);
    let own = state.clone();
    let found = within(OPENS, failed, move || Events::read(&own)).await;
    match found.and_then(|found| Events::go_on(&state, found)) {
        Ok(events) => {
            report(events.problem().cloned().as_slice());
            events
        }
        Err(error) => in_memory(Some(error)),
    }
}

/// Reads the past that the state directory keeps, within this time. Without it there is one from
/// now on.
async fn recall(state: Option<&Arc<State>>, opens: Duration) -> History {
    let Some(state) = state.cloned() else { return History::in_memory(None) };
    let (own, shown) = (state.clone(), state.clone());
    let failed = move |why: &dyn Display| history::not_read(&shown, why);
    match within(opens, failed, move || History::read(&own)).await {
        Ok(found) => {
            report(found.problem.as_slice());
            History::go_on(&state, found)
        }
        Err(error) => {
            report(core::slice::from_ref(&error));
            History::in_memory(Some(&error.error))
        }
    }
}

/// Opens what the state directory keeps of alerts. Without it they are raised all the same.
async fn alert(state: Option<&Arc<State>>) -> Alerts {
    let Some(state) = state.cloned() else { return Alerts::in_memory() };
    let failed = |why: &dyn Display| Error::new(&say::ALERTS_NOT_READ, &[why]);
    let own = state.clone();
    match within(OPENS, failed, move || Ok(alerts::kept::read(&own))).await {
        Ok(found) => {
            let (alerts, problems) = Alerts::kept(state, found);
            report(&problems);
            alerts
        }
        Err(error) => {
            report(&[error]);
            Alerts::in_memory()
        }
    }
}

/// Has a thread do what a file system that hangs may keep for ever.
async fn within<T: Send + 'static>(
    time: Duration,
    failed: impl Fn(&dyn Display) -> Error,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match timeout(time, spawn_blocking(work)).await {
        Ok(done) => done.unwrap_or_else(|error| Err(failed(&error))),
        Err(_) => Err(failed(&format!("no answer within {} s", time.as_secs_f64()))),
    }
}

/// Tests the parity kernels and picks one, before anything depends on it.
pub(crate) fn parity_kernel() -> Result<&'static str, Error> {
    parity::select_kernel()
        .map_err(|error| Error::new(&say::PARITY_KERNEL, &[&error, &parity::VARIABLE]))
}

/// Names the parity kernel, and those that this machine gets wrong.
fn say_parity(kernel: &str) {
    runtime::say(format_args!("palisade: parity kernel {kernel}"));
    for warning in parity::warnings() {
        runtime::say(format_args!("palisade: warning: {warning}"));
    }
}

/// Warns of fences that drives are taken out before.
fn say_fences(config: &Config) {
    if let Some(warning) = config.fences_too_long() {
        runtime::say(format_args!("palisade: warning: {warning}"));
    }
}

fn report(problems: &[Error]) {
    for problem in problems {
        runtime::say(format_args!("{}", problem.lines()));
    }
}

/// Says that clients found no room, but not more often than every [`QUIET`].
async fn say_turned_away(data: Data) {
    let most = nbd::MemorySize::default().connections;
    loop {
        data.turned_away().await;
        runtime::say(format_args!(
            "palisade: a client was turned away: each core serves at most {most} connections\n  \
             close some connections, or raise `cores` in the configuration"
        ));
        tokio::time::sleep(QUIET).await;
    }
}

fn say_ready() {
    // Nobody may be listening; the daemon serves all the same.
    let mut out = std::io::stdout();
    let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
}

/// Takes the management socket: its directory is made, a socket that nobody answers on replaced.
/// Where the configuration says who may do what, everybody may connect, and is asked who they are;
/// else the daemon's user and the group `palisade` may.
async fn listen(path: &FilePath, is_for_all: bool) -> Result<(UnixListener, Socket), Error> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AddrInUse => Error::new(&say::DAEMON_RUNS, &[&path.display()]),
        ErrorKind::AlreadyExists => Error::new(&say::SOCKET_TAKEN, &[&path.display(), &error]),
        _ => Error::new(&say::SOCKET_NOT_MADE, &[&path.display(), &error]),
    };
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let listener = address::unix_listener(path).await.map_err(failed)?;
    let socket = Socket::bound(path).map_err(failed)?;
    socket.open(is_for_all).map_err(failed)?;
    Ok((listener, socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::DirBuilderExt;

    /// Makes a file whose opening waits for the other end.
    fn hanging(path: &FilePath) {
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("runs");
        assert!(made.success());
    }

    #[test]
    fn accounts_that_hang_are_told_and_the_rest_is_used() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path().join("state");
        drop(State::open(&dir).expect("made"));
        let file = dir.join("accounts.json");
        hanging(&file);
        let opened = runtime.block_on(open(dir, Duration::from_millis(300), READS));
        let (state, accounts, audit) = opened.expect("opened");
        let problem = accounts.problem().expect("is told").what;
        let why = format!("{}: no answer within 0.3 s", file.display());
        assert_eq!(problem, Error::new(&say::ACCOUNTS_NOT_READ, &[&why]));
        assert!(!*accounts.is_any().borrow());
        assert_eq!(audit.problem(), None);
        let mut end = std::fs::OpenOptions::new();
        drop(end.read(true).write(true).open(&file).expect("the other end"));
        audit.close();
        drop(state);
        runtime.shutdown_background();
    }

    #[test]
    fn a_past_that_hangs_is_told_and_left_as_it_is() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let place = tempfile::tempdir().expect("a directory");
        let state = Arc::new(State::open(place.path()).expect("made"));
        let file = place.path().join(state::HISTORY);
        hanging(&file);
        let history = runtime.block_on(recall(Some(&state), Duration::from_millis(20)));
        let problem = history.problem().expect("is told");
        assert!(problem.ends_with("no answer within 0.02 s"), "{problem}");
        // It is kept in memory: nothing is put in the file's place.
        runtime.block_on(history.close());
        let mut end = std::fs::OpenOptions::new();
        drop(end.read(true).write(true).open(&file).expect("the other end"));
        runtime.shutdown_background();
    }

    #[test]
    fn a_state_directory_that_hangs_keeps_nobody_from_starting() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(600));
        let log = "audit-00000000000000000001.log";
        for (name, opens, reads, told) in
            [("lock", short, long, &say::STATE_FAILED), (log, long, short, &say::AUDIT_NOT_READ)]
        {
            let place = tempfile::tempdir().expect("a directory");
            let dir = place.path().join("state");
            std::fs::DirBuilder::new().mode(0o700).create(&dir).expect("made");
            hanging(&dir.join(name));
            let opened = runtime.block_on(open(dir.clone(), opens, reads));
            let error = opened.err().expect("it hangs");
            let problem = "no answer within 0.02 s";
            assert_eq!(error, Error::new(told, &[&dir.display(), &problem]));
            // The thread ends, and gives the directory back.
            let mut end = std::fs::OpenOptions::new();
            drop(end.read(true).write(true).open(dir.join(name)).expect("the other end"));
        }
        runtime.shutdown_background();
    }
}
