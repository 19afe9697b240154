//! The daemon's client: Redfish over HTTP/1.1 on its Unix socket, one connection for all that a
//! command asks.
//!
//! States of the connection: none → open (with the first request) → gone, when the daemon let it
//! go, or a person is asked something, which may take longer than the daemon waits: the next
//! request opens another.
//!
//! A change that takes long is answered with where its answer will be: it is asked for there until
//! it comes.
//!
//! Invariant: what changes something is sent once.

use crate::output::Problem;
use control::api;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use redfish::messages as say;
use redfish::told::{CONFIRM_HEADER, PLAN_HEADER, Planned};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// How often the answer of a change that takes long is asked for.
const AGAIN: Duration = Duration::from_millis(500);

/// Where the daemon is asked.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
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
}

/// The socket that is meant: the argument, else `PALISADE_SOCKET`, else the default.
pub fn socket_or_default(argument: Option<PathBuf>) -> PathBuf {
    argument
        .or_else(|| std::env::var_os("PALISADE_SOCKET").map(PathBuf::from))
        .unwrap_or_else(|| api::DEFAULT_SOCKET.into())
}

/// Reads what an action told.
pub fn read<T: DeserializeOwned>(body: Value) -> Result<T, Problem> {
    serde_json::from_value(body).map_err(|error| broken(&error.to_string()))
}

impl Client {
    /// A client of the daemon behind this socket.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket, connection: Mutex::new(None) }
    }

    /// Reads a resource; a query may follow its URI.
    pub async fn get(&self, uri: &str) -> Result<Value, Problem> {
        self.call(&Method::GET, uri, None, None).await
    }

    /// Has an action carried out that changes nothing; what it tells.
    pub async fn post(&self, uri: &str, body: &Value) -> Result<Value, Problem> {
        self.change(&Change::post(uri, body.clone()), None).await
    }

    /// Makes a change, with the token of its plan if it has one; what was made or is told, or null.
    pub async fn change(&self, change: &Change, token: Option<&str>) -> Result<Value, Problem> {
        let header = token.map(|token| (CONFIRM_HEADER, token));
        self.call(&change.method, &change.uri, change.body.as_ref(), header).await
    }

    /// Asks what a change would do.
    pub async fn plan(&self, change: &Change) -> Result<Planned, Problem> {
        let header = Some((PLAN_HEADER, "only"));
        read(self.call(&change.method, &change.uri, change.body.as_ref(), header).await?)
    }

    /// Lets the connection go: the next request may come later than the daemon waits for one.
    pub async fn let_go(&self) {
        self.connection.lock().await.take();
    }

    /// As [`Client::get`]; none if the answer would be larger than the daemon gives.
    pub async fn get_unless_too_large(&self, uri: &str) -> Result<Option<Value>, Problem> {
        let answer = self.send(&Method::GET, uri, None, None).await?;
        match answer.status() {
            StatusCode::INSUFFICIENT_STORAGE => Ok(None),
            _ => understood(answer).map(Some),
        }
    }

    async fn call(
        &self,
        method: &Method,
        uri: &str,
        body: Option<&Value>,
        header: Option<(&str, &str)>,
    ) -> Result<Value, Problem> {
        let mut answer = self.send(method, uri, body, header).await?;
        while answer.status() == StatusCode::ACCEPTED {
            let monitor = answer.headers().get(LOCATION).and_then(|at| at.to_str().ok());
            let monitor = monitor.ok_or_else(|| broken("it does not say where its answer is"))?;
            tokio::time::sleep(AGAIN).await;
            answer = self.send(&Method::GET, monitor, None, None).await?;
        }
        understood(answer)
    }

    /// Asks once, and waits for the whole answer.
    async fn send(
        &self,
        method: &Method,
        uri: &str,
        body: Option<&Value>,
        header: Option<(&str, &str)>,
    ) -> Result<Response<Bytes>, Problem> {
        let request = || {
            let mut request = Request::builder().method(method).uri(uri).header(HOST, "palisade");
            if let Some((name, value)) = header {
                request = request.header(name, value);
            }
            let bytes = match body {
                Some(body) => {
                    request = request.header(CONTENT_TYPE, "application/json");
                    Bytes::from(body.to_string())
                }
                None => Bytes::new(),
            };
            request.body(Full::new(bytes)).map_err(|error| broken(&error.to_string()))
        };
        let mut connection = self.connection.lock().await;
        let mut kept = connection.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_ok()
        {
            match answered(sender, request()?).await {
                Ok(answer) => {
                    *connection = kept;
                    return Ok(answer);
                }
                // The daemon may just have let it go: to ask anew changes nothing.
                Err(_) if method == Method::GET => {}
                Err(error) => return Err(broken(&error.to_string())),
            }
        }
        let mut sender = self.connect().await?;
        let answer = answered(&mut sender, request()?).await;
        let answer = answer.map_err(|error| broken(&error.to_string()))?;
        *connection = Some(sender);
        Ok(answer)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Problem> {
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| not_connected(&self.socket, &error))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(&error.to_string()))?;
        // Its errors are those of the requests.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// Sends a request, and waits for the whole answer.
async fn answered(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> hyper::Result<Response<Bytes>> {
    let (head, body) = sender.send_request(request).await?.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

fn understood(answer: Response<Bytes>) -> Result<Value, Problem> {
    let not_valid = || broken("its answer is not valid");
    let (status, bytes) = (answer.status(), answer.into_body());
    let body = match bytes.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&bytes).map_err(|_| not_valid())?,
    };
    if status.is_success() {
        return Ok(body);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE && body.is_null() {
        return Err(Problem::new(&say::TOO_MANY_CLIENTS, &[]));
    }
    let error = redfish::error::read(status.as_u16(), &body);
    let problem = error.map_or_else(not_valid, Problem::from);
    // What it did not do as nobody confirmed it, or as it is no longer as it was planned.
    let planned = serde_json::from_value::<Planned>(body).ok();
    Err(problem.with_plan(planned.map(|planned| planned.plan.into())))
}

fn broken(what: &str) -> Problem {
    Problem::new(&say::NO_ANSWER, &[&what])
}

fn not_connected(socket: &Path, error: &std::io::Error) -> Problem {
    let place = socket.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Problem::new(&say::NO_DAEMON, &[&place])
        }
        ErrorKind::PermissionDenied => Problem::new(&say::SOCKET_FORBIDDEN, &[&place, error]),
        _ => Problem::new(&say::SOCKET_FAILED, &[&place, error]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirm;
    use crate::output::{How, Output};
    use redfish::error::Refusal;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    /// Reads a request up to its end, which is that of a body of JSON or of the headers.
    async fn asked(stream: &mut UnixStream) -> String {
        let mut text = String::new();
        let mut bytes = [0; 4096];
        loop {
            let read = stream.read(&mut bytes).await.expect("reads");
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
            if text.ends_with("\r\n\r\n") || text.ends_with('}') {
                return text;
            }
            assert!(read > 0, "the client goes within a request: {text}");
        }
    }

    async fn answer(stream: &mut UnixStream, status: &str, body: &Value) {
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await.expect("written");
    }

    /// A daemon of this listener, and somebody who asks it.
    fn talk(daemon: impl AsyncFnOnce(UnixListener), asks: impl AsyncFnOnce(Client)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let dir = tempfile::tempdir().expect("a directory");
            let socket = dir.path().join("socket");
            let listener = UnixListener::bind(&socket).expect("bound");
            tokio::join!(daemon(listener), asks(Client::new(socket)));
        });
    }

    #[test]
    fn requests_share_a_connection_until_the_daemon_lets_it_go() {
        let daemon = async |listener: UnixListener| {
            let (mut stream, _) = listener.accept().await.expect("comes");
            assert!(asked(&mut stream).await.starts_with("GET /a HTTP/1.1"));
            answer(&mut stream, "200 OK", &json!({"A": 1})).await;
            let planned = asked(&mut stream).await;
            assert!(planned.contains("palisade-plan: only") && planned.ends_with(r#"{"B":2}"#));
            let refused = api::Error::new(&say::ARRAY_BUSY, &[&"scrub"]);
            answer(&mut stream, "409 Conflict", &Refusal::from(refused).body()).await;
            // The next request comes, and nobody answers it any more.
            asked(&mut stream).await;
            drop(stream);
            let (mut stream, _) = listener.accept().await.expect("comes again");
            assert!(asked(&mut stream).await.starts_with("GET /c HTTP/1.1"));
            answer(&mut stream, "200 OK", &json!({"C": 3})).await;
            // A change is not sent again.
            asked(&mut stream).await;
        };
        let asks = async |client: Client| {
            assert_eq!(client.get("/a").await, Ok(json!({"A": 1})));
            let refused = client.plan(&Change::post("/b", json!({"B": 2}))).await;
            assert_eq!(refused.err(), Some(Problem::new(&say::ARRAY_BUSY, &[&"scrub"])));
            assert_eq!(client.get("/c").await, Ok(json!({"C": 3})));
            assert!(client.change(&Change::delete("/d"), None).await.is_err());
        };
        talk(daemon, asks);
    }

    #[test]
    fn a_change_that_a_person_thinks_about_has_a_connection_of_its_own() {
        let lost = vec!["volume tank/db, 8 MiB".to_owned()];
        let plan = api::Plan { dry_run: true, lost, ..api::Plan::default() };
        let planned = serde_json::to_value(Planned::new(&plan, "t".to_owned(), 0));
        let planned = planned.expect("JSON");
        let daemon = async |listener: UnixListener| {
            let (mut stream, _) = listener.accept().await.expect("comes");
            assert!(asked(&mut stream).await.contains("palisade-plan: only"));
            answer(&mut stream, "200 OK", &planned).await;
            // Nothing comes here any more: the daemon may let it go whenever it likes.
            assert_eq!(stream.read(&mut [0; 1]).await.expect("reads"), 0);
            let (mut stream, _) = listener.accept().await.expect("comes again");
            assert!(asked(&mut stream).await.contains("palisade-confirm: t"));
            answer(&mut stream, "200 OK", &json!({"A": 1})).await;
        };
        let asks = async |client: Client| {
            let word = confirm::Word { name: "tank/db", yes: true, is_named: false };
            let how = How { dry_run: false, output: Output { json: true } };
            let change = Change::delete("/db");
            let told = confirm::destroy(&change, word, how, &client).await;
            assert_eq!(told, Ok(Some(json!({"A": 1}))));
        };
        talk(daemon, asks);
    }

    #[test]
    fn the_answer_of_a_change_that_takes_long_is_waited_for() {
        let daemon = async |listener: UnixListener| {
            let (mut stream, _) = listener.accept().await.expect("comes");
            assert!(asked(&mut stream).await.starts_with("POST /a HTTP/1.1"));
            for _ in 0..2 {
                answer(&mut stream, "202 Accepted\r\nlocation: /m", &json!({"Id": "m"})).await;
                assert!(asked(&mut stream).await.starts_with("GET /m HTTP/1.1"));
            }
            let refused = api::Error::new(&say::SOCKET_FORBIDDEN, &[&"/s", &"no"]);
            answer(&mut stream, "409 Conflict", &Refusal::from(refused).body()).await;
            asked(&mut stream).await;
            answer(&mut stream, "202 Accepted", &json!({"Id": "m"})).await;
        };
        let asks = async |client: Client| {
            let refused = client.post("/a", &json!({"A": 1})).await;
            assert_eq!(refused, Err(Problem::new(&say::SOCKET_FORBIDDEN, &[&"/s", &"no"])));
            assert!(client.post("/b", &json!({"B": 1})).await.is_err(), "it leads nowhere");
        };
        talk(daemon, asks);
    }

    #[test]
    fn what_keeps_the_daemon_from_answering_is_told_by_name() {
        let error = std::io::Error::from(ErrorKind::PermissionDenied);
        let told = not_connected(Path::new("/s"), &error);
        assert_eq!(told, Problem::new(&say::SOCKET_FORBIDDEN, &[&"/s", &error]));
        let answer = |status: StatusCode| {
            let mut answer = Response::new(Bytes::new());
            *answer.status_mut() = status;
            understood(answer)
        };
        let told = answer(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(told, Err(Problem::new(&say::TOO_MANY_CLIENTS, &[])));
        let told = answer(StatusCode::BAD_GATEWAY);
        assert_eq!(told, Err(Problem::new(&say::NO_ANSWER, &[&"its answer is not valid"])));
    }
}
