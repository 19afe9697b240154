//! A stream on which hyper says nothing of its own.
//!
//! Purpose: a request that can't be read is answered by hyper itself, with a head and no body. Our
//! answers tell what is wrong; so hyper's are dropped here, and [`crate::http`] answers.
//!
//! Invariant: whatever has the header `OData-Version` passes; every answer of ours has it.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// No head of hyper's own is longer.
const LONGEST: usize = 256;

/// Whether these bytes are an answer of hyper's own: a whole head that is an error's, and not ours.
fn is_bare(bytes: &[u8]) -> bool {
    let odata = b"odata-version";
    bytes.len() <= LONGEST
        && bytes.starts_with(b"HTTP/1.")
        && bytes.get(9) == Some(&b'4')
        && bytes.ends_with(b"\r\n\r\n")
        && !bytes.windows(odata.len()).any(|window| window.eq_ignore_ascii_case(odata))
}

/// The stream.
pub struct Mute<S> {
    stream: S,
}

impl<S> Mute<S> {
    /// On this stream.
    pub fn new(stream: S) -> Self {
        Self { stream }
    }

    /// The stream itself.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Mute<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Mute<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if is_bare(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut all = parts.iter().filter(|part| !part.is_empty());
        if let (Some(only), None) = (all.next(), all.next())
            && is_bare(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_errors_are_dropped() {
        let bare = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert!(is_bare(bare));
        for passes in [
            &b"HTTP/1.1 100 Continue\r\n\r\n"[..],
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 404 Not Found\r\nodata-version: 4.0\r\n\r\n",
            b"HTTP/1.1 404 Not Found\r\nOData-Version: 4.0\r\n\r\n",
            b"HTTP/1.1 404 Not Found\r\n\r\n{}",
            b"{\"Name\":\"HTTP/1.1 400\"}",
            b"HTTP/1.",
            b"",
        ] {
            assert!(!is_bare(passes), "{}", String::from_utf8_lossy(passes));
        }
    }
}
