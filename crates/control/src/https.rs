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
//! before its end, and when the machine's name or an address is another.
//!
//! Invariants
//! - Nobody is let in without TLS 1.3. A handshake that takes longer than [`HANDSHAKE_TIME`] ends;
//!   until then it has the place of a connection ([`crate::room`]).
//! - A certificate that can't be used does not replace one that can.

use crate::api::{self, Error};
use crate::certificate::{self, For, Identity, Request};
use crate::http::{self, Asked};
use crate::peer::Peer;
use crate::reply::Content;
use crate::room::Room;
use crate::state::{CERTIFICATE, REQUESTED, State};
use core::future::Future;
use core::time::Duration;
use hyper::Response;
use redfish::messages as say;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// How long a handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How often it is looked whether the certificate is too old.
const OFTEN: Duration = Duration::from_secs(3600);

/// How soon what went wrong is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// How long nobody is let in where the daemon has no room for another open file.
const PAUSE: Duration = Duration::from_secs(1);

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
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// HTTPS of a daemon.
pub struct Https {
    shown: Arc<Shown>,
    settings: watch::Sender<Settings>,
    state: Option<Arc<State>>,
    host: String,
    /// Seconds since 1970.
    clock: fn() -> u64,
    told: Mutex<Arc<api::Https>>,
    /// Held by who puts another certificate in the place of the one that is there.
    changing: tokio::sync::Mutex<()>,
}

fn off(why: &str, hint: &str) -> Error {
    Error::new(&say::HTTPS_OFF, &[&why]).advise(hint)
}

impl Https {
    /// Off, until [`Https::keep`] runs.
    pub fn new(state: Option<Arc<State>>, clock: fn() -> u64) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            shown: Arc::default(),
            settings: watch::Sender::default(),
            state,
            host,
            clock,
            told: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// What the configuration says from now on. Certificates are read anew, too.
    pub fn set(&self, settings: Settings) {
        self.settings.send_replace(settings);
    }

    fn told(&self) -> MutexGuard<'_, Arc<api::Https>> {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// How it is.
    pub fn view(&self) -> Arc<api::Https> {
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
        let mut listening = BTreeMap::new();
        loop {
            let wanted = settings.borrow_and_update().clone();
            let is_open = *accounts.borrow_and_update();
            listening.retain(|address, _| wanted.listen.contains(address));
            let outcome = match self.prepare(&wanted, is_open).await {
                Ok(Some(tls)) => {
                    let serve = |listener| {
                        let (tls, room, answer) = (tls.clone(), room.clone(), answer.clone());
                        tokio::spawn(accept(listener, tls, room, answer))
                    };
                    listen(&wanted.listen, &mut listening, serve).await
                }
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            let pause = if outcome.is_ok() { OFTEN } else { AGAIN };
            self.tell(&listening, outcome.err());
            tokio::select! {
                changed = settings.changed() => if changed.is_err() { return },
                Ok(()) = accounts.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// What connections begin with; none if nothing is to be served.
    async fn prepare(
        &self,
        wanted: &Settings,
        is_open: bool,
    ) -> Result<Option<TlsAcceptor>, Error> {
        if wanted.listen.is_empty() {
            return Ok(None);
        }
        if self.state.is_none() {
            let hint = "name a directory for the daemon's files: state = \"DIR\"";
            return Err(off("there is no state directory", hint));
        }
        if !is_open {
            let hint = "make the first account: palisade account create NAME --role Administrator";
            return Err(off("there is no account", hint));
        }
        self.renew(wanted).await?;
        self.acceptor().map(Some)
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
        For { host: self.host.clone(), addresses: addresses.collect() }
    }

    /// Shows the certificate that is to be shown now: reads it, or makes it.
    async fn renew(&self, settings: &Settings) -> Result<(), Error> {
        let _changing = self.changing.lock().await;
        let (wanted, now) = (self.wanted(settings), (self.clock)());
        let (files, state) = (settings.files.clone(), self.state.clone());
        let found = spawn_blocking(move || match (files, state) {
            (Some((certificate, key)), _) => given(&certificate, &key),
            (None, Some(state)) => kept(&state, &wanted, now),
            (None, None) => Err(off("there is no state directory", "name one: state = \"DIR\"")),
        });
        let identity = found.await.map_err(|_| Error::new(&say::STOPPING, &[]))??;
        self.show(identity);
        Ok(())
    }

    fn show(&self, identity: Identity) {
        let mut shown =
            self.shown.certified.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        *shown = Some(identity.certified);
        drop(shown);
        let mut told = self.told();
        *told = Arc::new(api::Https { certificate: Some(identity.shown), ..(**told).clone() });
    }

    /// Keeps how it is, and says what is new of it.
    fn tell(&self, listening: &BTreeMap<SocketAddr, Listening>, error: Option<Error>) {
        let listeners = listening.values().map(|own| own.bound.to_string()).collect();
        let problem = error.map(|error| (error.error, error.hint));
        let mut told = self.told();
        let before = told.clone();
        *told = Arc::new(api::Https { listeners, problem, ..(**told).clone() });
        let now = told.clone();
        drop(told);
        if let Some((what, hint)) = now.problem.as_ref().filter(|_| now.problem != before.problem) {
            runtime::say(format_args!("palisade: {what}\n  {hint}"));
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
        let _changing = self.changing.lock().await;
        let state = self.own_state()?;
        let replaced = spawn_blocking(move || {
            let identity = with_key(&state, &pem)?;
            state
                .replace(CERTIFICATE, identity.pem.as_bytes())
                .map_err(|error| not_kept(&error))?;
            // The key is in the other file now; left here, it would be of no use.
            let _ = state.remove(REQUESTED);
            Ok::<_, Error>(identity)
        });
        let identity = replaced.await.map_err(|_| Error::new(&say::STOPPING, &[]))??;
        self.show(identity);
        Ok(())
    }

    /// Makes a request for a certificate (PKCS#10). Its key is kept for the certificate that comes.
    ///
    /// # Errors
    /// It can't be made, or its key can't be kept.
    pub async fn request(&self, wanted: Request) -> Result<String, Error> {
        let _changing = self.changing.lock().await;
        let state = self.own_state()?;
        let made = spawn_blocking(move || {
            let (request, key) = certificate::request(&wanted)?;
            state.replace(REQUESTED, key.as_bytes()).map_err(|error| not_kept(&error))?;
            Ok(request)
        });
        made.await.map_err(|_| Error::new(&say::STOPPING, &[]))?
    }

    /// Where certificates are kept that clients bring.
    fn own_state(&self) -> Result<Arc<State>, Error> {
        if self.settings.borrow().files.is_some() {
            return Err(Error::new(&say::CERTIFICATE_CONFIGURED, &[]));
        }
        self.state.clone().ok_or_else(|| Error::new(&say::NO_STATE, &[]))
    }
}

fn not_kept(error: &std::io::Error) -> Error {
    Error::new(&say::CERTIFICATE_NOT_KEPT, &[error])
}

/// The certificate that files of a person's hold.
fn given(certificate: &Path, key: &Path) -> Result<Identity, Error> {
    let text = |path: &Path| {
        let failed = |error: std::io::Error| {
            Error::new(&say::CERTIFICATE_NOT_READ, &[&path.display(), &error])
        };
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > MOST_BYTES {
            return Err(failed(std::io::ErrorKind::FileTooLarge.into()));
        }
        std::fs::read_to_string(path).map_err(failed)
    };
    certificate::read(&format!("{}\n{}", text(certificate)?, text(key)?))
}

/// The certificate in the state directory; made where there is none, or where it is due.
fn kept(state: &State, wanted: &For, now: u64) -> Result<Identity, Error> {
    let found = state.read(CERTIFICATE).map_err(|error| not_kept(&error))?;
    if let Some(bytes) = found {
        let text = String::from_utf8_lossy(&bytes);
        let identity = certificate::read(&text).map_err(|error| {
            let place = state.dir().join(CERTIFICATE);
            error.advise(format!("remove {}: the daemon makes another", place.display()))
        })?;
        if !certificate::is_due(&identity.shown, wanted, now) {
            return Ok(identity);
        }
    }
    let made = certificate::make(wanted, now)?;
    state.replace(CERTIFICATE, made.pem.as_bytes()).map_err(|error| not_kept(&error))?;
    Ok(made)
}

/// A certificate with the key that belongs to it: its own, that of the last request, or the one
/// that is there.
fn with_key(state: &State, pem: &str) -> Result<Identity, Error> {
    if certificate::has_key(pem) {
        return certificate::read(pem);
    }
    let mut outcome = certificate::read(pem);
    for name in [REQUESTED, CERTIFICATE] {
        let file = state.read(name).map_err(|error| not_kept(&error))?;
        let text = file.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if let Some(key) = text.as_deref().and_then(certificate::key_of) {
            outcome = certificate::read(&format!("{pem}\n{key}"));
        }
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Listens where nobody listens yet.
async fn listen(
    wanted: &[SocketAddr],
    listening: &mut BTreeMap<SocketAddr, Listening>,
    serve: impl Fn(TcpListener) -> JoinHandle<()>,
) -> Result<(), Error> {
    let mut outcome = Ok(());
    for address in wanted {
        if listening.contains_key(address) {
            continue;
        }
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let bound = listener.local_addr()?;
            Ok::<_, std::io::Error>(Listening { bound, task: serve(listener) })
        };
        match bound.await {
            Ok(own) => drop(listening.insert(*address, own)),
            Err(error) => {
                outcome = Err(Error::new(&say::HTTPS_NOT_BOUND, &[address, &error]));
            }
        }
    }
    outcome
}

/// Lets clients in, for ever.
async fn accept<F, A>(listener: TcpListener, tls: TlsAcceptor, room: Arc<Room>, answer: F)
where
    F: Fn(Asked) -> A + Clone + Send + Sync + Unpin + 'static,
    A: Future<Output = Response<Content>> + Send + 'static,
{
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let peer = Peer::Network { address: address.ip().to_canonical() };
        // Who finds no place could be told so only behind a handshake: it is let go.
        let Some(place) = room.enter(&peer) else { continue };
        // An answer is written at once; a client does not wait for more of it.
        let _ = stream.set_nodelay(true);
        let (tls, answer) = (tls.clone(), answer.clone());
        tokio::spawn(async move {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIME, tls.accept(stream)).await {
                http::converse(stream, peer, place, answer).await;
            }
        });
    }
}

#[cfg(test)]
#[path = "https_tests.rs"]
mod tests;
