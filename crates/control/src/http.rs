//! HTTP/1.1 on the management socket: from a client's bytes to a request, from an answer to bytes.
//!
//! Purpose: nothing that a client sends, or fails to send, costs more than the limits here allow.
//! What is asked is not understood here: whoever serves gives a function for that.
//!
//! | Limit | A client beyond it |
//! |---|---|
//! | 16 KiB of headers ([`HEADER_BYTES`]) | is answered 431 and let go |
//! | 10 s for headers ([`HEADER_TIME`]), also between two requests | is let go |
//! | 1 MiB of body ([`BODY_BYTES`]) | is answered 413 and let go |
//! | 30 s for a body ([`BODY_TIME`]) | is answered 408 and let go |
//! | 30 s in which it takes nothing of an answer ([`STALL_TIME`]) | is let go |
//! | 256 connections ([`CONNECTIONS`]) | is answered 503 and let go |
//!
//! Invariant: a client that goes ends the wait for its answer, and nothing else; what has to come
//! to its end runs as a task of its own.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing
    )
)]

use crate::peer::Peer;
use crate::stall::Stall;
use core::convert::Infallible;
use core::future::Future;
use core::time::Duration;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Bytes of a request's line and headers.
pub const HEADER_BYTES: usize = 16 << 10;

/// How long these may take.
pub const HEADER_TIME: Duration = Duration::from_secs(10);

/// Bytes of a body.
pub const BODY_BYTES: usize = 1 << 20;

/// How long a body may take.
pub const BODY_TIME: Duration = Duration::from_secs(30);

/// How long a client may take nothing of its answer.
pub const STALL_TIME: Duration = Duration::from_secs(30);

/// Connections at one time.
pub const CONNECTIONS: usize = 256;

/// How long nobody is let in where the daemon has no room for another open file.
const PAUSE: Duration = Duration::from_secs(1);

/// What a client beyond [`CONNECTIONS`] is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 10\r\ncontent-length: 0\r\n\
    connection: close\r\n\r\n";

/// Why a request has no body that can be understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoBody {
    /// There is more of it than [`BODY_BYTES`].
    TooLarge,
    /// It took longer than [`BODY_TIME`].
    TooLate,
    /// Its framing is wrong, or the client has gone.
    Broken,
}

impl NoBody {
    /// What says so.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooLate => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// A request with its body, or why there is none. Who is connected ([`Peer`]) is among its
/// extensions.
pub type Asked = Request<Result<Bytes, NoBody>>;

/// Serves clients for ever. `answer` is dropped where its client has gone.
pub async fn serve<F, A>(listener: UnixListener, answer: F)
where
    F: Fn(Asked) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Bytes>> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = room.clone().try_acquire_owned() else {
            // A client that does not even take this is let go all the same.
            let _ = stream.try_write(FULL);
            continue;
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            converse(stream, answer).await;
            drop(place);
        });
    }
}

/// Serves one client until it goes, or has to.
async fn converse<F, A>(stream: UnixStream, answer: F)
where
    F: Fn(Asked) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Bytes>> + Send + 'static,
{
    let peer = Peer::of(&stream);
    let service = service_fn(move |request: Request<Incoming>| {
        let (answer, peer) = (answer.clone(), peer.clone());
        async move {
            let (mut head, body) = request.into_parts();
            head.extensions.insert(peer);
            let body = read(body).await;
            let is_whole = body.is_ok();
            let mut response = answer(Request::from_parts(head, body)).await.map(Full::new);
            if !is_whole {
                // The rest of the body would be taken for the next request.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_header_size(HEADER_BYTES)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(Stall::new(stream, STALL_TIME)), service);
    // Why a client has gone is nothing that anyone could do something about.
    let _ = connection.await;
}

/// A request's body, in memory.
async fn read(body: Incoming) -> Result<Bytes, NoBody> {
    if body.size_hint().lower() > BODY_BYTES as u64 {
        return Err(NoBody::TooLarge);
    }
    match timeout(BODY_TIME, Limited::new(body, BODY_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(NoBody::TooLarge),
        Ok(Err(_)) => Err(NoBody::Broken),
        Err(_) => Err(NoBody::TooLate),
    }
}
