//! HTTP/1.1 with a client: from its bytes to a request, from an answer to bytes.
//!
//! Purpose: nothing that a client sends, or fails to send, costs more than the limits here and in
//! [`crate::room`] allow. What is asked is not understood here: whoever serves gives a function for
//! that.
//!
//! | Limit | A client beyond it |
//! |---|---|
//! | 16 KiB of headers ([`HEADER_BYTES`]) | is answered 431 and let go |
//! | 10 s for headers ([`HEADER_TIME`]), also between two requests | is let go, or answered 408 |
//! | 1 MiB of body ([`BODY_BYTES`]), 16 KiB of somebody not known | is answered 413 and let go |
//! | 30 s for a body ([`BODY_TIME`](crate::body::BODY_TIME)) | is answered 408 and let go |
//! | 32 MiB of bodies at one time ([`crate::pools`]) | is answered 503 and let go |
//! | 30 s to take an answer ([`STALL_TIME`]), and 1 s a [`RATE`](crate::stall::RATE) | is let go |
//! | 256 connections, 64 of one address or user ([`crate::room`]) | is let go; 503 on the socket |
//! | 32 MiB of answers that nobody has taken yet | is answered 503 |
//!
//! An answer that comes in parts (a stream of events) has these 30 s for each part.
//!
//! What is no request is answered 400. Every error has the body that Redfish wants.
//!
//! Invariant: a client that goes ends the wait for its answer, and nothing else; what has to come
//! to its end runs as a task of its own.

use crate::body::{BODY_BYTES, NoBody, Unread};
use crate::mute::Mute;
use crate::peer::Peer;
use crate::pools::Share;
use crate::reply::{self, Content};
use crate::room::{Place, Room};
use crate::stall::Stall;
use core::convert::Infallible;
use core::future::{Future, pending, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use redfish::error::Refusal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};

/// Bytes of a request's line and headers.
pub const HEADER_BYTES: usize = 16 << 10;

/// How long these may take.
pub const HEADER_TIME: Duration = Duration::from_secs(10);

/// How long a client may take nothing of its answer.
pub const STALL_TIME: Duration = Duration::from_secs(30);

/// How long nobody is let in where the daemon has no room for another open file.
const PAUSE: Duration = Duration::from_secs(1);

/// After how many seconds a client that found no room may come again.
pub const AGAIN: u64 = 10;

/// How many clients that found no room are told so at one time; others are let go untold.
const TOLD: usize = 32;

/// How long a client that is let go may still send: what it was answered would be lost with what
/// nobody has read.
const LINGER: Duration = Duration::from_secs(2);

/// How much it may still send.
const LINGER_BYTES: usize = BODY_BYTES;

/// A request whose body nobody has read. Who is connected ([`Peer`]) is among its extensions.
pub type Asked = Request<Unread>;

/// Whose memory an answer takes, among its extensions: none if all who ask have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Takes(pub Option<Share>);

/// Serves clients of the daemon's socket for ever. `answer` is dropped where its client has gone.
pub async fn serve<F, A>(listener: UnixListener, room: Arc<Room>, answer: F)
where
    F: Fn(Asked) -> A + Clone + Send + Sync + Unpin + 'static,
    A: Future<Output = Response<Content>> + Send + 'static,
{
    let told = Arc::new(Semaphore::new(TOLD));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let peer = Peer::of(&stream);
        match room.enter(&peer) {
            Some(place) => {
                tokio::spawn(converse(stream, peer, place, answer.clone(), pending()));
            }
            None => turn_away(stream, &told),
        }
    }
}

/// Tells a client that there is no room for it.
fn turn_away<S>(stream: S, told: &Arc<Semaphore>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let Ok(permit) = told.clone().try_acquire_owned() {
        tokio::spawn(async move {
            let mut stream = stream;
            let refusal = bytes_of(&Refusal::no_room(AGAIN));
            // A client that does not take this is let go all the same.
            if let Ok(Ok(())) = timeout(LINGER, stream.write_all(&refusal)).await {
                leave(stream).await;
            }
            drop(permit);
        });
    }
}

/// Serves one client until it goes, or has to. Once `closed` ends, it is answered what it has asked
/// within [`STALL_TIME`], and asks for nothing more.
pub async fn converse<S, F, A>(
    stream: S,
    peer: Peer,
    place: Place,
    answer: F,
    closed: impl Future<Output = ()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Asked) -> A + Clone + Send + Sync + Unpin + 'static,
    A: Future<Output = Response<Content>> + Send + 'static,
{
    let room = place.room().clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (answer, peer, room) = (answer.clone(), peer.clone(), room.clone());
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            head.extensions.insert(peer);
            let (body, is_whole) = Unread::new(body, check(&head), room.pools.clone());
            let response = answer(Request::from_parts(head, body)).await;
            let mut response = held(&room, response);
            if !is_whole.load(Ordering::Relaxed) {
                // The rest of the body would be taken for the next request.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_header_size(HEADER_BYTES)
        .max_buf_size(HEADER_BYTES)
        // An answer is not copied: it would not be counted.
        .writev(true)
        .serve_connection(TokioIo::new(Mute::new(Stall::new(stream, STALL_TIME))), service);
    let (mut closed, mut end) = (pin!(closed), None::<Pin<Box<Sleep>>>);
    let outcome = poll_fn(|cx| {
        if end.is_none() && closed.as_mut().poll(cx).is_ready() {
            Pin::new(&mut connection).graceful_shutdown();
            end = Some(Box::pin(sleep(STALL_TIME)));
        }
        match end.as_mut().map(|end| end.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => Poll::Ready(None),
            _ => connection.poll_without_shutdown(cx).map(Some),
        }
    });
    let Some(outcome) = outcome.await else { return };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner().into_inner();
    let refusal = match outcome {
        Ok(()) => None,
        Err(error) if error.is_parse_too_large() => Some(Refusal::headers_too_large()),
        Err(error) if error.is_parse() => Some(Refusal::malformed()),
        Err(error) if error.is_timeout() => (!parts.read_buf.is_empty()).then(Refusal::too_slow),
        // Why a client has gone is nothing that anyone could do something about.
        Err(_) => return,
    };
    if let Some(refusal) = refusal
        && stream.write_all(&bytes_of(&refusal)).await.is_err()
    {
        return;
    }
    leave(stream).await;
}

/// An answer that is counted until its client has taken it; one in parts holds next to nothing.
fn held(room: &Arc<Room>, response: Response<Content>) -> Response<Content> {
    let (head, body) = response.into_parts();
    let Content::Whole(Some(body)) = body else { return Response::from_parts(head, body) };
    let takes = head.extensions.get::<Takes>().map_or(Some(Share::Nobody), |takes| takes.0);
    let body = match takes {
        Some(share) => room.pools.answer(share, body),
        None => Some(body),
    };
    match body {
        Some(body) => Response::from_parts(head, body.into()),
        None => reply::refusal(&Refusal::no_room(AGAIN)),
    }
}

/// What hyper does not look at: a request names one host, and has no framing that only others
/// would understand.
fn check(head: &Parts) -> Result<(), NoBody> {
    let hosts = head.headers.get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && head.version == Version::HTTP_11) {
        return Err(NoBody::NoHost);
    }
    let mut encodings = head.headers.get_all(TRANSFER_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(NoBody::Broken),
    }
}

/// A refusal outside of hyper.
fn bytes_of(refusal: &Refusal) -> Vec<u8> {
    let (head, body) = reply::refusal(refusal).into_parts();
    let body = body.whole();
    let status = head.status;
    let reason = status.canonical_reason().unwrap_or_default();
    let date = httpdate::fmt_http_date(SystemTime::now());
    let mut bytes =
        format!("HTTP/1.1 {} {reason}\r\ndate: {date}\r\n", status.as_u16()).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    let end = format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    bytes.extend_from_slice(end.as_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Lets a client go: it sees the end, and what it still sends is read.
async fn leave<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let gone = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let (mut part, mut left) = (vec![0; 4096], LINGER_BYTES);
        while let Ok(count @ 1..) = stream.read(&mut part).await {
            left = left.saturating_sub(count);
            if left == 0 {
                return;
            }
        }
    };
    let _ = timeout(LINGER, gone).await;
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
