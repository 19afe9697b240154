//! A plain client of the daemon's HTTPS: one connection, one request at a time, and streams.
//!
//! It trusts the certificate in the daemon's state directory and nothing else. What it is answered
//! is read to its last byte and not looked into while time is taken.

use crate::error::BenchError;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the daemon may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The name in the daemon's certificate.
const NAME: &str = "localhost";

pub fn failed(what: &dyn Display, why: &dyn Display) -> BenchError {
    BenchError::Daemon(format!("{what}: {why}"))
}

/// Where the daemon serves HTTPS.
#[derive(Clone)]
pub struct Server {
    port: u16,
    config: Arc<ClientConfig>,
}

/// What a request is answered.
pub struct Answer {
    head: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A connection.
pub struct Client {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    token: Option<String>,
}

impl Server {
    /// The server at this port of the loopback device, with this certificate.
    pub fn new(port: u16, pem: &[u8]) -> Result<Self, BenchError> {
        let wrong = |error: &dyn Display| failed(&"its certificate", error);
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| wrong(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { port, config: Arc::new(config) })
    }

    /// A connection, which shows this token of a session, if any.
    pub fn connect(&self, token: Option<&str>) -> Result<Client, BenchError> {
        let wrong = |error: &dyn Display| failed(&"a connection", error);
        let name = ServerName::try_from(NAME).map_err(|error| wrong(&error))?;
        let tls =
            ClientConnection::new(self.config.clone(), name).map_err(|error| wrong(&error))?;
        let open = || {
            let stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = open().map_err(|error: std::io::Error| wrong(&error))?;
        let stream = BufReader::with_capacity(64 << 10, StreamOwned::new(tls, stream));
        Ok(Client { stream, token: token.map(str::to_owned) })
    }
}

impl Answer {
    /// A header; empty if absent.
    pub fn header(&self, name: &str) -> &str {
        let found = self.head.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    /// The body.
    pub fn json(&self) -> Result<Value, BenchError> {
        serde_json::from_slice(&self.body).map_err(|error| failed(&"its answer", &error))
    }
}

impl Client {
    /// Reads a resource.
    pub fn get(&mut self, uri: &str) -> Result<Answer, BenchError> {
        self.ask("GET", uri, None)
    }

    /// Sends a request, which has to succeed.
    pub fn ask(
        &mut self,
        method: &str,
        uri: &str,
        body: Option<&Value>,
    ) -> Result<Answer, BenchError> {
        let what = format!("{method} {uri}");
        let answer = self.send(method, uri, body).and_then(|()| self.answer());
        let (status, answer) = answer.map_err(|error| failed(&what, &error))?;
        match status {
            200..=299 => Ok(answer),
            _ => Err(failed(&what, &format!("{status} {}", String::from_utf8_lossy(&answer.body)))),
        }
    }

    fn send(&mut self, method: &str, uri: &str, body: Option<&Value>) -> std::io::Result<()> {
        let mut text = format!("{method} {uri} HTTP/1.1\r\nhost: {NAME}\r\n");
        if let Some(token) = &self.token {
            text.push_str(&format!("x-auth-token: {token}\r\n"));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        if !body.is_empty() {
            let length = body.len();
            text.push_str(&format!(
                "content-type: application/json\r\ncontent-length: {length}\r\n"
            ));
        }
        text.push_str("\r\n");
        text.push_str(&body);
        let stream = self.stream.get_mut();
        stream.write_all(text.as_bytes())?;
        stream.flush()
    }

    fn answer(&mut self) -> std::io::Result<(u16, Answer)> {
        let (status, head) = self.head()?;
        let length = head.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, Answer { head, body }))
    }

    fn head(&mut self) -> std::io::Result<(u16, Vec<(String, String)>)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other("its answer is no HTTP"))?;
        let mut head = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            head.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok((status, head))
    }

    /// The next line, without its end.
    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    /// Opens a stream of events, which a thread of its own reads.
    pub fn listen(mut self, uri: &str) -> Result<Stream, BenchError> {
        let wrong = |error: &dyn Display| failed(&"a stream of events", error);
        self.send("GET", uri, None).map_err(|error| wrong(&error))?;
        let (status, _) = self.head().map_err(|error| wrong(&error))?;
        if status != 200 {
            return Err(wrong(&status));
        }
        // Its first part is a comment: the stream is open then.
        while self.line().map_err(|error| wrong(&error))? != ":" {}
        let socket = self.stream.get_ref().sock.try_clone().map_err(|error| wrong(&error))?;
        let (sender, events) = mpsc::channel();
        let thread = std::thread::spawn(move || self.tell(&sender));
        Ok(Stream { socket, events, thread: Some(thread) })
    }

    /// Tells of each event that is read, to the end of the stream.
    fn tell(&mut self, events: &Sender<(Instant, String)>) {
        while let Ok(line) = self.line() {
            let now = Instant::now();
            let Some(data) = line.strip_prefix("data:") else { continue };
            let data: Value = serde_json::from_str(data).unwrap_or_default();
            for event in data["Events"].as_array().into_iter().flatten() {
                let message = event["MessageId"].as_str().unwrap_or_default();
                let name = message.rsplit('.').next().unwrap_or_default().to_owned();
                // Nobody listens any more only at the end.
                let _ = events.send((now, name));
            }
        }
    }
}

/// A stream of events; it ends when it is dropped.
pub struct Stream {
    socket: TcpStream,
    events: Receiver<(Instant, String)>,
    thread: Option<JoinHandle<()>>,
}

impl Stream {
    /// When the next event of this name was read.
    pub fn wait_for(&self, name: &str) -> Result<Instant, BenchError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok((at, own)) if own == name => return Ok(at),
                Ok(_) => {}
                Err(error) => return Err(failed(&format!("event {name}"), &error)),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to end.
        let _ = self.socket.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // A panic of it was told.
            let _ = thread.join();
        }
    }
}
