//! A client of one HTTPS service, which is known by the fingerprint of its certificate.
//!
//! A [`Connection`] is open until the service closes it, something of an answer is not as it
//! should be, or it is dropped. [`Connection::stream`] makes a [`Stream`] of it, which is open
//! until the service closes it, is silent for too long, or it is dropped.
//!
//! Invariants
//! - Nothing is sent before the service has shown that it has the key of the pinned certificate.
//!   Names and ends of certificates count for nothing. TLS 1.3, and nothing older.
//! - A name is looked up once at a time: a name server that hangs keeps one thread.
//! - Each step has a limit of its own, and each answer and all answers of a connection a most of
//!   bytes, whatever the service does.
//! - A redirect is no success: it is not followed.

use crate::config::shelves::{Credentials, Url};
use core::fmt;
use core::pin::pin;
use core::time::Duration;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring::default_provider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme, version};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

/// The most bytes of an answer.
const BYTES: usize = 4 << 20;

/// The most bytes of all answers of a connection.
const ALL_BYTES: usize = 8 << 20;

/// As how many bytes an object of an answer counts, beside its text: it takes more memory.
const OBJECT: usize = 128;

/// How long a service may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// For lookup, connection and handshake together.
    pub connect: Duration,
    /// For one answer.
    pub answer: Duration,
    /// Between two parts of a stream.
    pub quiet: Duration,
}

/// Takes one certificate.
#[derive(Debug)]
struct Pinned {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match Sha256::digest(own)[..] == self.fingerprint[..] {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::Error::General("its certificate has another fingerprint".into())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _own: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("it has no TLS 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, own, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Which service, how it is known, and how long it may take.
pub struct Service<'a> {
    /// Where.
    pub url: &'a Url,
    /// The SHA-256 of its certificate.
    pub fingerprint: [u8; 32],
    /// What it is told, so that it answers.
    pub credentials: &'a Credentials,
    /// How long it may take.
    pub limits: Limits,
    /// Held by who looks up its name.
    pub lookup: Arc<tokio::sync::Mutex<()>>,
}

/// A task that ends with who has this.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection to a service.
pub struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    task: Task,
    host: HeaderValue,
    authorization: HeaderValue,
    limits: Limits,
    /// How many more bytes all of its answers may have.
    left: usize,
}

/// Why a resource is not known.
#[derive(Debug)]
pub enum Failure {
    /// The service answers, but not with this resource.
    Refused {
        /// Which one.
        path: String,
        /// How it answers.
        status: StatusCode,
    },
    /// The resource is no JSON.
    Odd(String),
    /// The connection is of no use any more.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { path, status } => write!(f, "{path}: it answers {status}"),
            Self::Odd(why) | Self::Broken(why) => f.write_str(why),
        }
    }
}

fn late(what: &str, limit: Duration) -> String {
    format!("{what} does not come within {} s", limit.as_secs_f64())
}

/// A header that the client can send.
fn header(text: &str) -> Result<HeaderValue, String> {
    HeaderValue::try_from(text).map_err(|_| "a header can't be sent".to_owned())
}

impl Service<'_> {
    /// Where it is. A lookup that nobody waits for any more holds the next one up until it is over.
    async fn look_up(&self) -> std::io::Result<Vec<SocketAddr>> {
        let (host, port) = (self.url.host.clone(), self.url.port);
        if let Ok(address) = host.parse() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let turn = self.lookup.clone().lock_owned().await;
        let look = tokio::spawn(async move {
            let _turn = turn;
            Ok(tokio::net::lookup_host((host, port)).await?.take(4).collect())
        });
        look.await?
    }

    /// Connects.
    ///
    /// # Errors
    /// Why not, one line.
    pub async fn connect(&self) -> Result<Connection, String> {
        let provider = Arc::new(default_provider());
        let pinned = Pinned { fingerprint: self.fingerprint, provider: provider.clone() };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pinned))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(self.url.host.clone());
        let name = name.map_err(|_| "its host can't be asked for".to_owned())?;
        let begun = async {
            let addresses = self.look_up().await.map_err(|error| error.to_string())?;
            let stream = TcpStream::connect(&addresses[..]).await;
            let stream = stream.map_err(|error| error.to_string())?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
            let stream = stream.map_err(|error| format!("TLS: {error}"))?;
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())
        };
        let limit = self.limits.connect;
        let (sender, connection) =
            timeout(limit, begun).await.map_err(|_| late("the connection", limit))??;
        // What ends it is told by what is asked.
        let task = Task(tokio::spawn(async move { drop(connection.await) }));
        let mut authorization = header(self.credentials.header())?;
        authorization.set_sensitive(true);
        let (host, limits) = (header(&self.url.authority())?, self.limits);
        Ok(Connection { sender, task, host, authorization, limits, left: ALL_BYTES })
    }
}

impl Connection {
    /// Asks for a resource, and waits for the head of the answer.
    async fn ask(&mut self, path: &str, accept: &str) -> Result<Response<Incoming>, String> {
        let request = Request::get(path)
            .header(HOST, self.host.clone())
            .header(AUTHORIZATION, self.authorization.clone())
            .header(ACCEPT, accept)
            .header("odata-version", "4.0")
            .body(Empty::new());
        let request = request.map_err(|_| format!("{path} can't be asked for"))?;
        let answer = async {
            self.sender.ready().await?;
            self.sender.send_request(request).await
        };
        let answer = pin!(answer);
        let response = timeout(self.limits.answer, answer).await;
        let response = response.map_err(|_| late(path, self.limits.answer))?;
        response.map_err(|error| format!("{path}: no answer: {error}"))
    }

    /// All that an answer says. What it takes is taken from what is left.
    async fn whole(&mut self, path: &str, body: Incoming) -> Result<Bytes, String> {
        let (limit, most) = (self.limits.answer, BYTES.min(self.left));
        let whole = timeout(limit, Limited::new(body, most).collect()).await;
        let whole = whole.map_err(|_| late(path, limit))?;
        let whole = whole.map_err(|error| format!("{path}: {error}"))?.to_bytes();
        self.left = self.left.saturating_sub(whole.len());
        Ok(whole)
    }

    /// What a resource says.
    ///
    /// # Errors
    /// Why that is not known, one line.
    pub async fn get(&mut self, path: &str) -> Result<Value, Failure> {
        let answer = self.ask(path, "application/json").await.map_err(Failure::Broken)?;
        let status = answer.status();
        // A connection is of use again once all of an answer was read, be it a refusal.
        let whole = self.whole(path, answer.into_body()).await.map_err(Failure::Broken)?;
        if status != StatusCode::OK {
            return Err(Failure::Refused { path: path.to_owned(), status });
        }
        let objects = whole.iter().filter(|byte| **byte == b'{').count();
        let left = self.left.checked_sub(objects.saturating_mul(OBJECT));
        self.left = left.ok_or_else(|| Failure::Broken(format!("{path}: it says too much")))?;
        // Others do not wait meanwhile.
        let read = spawn_blocking(move || serde_json::from_slice(&whole)).await;
        let read = read.map_err(|error| Failure::Broken(error.to_string()))?;
        read.map_err(|error| Failure::Odd(format!("{path}: it is no JSON: {error}")))
    }

    /// Begins a stream of events.
    ///
    /// # Errors
    /// Why there is none, one line.
    pub async fn stream(mut self, path: &str) -> Result<Stream, String> {
        let answer = self.ask(path, "text/event-stream").await?;
        let status = answer.status();
        if status != StatusCode::OK {
            return Err(Failure::Refused { path: path.to_owned(), status }.to_string());
        }
        let _connection = (self.sender, self.task);
        let (body, quiet, heard) = (answer.into_body(), self.limits.quiet, Instant::now());
        Ok(Stream { body, lines: Lines::default(), quiet, heard, _connection })
    }
}

/// The beginnings of a stream's lines (HTML Standard, "Server-sent events").
#[derive(Default)]
struct Lines {
    /// How many bytes of `data:` the line that goes on has begun with; `None`: it has others.
    known: Option<usize>,
    is_within: bool,
}

impl Lines {
    /// Whether one of them says that something has changed.
    fn tell(&mut self, part: &[u8]) -> bool {
        const WANTED: &[u8] = b"data:";
        let mut is_told = false;
        for byte in part {
            if matches!(byte, b'\n' | b'\r') {
                self.is_within = false;
                continue;
            }
            let at = if self.is_within { self.known } else { Some(0) };
            let is_next = |at: &usize| WANTED.get(*at) == Some(byte);
            (self.is_within, self.known) = (true, at.filter(is_next).map(|at| at + 1));
            is_told |= self.known == Some(WANTED.len());
        }
        is_told
    }
}

/// A stream of events. What they say is not kept.
pub struct Stream {
    body: Incoming,
    lines: Lines,
    quiet: Duration,
    /// When the last part came.
    heard: Instant,
    _connection: (SendRequest<Empty<Bytes>>, Task),
}

impl Stream {
    /// Waits until the service tells that something has changed. May be dropped while it waits.
    ///
    /// # Errors
    /// Why the stream is over, one line.
    pub async fn news(&mut self) -> Result<(), String> {
        loop {
            // However often somebody begins to wait.
            let part = timeout_at(self.heard + self.quiet, self.body.frame()).await;
            let part = part.map_err(|_| late("an event", self.quiet))?;
            self.heard = Instant::now();
            let part = part.ok_or_else(|| "the stream of events ended".to_owned())?;
            let part = part.map_err(|error| format!("the stream of events: {error}"))?;
            if part.data_ref().is_some_and(|bytes| self.lines.tell(bytes)) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_data_is_news_however_it_comes_in_parts() {
        let mut lines = Lines::default();
        for (part, wanted) in [
            (&b":\n\n"[..], false),
            (b"id: 1\nda", false),
            (b"ta", false),
            (b": {}\n\n", true),
            (b"data:\r\rdata", true),
            (b" :\n", false),
            (b": data:\nxdata:\ndat\na:", false),
        ] {
            assert_eq!(lines.tell(part), wanted, "{part:?}");
        }
    }
}
