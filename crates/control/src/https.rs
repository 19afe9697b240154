//! HTTPS: where it listens, and the certificate that it shows.
//!
//! States
//!
//! | HTTPS is  | becomes   | when                                                         |
//! |-----------|-----------|--------------------------------------------------------------|
//! | off       | listening | there are an address, an account, and a certificate          |
//! | listening | off       | no address is configured any more                            |
//!
//! A connection goes on with the certificate with which it began, whatever comes after; another
//! certificate is shown to those that begin later. One that the daemon made is replaced a month
//! before its end, and when the machine's name or an address is another, by one of the same key:
//! clients may know the daemon by that. Where an address is no longer configured, its connections
//! end once they have answered.
//!
//! Invariants
//! - Nobody is let in without TLS 1.3. A handshake that takes longer than [`HANDSHAKE_TIME`] ends;
//!   until then it has the place of a connection ([`crate::room`]).
//! - A certificate that can't be used does not replace one that can.
//! - Each certificate that is shown is said with its fingerprint, in the log and the audit log.
//! - Handshakes leave the thread that serves everybody to others, whoever asks for them ([`Pace`]).
//! - A file that does not answer keeps nobody waiting longer than [`READS`].

use crate::certificate::{self, For, Identity, Request};
use crate::http::{self, Asked};
use crate::lock::lock;
use crate::peer::Peer;
use crate::reply::Content;
use crate::room::Room;
use crate::state::{CERTIFICATE, REQUESTED, State};
use core::future::Future;
use core::time::Duration;
use hyper::Response;
use redfish::messages as say;
use redfish::view::{self, Error, Problem};
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};
use socket2::SockRef;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// How long a handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How many handshakes begin in a second: each is a signature.
const HANDSHAKES: u32 = 100;

/// How often it is looked whether the certificate is too old: at its dates and the machine's name.
const OFTEN: Duration = Duration::from_secs(60);

/// How soon what went wrong is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// How long nobody is let in where the daemon has no room for another open file.
const PAUSE: Duration = Duration::from_secs(1);

/// How often it is said again that nobody is let in.
const QUIET: Duration = Duration::from_secs(60);

/// How long files may take to be read or written.
const READS: Duration = Duration::from_secs(5);

/// How many clients may wait to be let in.
const BACKLOG: u32 = 1024;

/// No file of certificates is larger.
const MOST_BYTES: u64 = 1 << 20;

/// What the configuration says of HTTPS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Where to listen.
    pub listen: Vec<SocketAddr>,
    /// A file with the certificate and those that it depends on, and one with its key.
    pub files: Option<(PathBuf, PathBuf)>,
}

/// What rustls is given for each connection.
#[derive(Debug, Default)]
struct Shown {
    certified: RwLock<Option<Arc<CertifiedKey>>>,
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certified.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// A socket that is listened on.
struct Listening {
    bound: SocketAddr,
    task: JoinHandle<()>,
    /// Its connections end when this is dropped.
    _open: watch::Sender<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// When handshakes begin: those of a second at once, others one after the other.
#[derive(Default)]
struct Pace {
    /// When the next would begin, if none did before its time.
    next: Mutex<Option<Instant>>,
}

impl Pace {
    /// When one may begin that is asked for now.
    fn turn(&self, now: Instant) -> Instant {
        let mut next = lock(&self.next);
        let own = next.filter(|next| *next > now).unwrap_or(now);
        let second = Duration::from_secs(1);
        *next = own.checked_add(second / HANDSHAKES);
        own.checked_sub(second).unwrap_or(now)
    }
}

/// HTTPS of a daemon.
pub struct Https {
    shown: Arc<Shown>,
    settings: watch::Sender<Settings>,
    state: Option<Arc<State>>,
    /// Seconds since 1970.
    clock: fn() -> u64,
    /// Takes what is said of certificates, for the audit log.
    trail: Box<dyn Fn(&str) + Send + Sync>,
    /// A certificate that was made and could not be kept.
    unkept: Mutex<Option<Identity>>,
    told: Mutex<Arc<view::Https>>,
    /// Whether it was begun as it is once somebody could log in, and what came of it told.
    begun: watch::Sender<bool>,
    /// Held by who puts another certificate in the place of the one that is there, until the file
    /// system has answered.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Files of the configuration that are being read.
    reading: Arc<Mutex<BTreeSet<(PathBuf, PathBuf)>>>,
}

fn off(why: &str, hint: &str) -> Error {
    Error::new(&say::HTTPS_OFF, &[&why]).advise(hint)
}

impl Https {
    /// Off, until [`Https::keep`] runs.
    pub fn new(
        state: Option<Arc<State>>,
        clock: fn() -> u64,
        trail: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            shown: Arc::default(),
            settings: watch::Sender::default(),
            state,
            clock,
            trail: Box::new(trail),
            unkept: Mutex::default(),
            told: Mutex::default(),
            begun: watch::Sender::default(),
            changing: Arc::default(),
            reading: Arc::default(),
        }
    }

    /// What the configuration says from now on. Certificates are read anew, too.
    pub fn set(&self, settings: Settings) {
        self.settings.send_replace(settings);
    }

    /// Waits until it listens, or it is told why not, once there is an account; no longer than
    /// [`READS`], and not where no address is configured.
    pub async fn begun(&self) {
        if !self.settings.borrow().listen.is_empty() {
            let mut begun = self.begun.subscribe();
            let _ = timeout(READS, begun.wait_for(|begun| *begun)).await;
        }
    }

    fn told(&self) -> MutexGuard<'_, Arc<view::Https>> {
        lock(&self.told)
    }

    /// How it is.
    pub fn view(&self) -> Arc<view::Https> {
        self.told().clone()
    }

    /// Serves for ever, as the configuration says. `accounts` tells whether somebody could log in.
    pub async fn keep<F, A>(
        self: Arc<Self>,
        room: Arc<Room>,
        answer: F,
        mut accounts: watch::Receiver<bool>,
    ) where
        F: Fn(Asked) -> A + Clone + Send + Sync + Unpin + 'static,
        A: Future<Output = Response<Content>> + Send + 'static,
    {
        let mut settings = self.settings.subscribe();
        let (mut listening, pace, mut is_new) = (BTreeMap::new(), Arc::default(), true);
        loop {
            let wanted = settings.borrow_and_update().clone();
            let is_open = *accounts.borrow_and_update();
            listening.retain(|address, _| wanted.listen.contains(address));
            let (tls, problem) = self.prepare(&wanted, is_open, is_new).await;
            let mut problems: Vec<_> = problem.into_iter().collect();
            let is_shown = tls.is_some();
            if let Some(tls) = tls {
                let serve = |listener, open| {
                    let (tls, room, answer) =
                        ((tls.clone(), Arc::clone(&pace)), room.clone(), answer.clone());
                    tokio::spawn(accept(listener, tls, room, answer, open))
                };
                problems.extend(listen(&wanted.listen, &mut listening, serve));
            }
            let has_failed = !problems.is_empty();
            problems.extend(self.dated().filter(|_| is_shown));
            self.tell(&listening, problems);
            self.begun.send_replace(is_open);
            is_new = tokio::select! {
                changed = settings.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => return,
                },
                Ok(()) = accounts.changed() => true,
                () = sleep(if has_failed { AGAIN } else { OFTEN }) => has_failed,
            };
        }
    }

    /// What connections begin with, if anything is to be served; and what is wrong. Files are read
    /// only if something `is_new`, or the certificate is due.
    async fn prepare(
        &self,
        wanted: &Settings,
        is_open: bool,
        is_new: bool,
    ) -> (Option<TlsAcceptor>, Option<Error>) {
        if wanted.listen.is_empty() {
            return (None, None);
        }
        if self.state.is_none() {
            let hint = "name a directory for the daemon's files: state = \"DIR\"";
            return (None, Some(off("there is no state directory", hint)));
        }
        if !is_open {
            let hint = "make the first account: palisade account create NAME --role Administrator";
            return (None, Some(off("there is no account", hint)));
        }
        let problem = match is_new || self.is_due(wanted) {
            true => self.renew(wanted).await.err(),
            false => None,
        };
        // The one that was shown before is as good as it was.
        if problem.is_some() && self.view().certificate.is_none() {
            return (None, problem);
        }
        match self.acceptor() {
            Ok(tls) => (Some(tls), problem),
            Err(error) => (None, Some(error)),
        }
    }

    fn acceptor(&self) -> Result<TlsAcceptor, Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| off(&error.to_string(), "tell the makers of Palisade"))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self.shown.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Each connection is one of its own.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// What a certificate of this daemon is for.
    fn wanted(&self, settings: &Settings) -> For {
        let addresses = settings.listen.iter().map(|address| address.ip().to_canonical());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        For { host, addresses: addresses.collect() }
    }

    /// Whether the certificate that is shown is to be made anew.
    fn is_due(&self, settings: &Settings) -> bool {
        let view = self.view();
        let is_due = |own| certificate::is_due(own, &self.wanted(settings), (self.clock)());
        settings.files.is_none() && view.certificate.as_ref().is_some_and(is_due)
    }

    /// What is wrong with the dates of the certificate that is shown.
    fn dated(&self) -> Option<Error> {
        let view = self.view();
        view.certificate.as_ref().and_then(|own| certificate::problem(own, (self.clock)()))
    }

    fn unkept(&self) -> MutexGuard<'_, Option<Identity>> {
        lock(&self.unkept)
    }

    /// Shows the certificate that is to be shown now: reads it, or makes it. One that was made is
    /// shown even if it can't be kept.
    async fn renew(&self, settings: &Settings) -> Result<(), Error> {
        match (settings.files.clone(), self.state.clone()) {
            (Some(files), _) => {
                let identity = self.read(files, given).await?;
                self.show(identity, "of the configuration's files");
                Ok(())
            }
            (None, Some(state)) => {
                let (wanted, now) = (self.wanted(settings), (self.clock)());
                let unkept = self.unkept().clone();
                let kept = self.alone(move || kept(&state, &wanted, now, unkept)).await?;
                let problem = kept.problem;
                *self.unkept() = problem.as_ref().map(|_| kept.identity.clone());
                self.show(kept.identity, kept.whence);
                problem.map_or(Ok(()), Err)
            }
            (None, None) => Err(off("there is no state directory", "name one: state = \"DIR\"")),
        }
    }

    /// Reads files of the configuration. Those that have not answered yet are not read again.
    async fn read(
        &self,
        files: (PathBuf, PathBuf),
        read: fn(&Path, &Path) -> Result<Identity, Error>,
    ) -> Result<Identity, Error> {
        let problem = format!("no answer within {} s", READS.as_secs());
        let late = Error::new(&say::CERTIFICATE_NOT_READ, &[&files.0.display(), &problem]);
        let is_new = lock(&self.reading).insert(files.clone());
        if !is_new {
            return Err(late);
        }
        let all = self.reading.clone();
        let (done, found) = oneshot::channel();
        spawn_blocking(move || {
            let identity = read(&files.0, &files.1);
            lock(&all).remove(&files);
            // Nobody may wait for it any more.
            let _ = done.send(identity);
        });
        match timeout(READS, found).await {
            Ok(found) => found.unwrap_or_else(|_| Err(Error::new(&say::STOPPING, &[]))),
            Err(_) => Err(late),
        }
    }

    /// Has a thread work in the state directory, alone with the certificate until that is done,
    /// whoever waits for it.
    async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let changing = self.changing.clone();
        let done = async {
            let turn = changing.lock_owned().await;
            let done = spawn_blocking(move || {
                let done = work();
                drop(turn);
                done
            });
            done.await.unwrap_or_else(|_| Err(Error::new(&say::STOPPING, &[])))
        };
        let late = |_| Err(not_kept(&format!("no answer within {} s", READS.as_secs())));
        timeout(READS, done).await.unwrap_or_else(late)
    }

    fn show(&self, identity: Identity, whence: &str) {
        let mut shown =
            self.shown.certified.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        *shown = Some(identity.certified);
        drop(shown);
        let mut told = self.told();
        let before = told.certificate.clone();
        let now = identity.shown.clone();
        *told = Arc::new(view::Https { certificate: Some(identity.shown), ..(**told).clone() });
        drop(told);
        let print = &now.fingerprint;
        match before {
            None => {
                (self.trail)(&format!(
                    "HTTPS shows the certificate with SHA-256 {print}, {whence}"
                ));
            }
            Some(before) if before.fingerprint != *print => {
                let key = if before.key == now.key { "the same key" } else { "another key" };
                let before = before.fingerprint;
                (self.trail)(&format!(
                    "HTTPS shows another certificate, with {key}: SHA-256 {print}, {whence}; \
                     before: {before}"
                ));
                runtime::say(format_args!(
                    "palisade: HTTPS shows another certificate, with {key}: SHA-256 {print}, \
                     {whence}\n  before: {before}"
                ));
            }
            Some(_) => {}
        }
    }

    /// Keeps how it is, and says what is new of it.
    fn tell(&self, listening: &BTreeMap<SocketAddr, Listening>, problems: Vec<Error>) {
        let listeners = listening.values().map(|own| own.bound.to_string()).collect();
        let mut told = self.told();
        let before = told.clone();
        let since = |what: &Error| {
            let same = before.problems.iter().find(|problem| problem.what == *what);
            same.map_or_else(self.clock, |problem| problem.since)
        };
        let problems = problems.into_iter().map(|what| Problem { since: since(&what), what });
        *told =
            Arc::new(view::Https { listeners, problems: problems.collect(), ..(**told).clone() });
        let now = told.clone();
        drop(told);
        for problem in now.problems.iter().filter(|problem| !before.problems.contains(problem)) {
            runtime::say(format_args!("{}", problem.what.lines()));
        }
        if now.listeners != before.listeners && !now.listeners.is_empty() {
            let print = now.certificate.as_ref().map_or("", |own| own.fingerprint.as_str());
            let listeners = now.listeners.join(", ");
            runtime::say(format_args!("palisade: HTTPS on {listeners}, SHA-256 {print}"));
        }
    }

    /// Replaces the certificate by this one. Without a key in it, the key is that of the last
    /// request, or the one that is there.
    ///
    /// # Errors
    /// It can't be used, or it can't be kept.
    pub async fn replace(&self, pem: String) -> Result<(), Error> {
        let state = self.own_state()?;
        let now = (self.clock)();
        let replaced = self.alone(move || {
            let (identity, key) = with_key(&state, &pem)?;
            certificate::check_dates(&identity.shown, now)?;
            let replaced = state.replace(CERTIFICATE, identity.pem.as_bytes());
            // Its key is in the other file now; left here, it would be of no use.
            if replaced.is_ok() && key == Some(REQUESTED) {
                let _ = state.remove(REQUESTED);
            }
            // What may not be durable is there all the same.
            let there = state.read(CERTIFICATE).ok().flatten();
            let is_there = there.is_some_and(|there| there == identity.pem.as_bytes());
            Ok((is_there.then_some(identity), replaced.map_err(|error| not_kept(&error))))
        });
        let (identity, replaced) = replaced.await?;
        if let Some(identity) = identity {
            *self.unkept() = None;
            self.show(identity, "that a client brought");
        }
        replaced
    }

    /// Makes a request for a certificate (PKCS#10). Its key is kept for the certificate that comes.
    ///
    /// # Errors
    /// It can't be made, or its key can't be kept.
    pub async fn request(&self, wanted: Request) -> Result<String, Error> {
        let state = self.own_state()?;
        let made = self.alone(move || {
            let (request, key) = certificate::request(&wanted)?;
            state.replace(REQUESTED, key.as_bytes()).map_err(|error| not_kept(&error))?;
            Ok(request)
        });
        made.await
    }

    /// Where certificates are kept that clients bring.
    fn own_state(&self) -> Result<Arc<State>, Error> {
        if self.settings.borrow().files.is_some() {
            return Err(Error::new(&say::CERTIFICATE_CONFIGURED, &[]));
        }
        self.state.clone().ok_or_else(|| Error::new(&say::NO_STATE, &[]))
    }
}

fn not_kept(error: &dyn core::fmt::Display) -> Error {
    Error::new(&say::CERTIFICATE_NOT_KEPT, &[error])
}

/// The certificate that files of a person's hold.
fn given(certificate: &Path, key: &Path) -> Result<Identity, Error> {
    certificate::pair(&text(certificate)?, &text(key)?)
}

/// What may be known of the certificate in a file, whose key is in the same file or another.
///
/// # Errors
/// They can't be read, or used.
pub fn certificate_in(certificate: &Path, key: &Path) -> Result<view::Certificate, Error> {
    let identity = match certificate == key {
        // As the daemon made it, and says so.
        true => certificate::read(&text(certificate)?)?,
        false => given(certificate, key)?,
    };
    Ok(identity.shown)
}

/// The text of a file, which has an end.
fn text(path: &Path) -> Result<String, Error> {
    let read = || {
        // What is no file but a pipe is waited for by nobody.
        let open = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(open).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is no file"));
        }
        let mut text = String::new();
        let length = file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        match u64::try_from(length) {
            Ok(length) if length <= MOST_BYTES => Ok(text),
            _ => Err(std::io::ErrorKind::FileTooLarge.into()),
        }
    };
    read().map_err(|error| Error::new(&say::CERTIFICATE_NOT_READ, &[&path.display(), &error]))
}

/// What `palisade check-config` says of these.
pub fn warnings(settings: &Settings, now: u64) -> Vec<String> {
    let Some((certificate, key)) = &settings.files else { return Vec::new() };
    let mut found = Vec::new();
    if settings.listen.is_empty() {
        found.push("certificate: it is shown nowhere, as https names no address".to_owned());
    }
    match given(certificate, key) {
        Ok(identity) => {
            let problem = certificate::problem(&identity.shown, now);
            found.extend(problem.map(|problem| format!("certificate: {}", problem.error)));
        }
        Err(error) => found.push(format!("certificate: {}", error.error)),
    }
    let mode = std::fs::metadata(key).map_or(0, |found| found.mode());
    if mode & 0o007 != 0 {
        found.push(format!("key: everybody may read or write {}", key.display()));
    }
    found
}

/// A certificate of the state directory.
struct Kept {
    identity: Identity,
    /// From where it is, in words.
    whence: &'static str,
    /// Why it is not in its file.
    problem: Option<Error>,
}

/// The certificate in the state directory. It is made where there is none, and where it is due with
/// the same key; one that was made and not kept is not made again.
fn kept(state: &State, wanted: &For, now: u64, unkept: Option<Identity>) -> Result<Kept, Error> {
    let unkept = unkept.filter(|own| !certificate::is_due(&own.shown, wanted, now));
    let identity = match unkept {
        Some(identity) => identity,
        None => {
            let found = state.read(CERTIFICATE).map_err(|error| not_kept(&error))?;
            let text = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            if let Some(text) = &text {
                let identity = certificate::read(text).map_err(|error| {
                    let place = state.dir().join(CERTIFICATE);
                    error.advise(format!("remove {}: the daemon makes another", place.display()))
                })?;
                if !certificate::is_due(&identity.shown, wanted, now) {
                    return Ok(Kept { identity, whence: "of the state directory", problem: None });
                }
            }
            let key = text.as_deref().and_then(certificate::key_of);
            certificate::make(wanted, now, key.as_deref())?
        }
    };
    let problem = state.replace(CERTIFICATE, identity.pem.as_bytes()).err();
    let problem = problem.map(|error| not_kept(&error));
    Ok(Kept { identity, whence: "that the daemon made", problem })
}

/// A certificate with the key that belongs to it, and the file that has the key: its own, that of
/// the last request, or the one that is there.
fn with_key(state: &State, pem: &str) -> Result<(Identity, Option<&'static str>), Error> {
    if certificate::has_key(pem) {
        return certificate::pair(pem, pem).map(|identity| (identity, None));
    }
    let mut outcome = certificate::read(pem).map(|identity| (identity, None));
    for name in [REQUESTED, CERTIFICATE] {
        let file = state.read(name).map_err(|error| not_kept(&error))?;
        let text = file.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if let Some(text) = text.filter(|text| certificate::key_of(text).is_some()) {
            outcome = certificate::pair(pem, &text).map(|identity| (identity, Some(name)));
        }
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Listens where nobody listens yet. Answers with where it can't.
fn listen(
    wanted: &[SocketAddr],
    listening: &mut BTreeMap<SocketAddr, Listening>,
    serve: impl Fn(TcpListener, watch::Receiver<()>) -> JoinHandle<()>,
) -> Vec<Error> {
    let mut problems = Vec::new();
    for address in wanted {
        if listening.contains_key(address) {
            continue;
        }
        let bound = bind(*address, wanted).and_then(|listener| {
            let bound = listener.local_addr()?;
            let (open, connections) = watch::channel(());
            Ok(Listening { bound, task: serve(listener, connections), _open: open })
        });
        match bound {
            Ok(own) => drop(listening.insert(*address, own)),
            Err(error) => problems.push(Error::new(&say::HTTPS_NOT_BOUND, &[address, &error])),
        }
    }
    problems
}

/// A socket at this address. One of IPv6 takes no clients of IPv4 where these have their own.
fn bind(address: SocketAddr, all: &[SocketAddr]) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    let has_own = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
    if address.is_ipv6() && all.iter().any(has_own) {
        SockRef::from(&socket).set_only_v6(true)?;
    }
    // A daemon that was just stopped may have left connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether a client could not be let in for want of something that all others have.
fn is_full(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let all = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    all.iter().any(|full| error.raw_os_error() == Some(full.raw_os_error()))
}

/// Lets clients in, for ever.
async fn accept<F, A>(
    listener: TcpListener,
    (tls, pace): (TlsAcceptor, Arc<Pace>),
    room: Arc<Room>,
    answer: F,
    open: watch::Receiver<()>,
) where
    F: Fn(Asked) -> A + Clone + Send + Sync + Unpin + 'static,
    A: Future<Output = Response<Content>> + Send + 'static,
{
    let mut said: Option<Instant> = None;
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if is_full(&error) => {
                if said.is_none_or(|said| said.elapsed() >= QUIET) {
                    said = Some(Instant::now());
                    runtime::say(format_args!(
                        "palisade: HTTPS lets nobody in: {error}\n  close connections, or raise \
                         the limit of open files (LimitNOFILE= of the daemon's service)"
                    ));
                }
                sleep(PAUSE).await;
                continue;
            }
            // A client that has gone again.
            Err(_) => continue,
        };
        let peer = Peer::Network { address: address.ip().to_canonical() };
        // Who finds no place could be told so only behind a handshake: it is let go.
        let Some(place) = room.enter(&peer) else { continue };
        // An answer is written at once; a client does not wait for more of it.
        let _ = stream.set_nodelay(true);
        let (tls, answer, mut open) = (tls.clone(), answer.clone(), open.clone());
        let turn = pace.turn(Instant::now());
        tokio::spawn(async move {
            let closed = async move { while open.changed().await.is_ok() {} };
            sleep_until(turn).await;
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIME, tls.accept(stream)).await {
                http::converse(stream, peer, place, answer, closed).await;
            }
        });
    }
}

#[cfg(test)]
#[path = "https_tests.rs"]
mod tests;
