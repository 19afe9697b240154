//! One request to the receiver of a webhook.
//!
//! Invariants
//! - It is over within [`CONNECTS`] and [`ANSWERS`], whatever name servers and receivers do. A
//!   redirect is an answer like any other that is no success: it is not followed.
//! - Without TLS 1.3 and a certificate that the machine trusts nothing is sent to an `https` URI,
//!   unless the subscription says that certificates need not be right.
//! - A name is looked up once at a time, whoever waits for it; no more than [`LOOKUPS`] names are,
//!   those among them that nobody waits for. A name server that hangs delays who needs its names.

use crate::lock::lock;
use core::pin::pin;
use core::time::Duration;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use redfish::events::SUBSCRIPTIONS_MOST;
use redfish::events::receiver::{Header, Receiver};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring::default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, version};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a lookup, a connection and a handshake may take together.
pub const CONNECTS: Duration = Duration::from_secs(10);

/// How long an answer may take.
pub const ANSWERS: Duration = Duration::from_secs(10);

/// How many names may be looked up at a time: a name for each subscription.
const LOOKUPS: usize = SUBSCRIPTIONS_MOST;

/// How long the machine's certificates are taken for what they were.
const FRESH: Duration = Duration::from_secs(600);

/// Names a file of certificates that are trusted, for OpenSSL and for us.
const TRUSTED: &str = "SSL_CERT_FILE";

/// Where systems have such a file.
const PLACES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Who makes requests.
#[derive(Default)]
pub struct Client {
    /// Names that are being looked up.
    lookups: Arc<Mutex<BTreeMap<String, watch::Receiver<Option<Found>>>>>,
    trusting: Mutex<Option<(Instant, Arc<ClientConfig>)>>,
}

/// What a lookup found.
type Found = Result<Vec<SocketAddr>, String>;

/// Why a receiver did not take what it was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// One line.
    pub why: String,
    /// It will not take the same again: what it was sent is not to its liking.
    pub is_of_content: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self { why, is_of_content: false }
    }
}

/// Takes any certificate, but signatures have to be right.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The certificates that the machine trusts. Waits for their file.
fn roots() -> Result<RootCertStore, String> {
    let named = std::env::var_os(TRUSTED).map(PathBuf::from);
    let places = named.into_iter().chain(PLACES.map(PathBuf::from));
    let none = || format!("no certificates are trusted here; {TRUSTED} names a file of them");
    let text = places.into_iter().find_map(|path| std::fs::read(path).ok()).ok_or_else(none)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&text).flatten());
    if roots.is_empty() { Err(none()) } else { Ok(roots) }
}

fn config(roots: Option<RootCertStore>) -> Result<ClientConfig, String> {
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&[&version::TLS13]);
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(match roots {
        Some(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth(),
    })
}

fn late(what: &str) -> String {
    format!("{what} takes too long")
}

impl Client {
    /// Sends JSON to a receiver.
    ///
    /// # Errors
    /// Why it did not take it.
    pub async fn post(
        &self,
        to: &Receiver,
        verify: bool,
        headers: &[Header],
        body: Bytes,
    ) -> Result<(), Failure> {
        let connecting = timeout(CONNECTS, async {
            let stream = self.connect(&to.host, to.port).await?;
            let stream: Box<dyn Connection> = if to.tls {
                let name = ServerName::try_from(to.host.clone());
                let name = name.map_err(|_| "its name can't be verified".to_owned())?;
                let connector = TlsConnector::from(self.config(verify).await?);
                let stream = connector.connect(name, stream).await;
                Box::new(stream.map_err(|error| format!("TLS: {error}"))?)
            } else {
                Box::new(stream)
            };
            Ok::<_, String>(stream)
        });
        let stream = connecting.await.map_err(|_| late("the connection"))??;
        let request = request(to, headers, body)?;
        timeout(ANSWERS, exchange(stream, request)).await.map_err(|_| late("the answer"))?
    }

    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        let addresses: Vec<SocketAddr> = match host.parse() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => self.look_up(host.to_owned(), port).await?,
        };
        let mut problem = format!("{host} has no address");
        for address in addresses.into_iter().take(4) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => problem = format!("{address}: {error}"),
            }
        }
        Err(problem)
    }

    /// The addresses of a name. A lookup that nobody waits for any more counts until it is over.
    async fn look_up(&self, host: String, port: u16) -> Found {
        let found = {
            let mut under_way = lock(&self.lookups);
            if let Some(found) = under_way.get(&host) {
                Ok(found.clone())
            } else if under_way.len() >= LOOKUPS {
                Err("too many names are being looked up".to_owned())
            } else {
                let (tell, found) = watch::channel(None);
                under_way.insert(host.clone(), found.clone());
                let (lookups, host) = (self.lookups.clone(), host.clone());
                tokio::spawn(async move {
                    let all = tokio::net::lookup_host((host.as_str(), 0)).await;
                    lock(&lookups).remove(&host);
                    tell.send_replace(Some(all.map(Iterator::collect).map_err(|e| e.to_string())));
                });
                Ok(found)
            }
        };
        let mut found = found?;
        let found = found.wait_for(Option::is_some).await.map_err(|error| error.to_string())?;
        let addresses = found.clone().unwrap_or_else(|| Ok(Vec::new()))?;
        Ok(addresses.into_iter().map(|found| SocketAddr::new(found.ip(), port)).collect())
    }

    /// How TLS is spoken.
    async fn config(&self, verify: bool) -> Result<Arc<ClientConfig>, String> {
        if !verify {
            return config(None).map(Arc::new);
        }
        let known = lock(&self.trusting).clone();
        if let Some((_, config)) = known.filter(|(since, _)| since.elapsed() < FRESH) {
            return Ok(config);
        }
        let roots = tokio::task::spawn_blocking(roots).await;
        let roots = roots.map_err(|error| error.to_string())??;
        let config = Arc::new(config(Some(roots))?);
        let fresh = Some((Instant::now(), config.clone()));
        *lock(&self.trusting) = fresh;
        Ok(config)
    }
}

/// A connection, with TLS or without.
trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection for S {}

fn request(to: &Receiver, headers: &[Header], body: Bytes) -> Result<Request<Full<Bytes>>, String> {
    let mut builder = Request::post(&to.path)
        .header(HOST, &to.authority)
        .header(CONTENT_TYPE, "application/json;charset=utf-8")
        .header("odata-version", "4.0")
        .header(CONNECTION, "close");
    for (name, value) in headers {
        let name = HeaderName::try_from(name.as_str());
        let value = HeaderValue::try_from(value.reveal());
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err("a header can't be sent".to_owned());
        };
        value.set_sensitive(true);
        builder = builder.header(name, value);
    }
    builder.body(Full::new(body)).map_err(|_| "its path can't be asked for".to_owned())
}

async fn exchange(
    stream: Box<dyn Connection>,
    request: Request<Full<Bytes>>,
) -> Result<(), Failure> {
    let failed = |error: hyper::Error| format!("no answer: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let mut answer = pin!(sender.send_request(request));
    let response = tokio::select! {
        biased;
        response = &mut answer => response,
        // The answer may have been its last act.
        _ = connection => answer.await,
    };
    let response = response.map_err(failed)?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status => {
            let is_of_content = matches!(status.as_u16(), 400 | 413 | 422);
            Err(Failure { why: format!("it answers {status}"), is_of_content })
        }
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
