//! A stream whose other end must take what is written to it.
//!
//! States: moving (the last write was taken, or there was none) → stalled (a write waits, since
//! when the clock says) → moving (it was taken) or failed (patience has run out).
//!
//! Invariant: of an answer of N bytes the other end can wait no longer than the limit and N /
//! [`RATE`] seconds, however it shares that out among its parts. An answer ends where all that was
//! written has been taken (a flush).

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes a second: who takes so many has all the time that it needs.
pub const RATE: u32 = 32 << 10;

/// The stream.
pub struct Stall<S> {
    stream: S,
    limit: Duration,
    /// How long the writes of this answer may wait.
    patience: Duration,
    /// Runs while a write waits, since then.
    clock: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> Stall<S> {
    /// A stream, and how long writes to it may wait beside the time that [`RATE`] gives.
    pub fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, patience: limit, clock: None }
    }

    /// What came of a write; fails once writes have waited too long.
    fn watch<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if let Some((since, _)) = self.clock.take() {
                self.patience = self.patience.saturating_sub(since.elapsed());
            }
            return outcome;
        }
        let patience = self.patience;
        let clock = || (Instant::now(), Box::pin(sleep(patience)));
        let (_, clock) = self.clock.get_or_insert_with(clock);
        ready!(clock.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// What came of a write of some bytes.
    fn watch_bytes(
        &mut self,
        outcome: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let outcome = self.watch(outcome, cx);
        if let Poll::Ready(Ok(taken)) = outcome {
            let bytes = u32::try_from(taken).unwrap_or(u32::MAX);
            let earned = Duration::from_secs(u64::from(bytes)) / RATE;
            self.patience = self.patience.saturating_add(earned);
        }
        outcome
    }

    /// What came of a flush.
    fn watch_end(
        &mut self,
        outcome: Poll<io::Result<()>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = self.watch(outcome, cx);
        if let Poll::Ready(Ok(())) = outcome {
            self.patience = self.limit;
        }
        outcome
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
        own.watch_bytes(outcome, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let outcome = Pin::new(&mut own.stream).poll_write_vectored(cx, parts);
        own.watch_bytes(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let outcome = Pin::new(&mut own.stream).poll_flush(cx);
        own.watch_end(outcome, cx)
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

    /// Takes one byte of a large write every few milliseconds; what came of the write.
    async fn trickled(limit: Duration) -> io::Result<()> {
        let (own, other) = tokio::io::duplex(1);
        let mut own = Stall::new(own, limit);
        let mut other = other;
        let reader = tokio::spawn(async move {
            let mut byte = [0];
            while other.read(&mut byte).await.is_ok_and(|count| count > 0) {
                sleep(Duration::from_millis(20)).await;
            }
        });
        let outcome = async {
            own.write_all(&[0; 100]).await?;
            own.flush().await
        };
        let outcome = outcome.await;
        drop(own);
        reader.await.expect("it ends");
        outcome
    }

    #[test]
    fn a_byte_now_and_then_does_not_keep_a_place() {
        run(async {
            // Each byte comes within the limit, all of them do not.
            let outcome = trickled(Duration::from_millis(500)).await;
            assert_eq!(outcome.expect_err("too slow").kind(), io::ErrorKind::TimedOut);
            trickled(Duration::from_secs(60)).await.expect("slow, but within the limit");
        });
    }

    #[test]
    fn each_answer_has_a_limit_of_its_own() {
        run(async {
            let (own, mut other) = tokio::io::duplex(1);
            let mut own = Stall::new(own, Duration::from_millis(500));
            let reader = tokio::spawn(async move {
                let mut byte = [0];
                while other.read(&mut byte).await.is_ok_and(|count| count > 0) {
                    sleep(Duration::from_millis(20)).await;
                }
            });
            for _ in 0..40 {
                own.write_all(&[0; 2]).await.expect("taken");
                own.flush().await.expect("taken");
            }
            drop(own);
            reader.await.expect("it ends");
        });
    }
}
