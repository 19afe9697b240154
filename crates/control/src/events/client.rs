//! One request to the receiver of a webhook.
//!
//! Invariants
//! - It is over within [`CONNECTS`] and [`ANSWERS`], whatever name servers and receivers do. A
//!   redirect is an answer like any other that is no success: it is not followed.
//! - Without TLS 1.3 and a certificate that the machine trusts nothing is sent to an `https` URI,
//!   unless the subscription says that certificates need not be right.
//! - No more than [`LOOKUPS`] name lookups are under way, those among them that nobody waits for.

use core::pin::pin;
use core::time::Duration;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use redfish::events::receiver::{Header, Receiver};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring::default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, version};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a lookup, a connection and a handshake may take together.
pub const CONNECTS: Duration = Duration::from_secs(10);

/// How long an answer may take.
pub const ANSWERS: Duration = Duration::from_secs(10);

/// How many name lookups may be under way.
const LOOKUPS: usize = 4;

/// How long the machine's certificates are taken for what they were.
const FRESH: Duration = Duration::from_secs(600);

/// Names a file of certificates that are trusted, for OpenSSL and for us.
const TRUSTED: &str = "SSL_CERT_FILE";

/// Where systems have such a file.
const PLACES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Who makes requests.
pub struct Client {
    lookups: Arc<Semaphore>,
    trusting: Mutex<Option<(Instant, Arc<ClientConfig>)>>,
}

impl Default for Client {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS)), trusting: Mutex::default() }
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
    let Some(text) = places.into_iter().find_map(|path| std::fs::read(path).ok()) else {
        return Err(format!("no certificates are trusted here; {TRUSTED} names a file of them"));
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&text).flatten());
    Ok(roots)
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
    /// Why it did not take it, one line.
    pub async fn post(
        &self,
        to: &Receiver,
        verify: bool,
        headers: &[Header],
        body: Bytes,
    ) -> Result<(), String> {
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
    async fn look_up(&self, host: String, port: u16) -> Result<Vec<SocketAddr>, String> {
        let permit = self.lookups.clone().acquire_owned().await;
        let permit = permit.map_err(|error| error.to_string())?;
        let looking = tokio::spawn(async move {
            let found = tokio::net::lookup_host((host, port)).await;
            drop(permit);
            found.map(Iterator::collect)
        });
        let found: std::io::Result<Vec<SocketAddr>> =
            looking.await.map_err(|error| error.to_string())?;
        found.map_err(|error| error.to_string())
    }

    /// How TLS is spoken.
    async fn config(&self, verify: bool) -> Result<Arc<ClientConfig>, String> {
        if !verify {
            return config(None).map(Arc::new);
        }
        let known = self.trusting.lock().unwrap_or_else(|e| e.into_inner()).clone();
        if let Some((_, config)) = known.filter(|(since, _)| since.elapsed() < FRESH) {
            return Ok(config);
        }
        let roots = tokio::task::spawn_blocking(roots).await;
        let roots = roots.map_err(|error| error.to_string())??;
        let config = Arc::new(config(Some(roots))?);
        let fresh = Some((Instant::now(), config.clone()));
        *self.trusting.lock().unwrap_or_else(|e| e.into_inner()) = fresh;
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
) -> Result<(), String> {
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
        status => Err(format!("it answers {status}")),
    }
}
