//! A stream whose other end must take what is written to it.
//!
//! States: moving (the last write was taken, or there was none) → stalled (a write waits, since
//! when the clock says) → moving (it was taken) or failed (it was not, for too long).
//!
//! Invariant: no write waits longer than the limit.

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

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The stream.
pub struct Stall<S> {
    stream: S,
    limit: Duration,
    /// Runs while a write waits.
    clock: Option<Pin<Box<Sleep>>>,
}

impl<S> Stall<S> {
    /// A stream, and how long a write to it may wait.
    pub fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, clock: None }
    }

    /// What came of a write; fails once writes have waited too long.
    fn watch<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.clock = None;
            return outcome;
        }
        let limit = self.limit;
        let clock = self.clock.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(clock.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let outcome = Pin::new(&mut own.stream).poll_write(cx, bytes);
        own.watch(outcome, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let outcome = Pin::new(&mut own.stream).poll_write_vectored(cx, parts);
        own.watch(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let outcome = Pin::new(&mut own.stream).poll_flush(cx);
        own.watch(outcome, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let outcome = Pin::new(&mut own.stream).poll_shutdown(cx);
        own.watch(outcome, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    fn run(test: impl Future<Output = ()>) {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime").block_on(test);
    }

    #[test]
    fn a_write_that_nobody_takes_ends() {
        run(async {
            let (own, other) = UnixStream::pair().expect("a pair");
            let mut own = Stall::new(own, Duration::from_millis(50));
            let outcome = own.write_all(&vec![0; 8 << 20]).await;
            assert_eq!(outcome.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
            drop(other);
        });
    }

    #[test]
    fn a_write_that_is_taken_slowly_does_not_end() {
        run(async {
            let (own, mut other) = UnixStream::pair().expect("a pair");
            let mut own = Stall::new(own, Duration::from_secs(60));
            let reader = tokio::spawn(async move {
                let mut bytes = Vec::new();
                other.read_to_end(&mut bytes).await.map(|_| bytes.len())
            });
            own.write_all(&vec![0; 8 << 20]).await.expect("taken");
            own.shutdown().await.expect("ended");
            drop(own);
            assert_eq!(reader.await.expect("it ends").expect("read"), 8 << 20);
        });
    }
}
