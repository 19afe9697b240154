//! Answers to Redfish requests, as HTTP has them.
//!
//! Invariant: each has the headers that DSP0266 wants of every answer.

use crate::lock::lock;
use core::pin::Pin;
use core::task::{Context, Poll};
use hyper::body::{self, Bytes, Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use redfish::error::Refusal;
use redfish::etag;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// What opens a session (DSP0266, "Session login").
pub const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// The version of OData, asked for and answered (DSP0266, "Headers").
pub const ODATA_VERSION: HeaderName = HeaderName::from_static("odata-version");

/// The only one that there is.
pub const VERSION: &str = "4.0";

/// The type of a resource.
pub const JSON: &str = "application/json;charset=utf-8";
/// The type of a schema.
pub const XML: &str = "application/xml;charset=utf-8";
/// The type of what describes the interface.
pub const YAML: &str = "application/yaml";

/// What is answered.
#[derive(Clone, Debug)]
pub enum Body {
    /// Nothing.
    Nothing,
    /// A resource, or what an action tells.
    Json(Value),
    /// A schema.
    Xml(String),
    /// A text, and its type.
    Text(&'static str, Bytes),
    /// Parts that come one after the other, and their type. Only the first who asks has them.
    Stream(&'static str, Parts),
}

/// Says whether a proxy may gather parts of an answer.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The most bytes of a part that are given away at a time: whoever sends them may copy them.
const PART_BYTES: usize = 64 << 10;

/// Parts of an answer that come one after the other. Whoever sends them waits until the client has
/// taken those before.
#[derive(Clone, Debug)]
pub struct Parts(Arc<Mutex<Option<mpsc::Receiver<Bytes>>>>);

impl Parts {
    /// Those that come here.
    pub fn new(parts: mpsc::Receiver<Bytes>) -> Self {
        Self(Arc::new(Mutex::new(Some(parts))))
    }

    fn take(&self) -> Option<mpsc::Receiver<Bytes>> {
        lock(&self.0).take()
    }
}

/// The body of an answer.
#[derive(Debug)]
pub enum Content {
    /// All of it; none once it was sent.
    Whole(Option<Bytes>),
    /// It comes in parts; and what is left of the last one.
    Parts(mpsc::Receiver<Bytes>, Bytes),
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl Content {
    /// All of it, if it does not come in parts.
    pub fn whole(self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.unwrap_or_default(),
            Self::Parts(..) => Bytes::new(),
        }
    }
}

impl body::Body for Content {
    type Data = Bytes;
    type Error = core::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Parts(parts, rest) => {
                if rest.is_empty() {
                    match core::task::ready!(parts.poll_recv(cx)) {
                        Some(part) => *rest = part,
                        None => return Poll::Ready(None),
                    }
                }
                let next = rest.split_to(rest.len().min(PART_BYTES));
                Poll::Ready(Some(Ok(Frame::data(next))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Parts(..) => SizeHint::default(),
        }
    }
}

/// An answer that is no error.
#[derive(Clone, Debug)]
pub struct Told {
    /// The status of HTTP.
    pub status: StatusCode,
    /// What was made.
    pub location: Option<String>,
    /// The ETag of the resource that is told.
    pub etag: Option<String>,
    /// What opens a session that was begun.
    pub token: Option<String>,
    /// What is told.
    pub body: Body,
}

impl Told {
    /// There is nothing to tell.
    pub fn nothing() -> Self {
        let status = StatusCode::NO_CONTENT;
        Self { status, location: None, etag: None, token: None, body: Body::Nothing }
    }

    /// Who asks has it already (RFC 9110, section 15.4.5).
    #[must_use]
    pub fn known(self) -> Self {
        Self { status: StatusCode::NOT_MODIFIED, body: Body::Nothing, ..self }
    }

    /// An object, or a resource with its ETag.
    pub fn json(value: Value) -> Self {
        let etag = etag::read(&value).map(str::to_owned);
        Self { status: StatusCode::OK, etag, body: Body::Json(value), ..Self::nothing() }
    }

    /// It as HTTP has it.
    pub fn response(self) -> Response<Content> {
        let (kind, body) = match self.body {
            Body::Nothing => (None, Content::Whole(None)),
            Body::Json(value) => (Some(JSON), Bytes::from(value.to_string()).into()),
            Body::Xml(text) => (Some(XML), Bytes::from(text).into()),
            Body::Text(kind, text) => (Some(kind), text.into()),
            Body::Stream(kind, parts) => {
                let parts = parts.take().map(|parts| Content::Parts(parts, Bytes::new()));
                (Some(kind), parts.unwrap_or(Content::Whole(None)))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        response.headers_mut().insert(ODATA_VERSION, HeaderValue::from_static(VERSION));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // What is no page is not to be taken for one.
        let sniffing = HeaderValue::from_static("nosniff");
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, sniffing);
        if let Content::Parts(..) = response.body() {
            // A proxy is not to gather parts (nginx, "proxy_buffering").
            response.headers_mut().insert(BUFFERING, HeaderValue::from_static("no"));
        }
        if let Some(kind) = kind {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if let Some(etag) = self.etag {
            put(response.headers_mut(), ETAG, &etag);
        }
        if let Some(location) = self.location {
            put(response.headers_mut(), LOCATION, &location);
        }
        if let Some(token) = self.token {
            put(response.headers_mut(), TOKEN, &token);
        }
        response
    }
}

/// How to say who one is, beside a token (RFC 7617).
const BASIC: &str = "Basic realm=\"Palisade\", charset=\"UTF-8\"";

/// What a refusal is answered.
pub fn refusal(refusal: &Refusal) -> Response<Content> {
    let status = StatusCode::from_u16(refusal.status);
    let told = Told {
        status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        location: None,
        etag: None,
        token: None,
        body: Body::Json(refusal.body()),
    };
    let mut response = told.response();
    let headers = response.headers_mut();
    if refusal.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(BASIC));
    }
    if let Some(seconds) = refusal.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Adds a header. Its value is from our tables and identifiers in URIs: it can be one.
pub fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
