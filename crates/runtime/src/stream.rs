//! A socket as protocols want it: one that reads ahead, so that one call brings many headers.
//!
//! What is longer than the bytes read ahead goes straight to where it is wanted.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "lengths were compared, and a stream has one reader"
)]

use crate::Socket;
use core::cell::Cell;
use io::{Closed, Transport};

use std::io::IoSlice;

/// A socket that reads ahead.
pub struct Stream {
    socket: Socket,
    /// Bytes read ahead; taken out while a read is under way.
    ahead: Cell<Option<Ahead>>,
}

struct Ahead {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

impl Stream {
    /// Reads up to so many bytes ahead.
    pub fn new(socket: Socket, ahead: usize) -> Self {
        let bytes = vec![0; ahead].into_boxed_slice();
        Self { socket, ahead: Cell::new(Some(Ahead { bytes, from: 0, to: 0 })) }
    }

    async fn fill(&self, ahead: &mut Ahead, mut into: &mut [u8]) -> Result<(), Closed> {
        loop {
            let count = into.len().min(ahead.to - ahead.from);
            into[..count].copy_from_slice(&ahead.bytes[ahead.from..ahead.from + count]);
            ahead.from += count;
            into = &mut into[count..];
            if into.is_empty() {
                return Ok(());
            }
            if into.len() >= ahead.bytes.len() {
                return self.socket.read_exact(into).await.map_err(|_| Closed);
            }
            (ahead.from, ahead.to) = (0, 0);
            match self.socket.read(&mut ahead.bytes).await {
                Ok(count) if count > 0 => ahead.to = count,
                _ => return Err(Closed),
            }
        }
    }
}

impl Transport for Stream {
    async fn read_exact(&self, into: &mut [u8]) -> Result<(), Closed> {
        let mut ahead = self.ahead.take().expect("one reader at a time");
        let outcome = self.fill(&mut ahead, into).await;
        self.ahead.set(Some(ahead));
        outcome
    }

    async fn write_all(&self, parts: &mut [IoSlice<'_>]) -> Result<(), Closed> {
        self.socket.write_vectored_all(parts).await.map_err(|_| Closed)
    }

    fn finish(&self) {
        // As below.
        let _ = self.socket.finish();
    }

    fn close(&self) {
        // A connection that is gone already is as closed as it can be.
        let _ = self.socket.shutdown();
    }
}
