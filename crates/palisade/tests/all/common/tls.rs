//! Clients of the daemon's HTTPS: they trust the certificate in its state directory, and nothing
//! else.

use super::place::Place;
use super::{LIMIT, until};
use crate::redfish::{Answer, get};
use base64ct::{Base64, Encoding};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// What the daemon speaks on the network.
pub const PROTOCOLS: &str = "/redfish/v1/Managers/palisade/NetworkProtocol";

/// Where a daemon serves HTTPS.
pub struct Tls {
    pub port: u16,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Waits until the daemon of this place, whose state is in `state`, serves it.
    pub fn of(place: &Place) -> Self {
        let port = until("HTTPS", LIMIT, || {
            let https = get(place, PROTOCOLS)["HTTPS"].clone();
            https["Port"].as_u64().filter(|_| https["ProtocolEnabled"] == true)
        });
        let pem = std::fs::read_to_string(place.file("state/https.pem")).expect("it is kept");
        Self::trusting(port, &pem)
    }

    /// The same server, by a client that trusts these certificates.
    pub fn trusting(port: u64, pem: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.expect("PEM")).expect("a certificate");
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { port: u16::try_from(port).expect("a port"), config: Arc::new(config) }
    }

    /// A connection without TLS, yet.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the daemon listens");
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        stream.set_write_timeout(Some(LIMIT)).expect("set");
        stream
    }

    /// A connection that goes on from one request to the next.
    pub fn client(&self) -> Client<StreamOwned<ClientConnection, TcpStream>> {
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(self.config.clone(), name).expect("a client");
        Client(StreamOwned::new(connection, self.connect()))
    }

    /// What one request is answered, on a connection of its own.
    pub fn ask(&self, asked: (&str, &str), headers: &[(&str, &str)], body: &Value) -> Answer {
        self.client().ask(asked, headers, body).expect("an answer")
    }
}

/// A client of any stream.
pub struct Client<S>(pub S);

impl<S: Read + Write> Client<S> {
    /// What a request is answered; none if the daemon has gone.
    pub fn ask(
        &mut self,
        (method, uri): (&str, &str),
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Option<Answer> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let more: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{method} {uri} HTTP/1.1\r\nhost: palisade\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{more}\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).and_then(|()| self.0.flush()).ok()?;
        self.answer(method != "HEAD")
    }

    fn answer(&mut self, has_body: bool) -> Option<Answer> {
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        loop {
            if let Some(answer) = Answer::read(&bytes) {
                let length = answer.header("content-length").parse().unwrap_or(0);
                if !has_body || answer.body.len() >= length {
                    return Some(answer);
                }
            }
            let count = self.0.read(&mut part).ok().filter(|count| *count > 0)?;
            bytes.extend(part.iter().take(count));
        }
    }
}

/// The value of `Authorization` for a name and a password.
pub fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", Base64::encode_string(format!("{name}:{password}").as_bytes()))
}
