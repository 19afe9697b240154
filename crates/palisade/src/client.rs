//! The daemon's client: Redfish over HTTP/1.1 on its Unix socket, or by HTTPS where somebody logged
//! in, one connection for all that a command asks.
//!
//! States of the connection: none → open (with the first request) → gone, when the daemon let it
//! go, or a person is asked something, which may take longer than the daemon waits: the next
//! request opens another. A stream has a connection of its own.
//!
//! A change that takes long is answered with where its answer will be: it is asked for there until
//! it comes.
//!
//! Invariants
//! - What changes something is sent once.
//! - Nothing is waited for without a limit: a daemon that stands still is no answer.

use crate::logins::{Login, Logins};
use crate::output::Problem;
use crate::remote::{self, Url};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use redfish::messages as say;
use redfish::told::{CONFIRM_HEADER, PLAN_HEADER, Planned};
use redfish::view;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How often the answer of a change that takes long is asked for.
const AGAIN: Duration = Duration::from_millis(500);

/// How long a daemon may be silent. Its answers are of what it has in memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much longer before it answers a change: by then it has said where it will answer.
const OF_A_CHANGE: u32 = 2;

/// No answer is larger.
const MOST_BYTES: usize = 64 << 20;

/// The header that opens a session (DSP0266, "Session login").
pub const TOKEN: &str = "x-auth-token";

/// Sends requests.
type Sender = SendRequest<Full<Bytes>>;

/// Where a daemon is.
#[derive(Debug)]
enum Reach {
    /// On this machine.
    Socket(PathBuf),
    /// At a URL, where somebody logged in: read with the first connection.
    Network(Url, OnceLock<Login>),
}

/// Where the daemon is asked.
#[derive(Debug)]
pub struct Client {
    reach: Reach,
    connection: Mutex<Option<Sender>>,
    patience: Duration,
}

/// A request as it is sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Asked {
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub uri: String,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// JSON, if it has a body.
    pub body: Option<String>,
}

impl Asked {
    /// A request without headers and body.
    pub fn new(method: Method, uri: impl Into<String>) -> Self {
        Self { method, uri: uri.into(), headers: Vec::new(), body: None }
    }

    /// Reads something.
    pub fn get(uri: impl Into<String>) -> Self {
        Self::new(Method::GET, uri)
    }

    /// With a header more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A request that changes something.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    method: Method,
    uri: String,
    body: Option<Value>,
}

impl Change {
    /// Creates something, or carries an action out.
    pub fn post(uri: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, uri: uri.into(), body: Some(body) }
    }

    /// Changes properties.
    pub fn patch(uri: impl Into<String>, body: Value) -> Self {
        Self { method: Method::PATCH, uri: uri.into(), body: Some(body) }
    }

    /// Deletes something.
    pub fn delete(uri: impl Into<String>) -> Self {
        Self { method: Method::DELETE, uri: uri.into(), body: None }
    }

    fn asked(&self) -> Asked {
        let body = self.body.as_ref().map(Value::to_string);
        Asked { body, ..Asked::new(self.method.clone(), &*self.uri) }
    }
}

/// An answer whose body comes bit by bit.
pub struct Opened {
    /// It.
    pub answer: Response<Incoming>,
    /// Its connection lasts as long as it.
    _sender: Sender,
}

/// The socket that is meant: the argument, else `PALISADE_SOCKET`, else the default.
pub fn socket_or_default(argument: Option<PathBuf>) -> PathBuf {
    argument
        .or_else(|| std::env::var_os("PALISADE_SOCKET").map(PathBuf::from))
        .unwrap_or_else(|| view::DEFAULT_SOCKET.into())
}

/// Reads what an action told.
pub fn read<T: DeserializeOwned>(body: Value) -> Result<T, Problem> {
    serde_json::from_value(body).map_err(|error| broken(&error.to_string()))
}

impl Client {
    fn of(reach: Reach) -> Self {
        Self { reach, connection: Mutex::new(None), patience: PATIENCE }
    }

    /// A client of the daemon behind this socket.
    pub fn new(socket: PathBuf) -> Self {
        Self::of(Reach::Socket(socket))
    }

    /// A client of the daemon that arguments name, else variables: `PALISADE_SOCKET`, else
    /// `PALISADE_URL`.
    pub fn meant(socket: Option<PathBuf>, url: Option<&str>) -> Result<Self, Problem> {
        let variable = || std::env::var("PALISADE_URL").ok().filter(|url| !url.is_empty());
        let has_socket = socket.is_some() || std::env::var_os("PALISADE_SOCKET").is_some();
        let url = match url {
            Some(url) => Some(url.to_owned()),
            None if has_socket => None,
            None => variable(),
        };
        Ok(match url {
            Some(url) => Self::of(Reach::Network(Url::parse(&url)?, OnceLock::new())),
            None => Self::new(socket_or_default(socket)),
        })
    }

    /// A client that has this login.
    pub fn logged_in(url: Url, login: Login) -> Self {
        Self::of(Reach::Network(url, OnceLock::from(login)))
    }

    /// Whether the daemon is asked over the network: what this machine has says nothing of it.
    pub fn is_remote(&self) -> bool {
        matches!(self.reach, Reach::Network(..))
    }

    /// Whether this is the account that asks.
    pub fn is_user(&self, name: &str) -> bool {
        match &self.reach {
            Reach::Network(url, login) => login_of(url, login).is_ok_and(|own| own.user == name),
            Reach::Socket(_) => false,
        }
    }

    /// Reads a resource; a query may follow its URI.
    pub async fn get(&self, uri: &str) -> Result<Value, Problem> {
        self.call(Asked::get(uri)).await
    }

    /// Has an action carried out that changes nothing; what it tells.
    pub async fn post(&self, uri: &str, body: &Value) -> Result<Value, Problem> {
        self.change(&Change::post(uri, body.clone()), None).await
    }

    /// Makes a change, with the token of its plan if it has one; what was made or is told, or null.
    pub async fn change(&self, change: &Change, token: Option<&str>) -> Result<Value, Problem> {
        let asked = change.asked();
        self.call(match token {
            Some(token) => asked.with(CONFIRM_HEADER, token),
            None => asked,
        })
        .await
    }

    /// Asks what a change would do.
    pub async fn plan(&self, change: &Change) -> Result<Planned, Problem> {
        read(self.call(change.asked().with(PLAN_HEADER, "only")).await?)
    }

    /// Lets the connection go: the next request may come later than the daemon waits for one.
    pub async fn let_go(&self) {
        self.connection.lock().await.take();
    }

    /// As [`Client::get`]; none if it is answered with one of these.
    pub async fn get_unless(
        &self,
        uri: &str,
        but: &[StatusCode],
    ) -> Result<Option<Value>, Problem> {
        let answer = self.send(&Asked::get(uri)).await?;
        match but.contains(&answer.status()) {
            true => Ok(None),
            false => self.understood(answer).map(Some),
        }
    }

    async fn call(&self, asked: Asked) -> Result<Value, Problem> {
        let mut answer = self.send(&asked).await?;
        while answer.status() == StatusCode::ACCEPTED {
            let monitor = answer.headers().get(LOCATION).and_then(|at| at.to_str().ok());
            let monitor = monitor.ok_or_else(|| broken("it does not say where its answer is"))?;
            tokio::time::sleep(AGAIN).await;
            answer = self.send(&Asked::get(monitor)).await?;
        }
        self.understood(answer)
    }

    /// What an answer says, or why it says nothing.
    pub fn understood(&self, answer: Response<Bytes>) -> Result<Value, Problem> {
        let has_ended = answer.status() == StatusCode::UNAUTHORIZED;
        match &self.reach {
            Reach::Network(url, _) if has_ended => Err(Problem::new(&say::SESSION_ENDED, &[url])),
            _ => understood(answer),
        }
    }

    /// Asks once, and waits for the whole answer, whatever it says.
    pub async fn send(&self, asked: &Asked) -> Result<Response<Bytes>, Problem> {
        let mut connection = self.connection.lock().await;
        let mut kept = connection.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_ok()
        {
            match self.head(sender, asked).await? {
                Ok(answer) => {
                    let answer = self.whole(answer).await?;
                    *connection = kept;
                    return Ok(answer);
                }
                // The daemon may just have let it go: to ask anew changes nothing.
                Err(_) if asked.method == Method::GET => {}
                Err(error) => return Err(broken(&error.to_string())),
            }
        }
        let mut sender = self.connect().await?;
        let answer = self.head(&mut sender, asked).await?;
        let answer = self.whole(answer.map_err(|error| broken(&error.to_string()))?).await?;
        *connection = Some(sender);
        Ok(answer)
    }

    /// Asks on a connection of its own, and waits for the head of the answer.
    pub async fn open(&self, asked: &Asked) -> Result<Opened, Problem> {
        let mut sender = self.connect().await?;
        let answer = self.head(&mut sender, asked).await?;
        let answer = answer.map_err(|error| broken(&error.to_string()))?;
        Ok(Opened { answer, _sender: sender })
    }

    /// As [`Client::open`]; what is no success is why nothing was opened.
    pub async fn open_stream(&self, asked: &Asked) -> Result<Opened, Problem> {
        let opened = self.open(asked).await?;
        if opened.answer.status().is_success() {
            return Ok(opened);
        }
        let answer = self.whole(opened.answer).await?;
        Err(self.understood(answer).err().unwrap_or_else(|| broken("its answer is not valid")))
    }

    /// Sends a request, and waits for the head of its answer.
    async fn head(
        &self,
        sender: &mut Sender,
        asked: &Asked,
    ) -> Result<hyper::Result<Response<Incoming>>, Problem> {
        let is_read = asked.method == Method::GET || asked.method == Method::HEAD;
        let patience = self.patience * if is_read { 1 } else { OF_A_CHANGE };
        let answer = timeout(patience, sender.send_request(self.request(asked)?)).await;
        answer.map_err(|_| silent(patience))
    }

    /// The whole of an answer.
    pub async fn whole(&self, answer: Response<Incoming>) -> Result<Response<Bytes>, Problem> {
        let (head, mut body) = answer.into_parts();
        let mut bytes = Vec::new();
        let next = async |body: &mut Incoming| {
            timeout(self.patience, body.frame()).await.map_err(|_| silent(self.patience))
        };
        while let Some(frame) = next(&mut body).await? {
            let frame = frame.map_err(|error| broken(&error.to_string()))?;
            bytes.extend(frame.into_data().unwrap_or_default());
            if bytes.len() > MOST_BYTES {
                return Err(broken("its answer is too large"));
            }
        }
        Ok(Response::from_parts(head, bytes.into()))
    }

    fn request(&self, asked: &Asked) -> Result<Request<Full<Bytes>>, Problem> {
        let host = match &self.reach {
            Reach::Socket(_) => "palisade".to_owned(),
            Reach::Network(url, _) => url.authority(),
        };
        let mut request =
            Request::builder().method(&asked.method).uri(&*asked.uri).header(HOST, host);
        if let Reach::Network(url, login) = &self.reach
            && let Some(session) = &login_of(url, login)?.session
        {
            request = request.header(TOKEN, &session.token);
        }
        for (name, value) in &asked.headers {
            request = request.header(*name, value);
        }
        if asked.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let bytes = Bytes::from(asked.body.clone().unwrap_or_default());
        request.body(Full::new(bytes)).map_err(|error| {
            Problem::new(&say::REQUEST_WRONG, &[&format!("{} {}", asked.method, asked.uri), &error])
        })
    }

    async fn connect(&self) -> Result<Sender, Problem> {
        match &self.reach {
            Reach::Socket(socket) => {
                let stream = UnixStream::connect(socket).await;
                begin(stream.map_err(|error| not_connected(socket, &error))?).await
            }
            Reach::Network(url, login) => {
                begin(remote::connect(url, login_of(url, login)?).await?).await
            }
        }
    }
}

/// What is known of a URL.
fn login_of<'a>(url: &Url, login: &'a OnceLock<Login>) -> Result<&'a Login, Problem> {
    if let Some(login) = login.get() {
        return Ok(login);
    }
    let found = Logins::own()?.at(url)?.filter(|own| own.session.is_some());
    let found = found.ok_or_else(|| Problem::new(&say::NOT_LOGGED_IN, &[url]))?;
    Ok(login.get_or_init(|| found))
}

async fn begin(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<Sender, Problem> {
    let begun = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(|error| broken(&error.to_string()))?;
    // Its errors are those of the requests.
    tokio::spawn(connection);
    Ok(sender)
}

/// What an answer says, or why it says nothing.
pub fn understood(answer: Response<Bytes>) -> Result<Value, Problem> {
    let not_valid = || broken("its answer is not valid");
    let after = answer.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
    let after = after.and_then(|after| after.parse().ok()).unwrap_or(0);
    let (status, bytes) = (answer.status(), answer.into_body());
    let body = match bytes.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&bytes).map_err(|_| not_valid())?,
    };
    if status.is_success() {
        return Ok(body);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE && body.is_null() {
        return Err(Problem::new(&say::TOO_MANY_CLIENTS, &[]).not_before(after));
    }
    let error = redfish::error::read(status.as_u16(), &body);
    let problem = error.map_or_else(not_valid, Problem::from);
    // What it did not do as nobody confirmed it, or as it is no longer as it was planned.
    let planned = serde_json::from_value::<Planned>(body).ok();
    Err(problem.not_before(after).with_plan(planned.map(|planned| planned.plan.into())))
}

/// The daemon's answer is none.
pub fn broken(what: &str) -> Problem {
    Problem::new(&say::NO_ANSWER, &[&what])
}

/// The daemon, or the network, stands still.
fn silent(patience: Duration) -> Problem {
    let advice = "see whether the daemon stands still: systemctl status palisade, or its log; \
                  whether a change was made is seen with: palisade status";
    broken(&format!("nothing came for {} s", patience.as_secs())).advise(advice)
}

fn not_connected(socket: &Path, error: &std::io::Error) -> Problem {
    let place = socket.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Problem::new(&say::NO_DAEMON, &[&place])
        }
        ErrorKind::WouldBlock => broken("it takes no connection"),
        ErrorKind::PermissionDenied => Problem::new(&say::SOCKET_FORBIDDEN, &[&place, error]),
        _ => Problem::new(&say::SOCKET_FAILED, &[&place, error]),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
