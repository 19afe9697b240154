//! Connections to addresses: made by whoever has sockets.

use core::future::Future;
use core::net::SocketAddr;
use io::Transport;
use thiserror::Error;
use units::Nanos;

/// Why there is no connection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct NoLine(pub String);

/// Makes connections for one core, to be used there.
pub trait Dial: Clone + 'static {
    /// What comes of it. It vanishes for good, and all of it that was not sent, when the last who
    /// has it drops it.
    type Transport: Transport;

    /// Connects, within so long. Takes none of the core's time while it waits.
    fn dial(
        &self,
        address: SocketAddr,
        within: Nanos,
    ) -> impl Future<Output = Result<Self::Transport, NoLine>>;
}
