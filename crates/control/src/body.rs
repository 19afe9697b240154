//! The body of a request, which nobody has read yet.
//!
//! Purpose: what a client sends takes memory only once it is known that it may send it, and of the
//! memory that is there for such clients ([`crate::pools`]).
//!
//! States: unread → whole (it is in memory, and the connection can go on) or given up (it was too
//! much, too late or broken, or nobody wanted it: the connection ends, as the rest of the body
//! would be taken for the next request).

use crate::pools::{self, Pools, Share};
use core::time::Duration;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

/// Bytes of a body.
pub const BODY_BYTES: usize = 1 << 20;

/// Bytes of a body of somebody who is not known: a login. All places together
/// ([`crate::room::CONNECTIONS`]) can't fill the share of these.
pub const NOBODYS_BYTES: usize = 16 << 10;

/// How long a body may take.
pub const BODY_TIME: Duration = Duration::from_secs(30);

/// How long a body that nobody wants may take, so that the connection can go on.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The first part of memory that a body takes.
const LEAST: usize = 4 << 10;

/// Why a request can't be understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoBody {
    /// There is more of its body than may be.
    TooLarge,
    /// Its body took longer than [`BODY_TIME`].
    TooLate,
    /// Its framing is wrong, or the client has gone.
    Broken,
    /// It does not name one host (RFC 9112, section 3.2).
    NoHost,
    /// There is no memory for it now.
    NoRoom,
}

/// A body that nobody has read.
pub struct Unread {
    body: Result<Source, NoBody>,
    pools: Arc<Pools>,
    is_whole: Arc<AtomicBool>,
}

/// Where it comes from.
enum Source {
    Client(Incoming),
    #[cfg(test)]
    Test(http_body_util::Full<Bytes>),
}

impl Unread {
    /// What a client sends, and whether the connection can go on, once it is answered. `head` is
    /// what is known to be wrong already.
    pub fn new(
        body: Incoming,
        head: Result<(), NoBody>,
        pools: Arc<Pools>,
    ) -> (Self, Arc<AtomicBool>) {
        let is_whole = Arc::new(AtomicBool::new(head.is_ok() && body.is_end_stream()));
        let body = head.map(|()| Source::Client(body));
        (Self { body, pools, is_whole: is_whole.clone() }, is_whole)
    }

    /// What is known to be wrong before a byte of it is read.
    ///
    /// # Errors
    /// This.
    pub fn check(&self) -> Result<(), NoBody> {
        self.body.as_ref().map(drop).map_err(|why| *why)
    }

    /// All of it, of at most so many bytes.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn read(self, share: Share, most: usize) -> Result<Bytes, NoBody> {
        let read = match self.body? {
            Source::Client(body) => collected(body, &self.pools, share, most).await,
            #[cfg(test)]
            Source::Test(body) => collected(body, &self.pools, share, most).await,
        };
        self.is_whole.store(read.is_ok(), Ordering::Relaxed);
        read
    }

    /// Nobody wants it. A short one that is there already keeps the connection from its end.
    pub async fn drain(self) {
        // The connection ends.
        let _ = timeout(DRAIN_TIME, self.read(Share::Nobody, NOBODYS_BYTES)).await;
    }
}

#[cfg(test)]
impl From<Result<Bytes, NoBody>> for Unread {
    fn from(body: Result<Bytes, NoBody>) -> Self {
        let body = body.map(|bytes| Source::Test(bytes.into()));
        Self { body, pools: Arc::default(), is_whole: Arc::default() }
    }
}

async fn collected<B>(
    mut body: B,
    pools: &Pools,
    share: Share,
    most: usize,
) -> Result<Bytes, NoBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.size_hint().lower() > most as u64 {
        return Err(NoBody::TooLarge);
    }
    let (mut counted, mut bytes) = (pools.body(share), Vec::new());
    let all = async {
        while let Some(frame) = body.frame().await {
            let Ok(part) = frame.map_err(|_| NoBody::Broken)?.into_data() else { continue };
            let needed = bytes.len().saturating_add(part.len());
            if needed > most {
                return Err(NoBody::TooLarge);
            }
            if needed > bytes.capacity() {
                let capacity = needed.next_power_of_two().max(LEAST).min(most);
                if !counted.grow(capacity.saturating_sub(bytes.capacity())) {
                    return Err(NoBody::NoRoom);
                }
                bytes.reserve_exact(capacity.saturating_sub(bytes.len()));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(())
    };
    timeout(BODY_TIME, all).await.unwrap_or(Err(NoBody::TooLate))?;
    Ok(if bytes.is_empty() { Bytes::new() } else { pools::held(counted, bytes) })
}
