//! A daemon over the network: HTTPS with a certificate whose key is known.
//!
//! Names and ends of certificates count for nothing here: the certificate has the key of the one
//! that a person agreed to, or it is refused. The daemon keeps its key when it renews its
//! certificate.
//!
//! Invariants
//! - Nothing is sent before the server has shown that it has the key of the pinned certificate.
//! - TLS 1.3, and nothing older.

use crate::logins::Login;
use crate::output::Problem;
use control::certificate;
use core::fmt;
use redfish::messages as say;
use redfish::view::Certificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme, version};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a server may take until it has shown its certificate.
const PATIENCE: Duration = Duration::from_secs(10);

/// The port of HTTPS.
const PORT: u16 = 443;

/// Where a daemon serves HTTPS.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Url {
    host: String,
    port: u16,
}

impl Url {
    /// Reads what a person typed: `https://HOST:PORT`, of which all but the host can be left out.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let wrong = |why: &str| Problem::new(&say::BAD_URL, &[&text, &why]);
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
            Some(_) => return Err(wrong("its scheme is not https")),
            None => text,
        };
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !matches!(path, "" | "redfish" | "redfish/" | "redfish/v1" | "redfish/v1/") {
            return Err(wrong("it has a path"));
        }
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => {
                host.parse::<Ipv6Addr>().map_err(|_| wrong("its address is none"))?;
                (host, port.strip_prefix(':').or(port.is_empty().then_some("")))
            }
            None => match place.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => {
                    return Err(wrong("an address of IPv6 stands in brackets"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (place, Some("")),
            },
        };
        let port = match port {
            Some("") => PORT,
            Some(port) => port.parse().map_err(|_| wrong("its port is none"))?,
            None => return Err(wrong("its port is none")),
        };
        let host = host.to_ascii_lowercase();
        ServerName::try_from(host.as_str()).map_err(|_| wrong("its host is none"))?;
        Ok(Self { host, port })
    }

    /// Host and port, as the header `Host` has them.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}", self.authority())
    }
}

/// A fingerprint as it is compared: hexadecimal digits in capitals, with colons between bytes.
pub fn fingerprint(text: &str) -> Option<String> {
    let digits: Vec<char> = text.chars().filter(|c| !matches!(c, ':' | ' ')).collect();
    if digits.len() != 64 || !digits.iter().all(char::is_ascii_hexdigit) {
        return None;
    }
    let bytes: Vec<String> = digits.chunks(2).map(|two| two.iter().collect()).collect();
    Some(bytes.join(":").to_ascii_uppercase())
}

/// Takes certificates of one key, or any, and keeps the one that it was shown.
#[derive(Debug)]
struct Pinned {
    key: Option<String>,
    shown: Mutex<Option<Certificate>>,
    provider: CryptoProvider,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = certificate::facts(own)
            .ok_or_else(|| Error::General("its certificate can't be read".to_owned()))?;
        let is_it = self.key.as_ref().is_none_or(|key| *key == shown.key);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
        match is_it {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::General("its key is another".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _own: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("it has no TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, own, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A connection to the server that somebody has logged in at.
pub async fn connect(url: &Url, login: &Login) -> Result<TlsStream<TcpStream>, Problem> {
    Ok(shake_hands(url, Some(login)).await?.0)
}

/// The certificate that a server shows. Nothing else is asked of it.
pub async fn look(url: &Url) -> Result<Certificate, Problem> {
    let (_, shown) = shake_hands(url, None).await?;
    shown.ok_or_else(|| not_reached(url, &"it shows no certificate"))
}

fn not_reached(url: &Url, why: &dyn fmt::Display) -> Problem {
    Problem::new(&say::NOT_REACHED, &[url, why])
}

async fn shake_hands(
    url: &Url,
    login: Option<&Login>,
) -> Result<(TlsStream<TcpStream>, Option<Certificate>), Problem> {
    let provider = ring::default_provider();
    let pinned = Arc::new(Pinned {
        key: login.map(|login| login.key.clone()),
        shown: Mutex::default(),
        provider: provider.clone(),
    });
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| not_reached(url, &error))?;
    let mut config =
        config.dangerous().with_custom_certificate_verifier(pinned.clone()).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(url.host.clone()).map_err(|error| not_reached(url, &error))?;
    let begun = async {
        let stream = TcpStream::connect((url.host.as_str(), url.port)).await?;
        stream.set_nodelay(true)?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    };
    let outcome = timeout(PATIENCE, begun).await;
    let shown = pinned.shown.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Some(login), Some(shown)) = (login, &shown)
        && shown.key != login.key
    {
        let args: [&dyn fmt::Display; 3] = [url, &shown.fingerprint, &login.fingerprint];
        return Err(Problem::new(&say::CERTIFICATE_CHANGED, &args));
    }
    match outcome {
        Ok(Ok(stream)) => Ok((stream, shown)),
        Ok(Err(error)) => Err(not_reached(url, &error)),
        Err(_) => Err(not_reached(url, &format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_in_every_form() {
        for (text, whole) in [
            ("https://host:8443", "https://host:8443"),
            ("HTTPS://Host", "https://host:443"),
            ("host:8443/", "https://host:8443"),
            ("192.0.2.1:1/redfish/v1", "https://192.0.2.1:1"),
            ("[::1]:8443", "https://[::1]:8443"),
            ("https://[::1]/redfish/v1/", "https://[::1]:443"),
        ] {
            assert_eq!(Url::parse(text).map(|url| url.to_string()), Ok(whole.to_owned()), "{text}");
        }
        for text in [
            "",
            "http://host",
            "https://",
            "https://host:port",
            "host:65536",
            "host/path",
            "::1:8443",
            "[::1",
            "[::1]8443",
            "[host]:1",
            "a b",
            "user@host",
        ] {
            let told = Url::parse(text).expect_err(text);
            assert!(told.is(&say::BAD_URL), "{text}: {told:?}");
        }
    }

    #[test]
    fn fingerprints_are_read_with_and_without_colons() {
        let whole = ["AB"; 32].join(":");
        for text in [&whole, &"ab".repeat(32), &["aB"; 32].join(" ")] {
            assert_eq!(fingerprint(text).as_deref(), Some(whole.as_str()), "{text}");
        }
        for text in ["", "ab", &"ab".repeat(33), &"xy".repeat(32)] {
            assert_eq!(fingerprint(text), None, "{text}");
        }
    }
}
