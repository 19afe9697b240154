//! The management service that shelves have: Redfish (DSP0266) over HTTPS.
//!
//! What it shows and changes is what `shelf ctl` shows and changes: a request becomes an
//! [`Ask`](crate::ask::Ask), and what is shown is made of the answer to one.
//!
//! - `tree`: the resources. `change`: what requests ask for. `identity`: certificate and password.
//! - Here: connections, who may do what, and streams of events.
//!
//! Invariants
//! - Nothing but the root is told without the password.
//! - A stream is told of each change that is made after its first comment. One that takes what it
//!   is told too slowly is told that the chassis has changed, which stands for all.
//! - Connections cost the shelf's own cores nothing: the service has a thread of its own.

mod change;
mod identity;
mod tree;

use crate::ask::{Answer, Ask};
use crate::error::ShelfError;
use crate::rack::{Rack, Shelf};
use crate::state::Shown;
use base64ct::{Base64, Encoding as _};
use change::Refusal;
pub(crate) use change::origin;
use core::convert::Infallible;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use identity::Identity;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tree::{Facts, ROOT, STREAM};

/// Most connections.
const CONNECTIONS: usize = 64;
/// Most bytes of a request's body.
const BODY: usize = 64 << 10;
/// How long a handshake may take, and a request's head.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a comment is sent where there is nothing to tell.
const QUIET: Duration = Duration::from_secs(15);
/// How long nobody is let in after an error, such as too many open files.
const REST: Duration = Duration::from_millis(100);
/// Changes that are kept for a stream.
pub(crate) const KEPT: usize = 64;

/// How the service is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// Where.
    pub url: String,
    /// The SHA-256 of its certificate: capitals, with colons between bytes.
    pub fingerprint: String,
    /// Who may use it.
    pub user: String,
    /// And what they know.
    pub password: String,
}

/// The service. It ends when this is dropped.
pub struct Service {
    access: Access,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What all connections share.
struct Site {
    rack: Arc<Rack>,
    tls: TlsAcceptor,
    /// The hash of what a client sends that may use it.
    wanted: [u8; 32],
    places: Arc<Semaphore>,
}

impl Service {
    /// Begins to serve.
    ///
    /// # Errors
    /// What the system refuses, or what is in the folder and can't be used.
    pub fn start(shelf: &Shelf, listen: SocketAddr) -> Result<Self, ShelfError> {
        let rack = shelf.rack().clone();
        let folder: Option<&Path> = rack.plan().folder.as_deref();
        let identity = Identity::of(&rack.plan().serial, folder, listen.ip())?;
        let of = |error| ShelfError::of(format_args!("the management service at {listen}"), &error);
        let listener = std::net::TcpListener::bind(listen).map_err(of)?;
        listener.set_nonblocking(true).map_err(of)?;
        let access = Access {
            url: format!("https://{}", listener.local_addr().map_err(of)?),
            fingerprint: identity.fingerprint,
            user: identity::USER.to_owned(),
            password: identity.password,
        };
        let known = format!("{}:{}", access.user, access.password);
        let site = Arc::new(Site {
            rack,
            tls: identity.tls.into(),
            wanted: Sha256::digest(known.as_bytes()).into(),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(of)?;
        let (over, is_over) = oneshot::channel();
        let named = std::thread::Builder::new().name("redfish".to_owned());
        let thread = named.spawn(move || {
            // With the runtime all connections end.
            runtime.block_on(async {
                tokio::select! {
                    () = accept(&site, listener) => {}
                    _ = is_over => {}
                }
            });
        });
        Ok(Self { access, over: Some(over), thread: Some(thread.map_err(of)?) })
    }

    /// How it is reached.
    pub fn access(&self) -> &Access {
        &self.access
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.over.take());
        self.thread.take().map(JoinHandle::join);
    }
}

async fn accept(site: &Arc<Site>, listener: std::net::TcpListener) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let Ok(place) = site.places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        let site = site.clone();
        tokio::spawn(async move {
            serve(&site, stream).await;
            drop(place);
        });
    }
}

async fn serve(site: &Arc<Site>, stream: TcpStream) {
    // Who hangs there is nobody's loss.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(PATIENCE, site.tls.accept(stream)).await else { return };
    let service =
        service_fn(|request| async move { Ok::<_, Infallible>(answer(site, request).await) });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    // Why a client has gone is nothing that anyone could do something about.
    let _ = served.await;
}

/// What is answered: whole, or a stream of events.
enum Content {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl hyper::body::Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Stream(parts) => ready!(parts.poll_recv(cx)),
        };
        Poll::Ready(part.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// An answer; empty without a value.
fn told(status: StatusCode, value: Option<&Value>) -> Response<Content> {
    let text = value.map(|value| Bytes::from(format!("{value:#}\n")));
    let mut response = Response::new(Content::Whole(text));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response.headers_mut().insert("odata-version", HeaderValue::from_static("4.0"));
    response
}

fn refused(refusal: &Refusal) -> Response<Content> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    let error = json!({"code": "Base.1.19.GeneralError", "message": refusal.message});
    told(status, Some(&json!({"error": error})))
}

async fn answer(site: &Arc<Site>, request: Request<Incoming>) -> Response<Content> {
    let outcome = match site.is_let_in(&request) {
        true => site.answer(request).await,
        false => {
            let mut response = refused(&Refusal::new(401, "give the user's name and password"));
            let realm = HeaderValue::from_static("Basic realm=\"Palisade shelf\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, realm);
            Ok(response)
        }
    };
    outcome.unwrap_or_else(|refusal| refused(&refusal))
}

impl Site {
    /// Whether a request may be answered: the root is anybody's.
    fn is_let_in(&self, request: &Request<Incoming>) -> bool {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let is_root = matches!(request.uri().path().trim_end_matches('/'), "/redfish" | ROOT);
        if is_read && is_root {
            return true;
        }
        let header = request.headers().get(AUTHORIZATION).and_then(|own| own.to_str().ok());
        let known = header.and_then(|text| text.split_once(' ')).and_then(|(scheme, rest)| {
            let is_basic = scheme.eq_ignore_ascii_case("basic");
            is_basic.then(|| Base64::decode_vec(rest.trim()).ok()).flatten()
        });
        known.is_some_and(|known| Sha256::digest(&known)[..].ct_eq(&self.wanted).into())
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Content>, Refusal> {
        let path = request.uri().path().trim_end_matches('/').to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if path == "/redfish" && is_read {
            return Ok(told(StatusCode::OK, Some(&json!({"v1": "/redfish/v1/"}))));
        }
        if path == STREAM && *request.method() == Method::GET {
            return Ok(self.stream());
        }
        let own = tree::words(&path).unwrap_or_default();
        let words: Vec<&str> = own.iter().map(String::as_str).collect();
        let shown = self.shown()?;
        let facts = Facts { plan: self.rack.plan(), shown: &shown };
        let value = tree::resource(&facts, &path);
        let is_action = change::action(&words).is_some();
        let methods: Vec<&str> = match &value {
            _ if is_action => vec!["POST"],
            Some(_) => ["GET", "HEAD"].into_iter().chain(change::method(&words)).collect(),
            None => return Err(Refusal::new(404, format!("there is no {path}"))),
        };
        let method = request.method().clone();
        if let (true, Some(value)) = (is_read, value) {
            return Ok(told(StatusCode::OK, Some(&expanded(&facts, value, &query))));
        }
        if !methods.contains(&method.as_str()) {
            let allowed = methods.join(", ");
            let mut response =
                refused(&Refusal::new(405, format!("{path} has no {method}, only {allowed}")));
            response.headers_mut().extend(HeaderValue::from_str(&allowed).map(|own| (ALLOW, own)));
            return Ok(response);
        }
        let body = Limited::new(request.into_body(), BODY).collect();
        let body = timeout(PATIENCE, body).await;
        let body = body.ok().and_then(Result::ok).ok_or_else(|| {
            Refusal::new(400, format!("the body does not come, or has more than {BODY} bytes"))
        })?;
        let ask = change::asked(&facts, &words, &body.to_bytes())?;
        self.carry_out(&ask, is_action || method == Method::DELETE)
    }

    /// Has the shelf do what is asked, and tells what came of it.
    fn carry_out(&self, ask: &Ask, is_bare: bool) -> Result<Response<Content>, Refusal> {
        self.rack.ask(ask).map_err(|error| match error {
            ShelfError::Usage(why) => Refusal::new(400, why),
            ShelfError::Failed(why) => Refusal::new(500, why),
        })?;
        if is_bare {
            return Ok(told(StatusCode::NO_CONTENT, None));
        }
        let path = self.rack.origin(ask);
        let shown = self.shown()?;
        let value = tree::resource(&Facts { plan: self.rack.plan(), shown: &shown }, &path);
        let is_new = matches!(ask, Ask::AddZone(_));
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        let mut response = told(status, value.as_ref());
        if is_new {
            response.headers_mut().extend(HeaderValue::from_str(&path).map(|own| (LOCATION, own)));
        }
        Ok(response)
    }

    fn shown(&self) -> Result<Shown, Refusal> {
        match self.rack.ask(&Ask::Show) {
            Ok(Answer::Shown(shown)) => Ok(shown),
            _ => Err(Refusal::new(503, "the shelf has ended")),
        }
    }

    /// Tells a client of changes from now on.
    fn stream(&self) -> Response<Content> {
        let (parts, own) = mpsc::channel(4);
        tokio::spawn(tell(self.rack.news(), parts));
        let mut response = Response::new(Content::Stream(own));
        let kind = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// Tells a stream of each change until its client has gone.
async fn tell(mut news: broadcast::Receiver<String>, parts: mpsc::Sender<Bytes>) {
    let (mut part, mut count) = (Bytes::from_static(b":\n\n"), 0_u64);
    loop {
        if parts.send(part).await.is_err() {
            return;
        }
        part = tokio::select! {
            () = parts.closed() => return,
            () = sleep(QUIET) => Bytes::from_static(b":\n\n"),
            origin = news.recv() => {
                count += 1;
                match origin {
                    Ok(origin) => event(count, &origin),
                    Err(RecvError::Lagged(_)) => event(count, &format!("{ROOT}/Chassis/shelf")),
                    Err(RecvError::Closed) => return,
                }
            }
        };
    }
}

fn event(number: u64, origin: &str) -> Bytes {
    let id = number.to_string();
    let event = json!({
        "@odata.type": "#Event.v1_11_0.Event",
        "Id": id,
        "Name": "Change",
        "Events": [{
            "EventId": id,
            "MemberId": "0",
            "MessageId": "ResourceEvent.1.4.ResourceChanged",
            "Message": format!("{origin} has changed"),
            "MessageSeverity": "OK",
            "OriginOfCondition": {"@odata.id": origin},
        }],
    });
    format!("id: {id}\ndata: {event}\n\n").into()
}

/// A collection with its children, where the query asks for them (DSP0266, "The $expand query
/// parameter").
fn expanded(facts: &Facts<'_>, mut value: Value, query: &str) -> Value {
    let wants =
        query.split('&').any(|own| own.starts_with("$expand=") || own.starts_with("%24expand="));
    if let Some(children) = value.get_mut("Members").and_then(Value::as_array_mut).filter(|_| wants)
    {
        for child in children {
            let whole = child["@odata.id"].as_str().and_then(|path| tree::resource(facts, path));
            *child = whole.unwrap_or_else(|| child.take());
        }
    }
    value
}

#[cfg(test)]
mod tests;
