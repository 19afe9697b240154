//! Connections to addresses: made by whoever has sockets.

use core::future::Future;
use core::net::SocketAddr;
use io::{Closed, Transport};
use std::io::IoSlice;
use thiserror::Error;
use units::Nanos;

/// Why there is no connection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct NoLine(pub String);

/// Makes connections for one core, to be used there.
pub trait Dial: Clone + 'static {
    /// What comes of it. Closed and dropped it vanishes for good, with all of it that was not
    /// sent.
    type Transport: Transport;

    /// Connects, within so long. Takes none of the core's time while it waits.
    fn dial(
        &self,
        address: SocketAddr,
        within: Nanos,
    ) -> impl Future<Output = Result<Self::Transport, NoLine>>;
}

/// A connection that is closed when it is dropped: whoever waits for it has it until then.
pub struct Line<T: Transport>(pub(crate) T);

impl<T: Transport> Transport for Line<T> {
    async fn read_exact(&self, into: &mut [u8]) -> Result<(), Closed> {
        self.0.read_exact(into).await
    }

    async fn write_all(&self, parts: &mut [IoSlice<'_>]) -> Result<(), Closed> {
        self.0.write_all(parts).await
    }

    fn finish(&self) {
        self.0.finish();
    }

    fn close(&self) {
        self.0.close();
    }
}

impl<T: Transport> Drop for Line<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}
