//! Connections to controllers, over TCP.

use core::net::SocketAddr;
use nvme_host::{Dial, NoLine, limits};
use runtime::{Reactor, Socket, Stream};
use units::Nanos;

/// Makes connections for one core.
#[derive(Clone)]
pub(super) struct Tcp {
    pub reactor: Reactor,
    /// How long what was sent may stay unacknowledged.
    pub keep_alive: Nanos,
}

impl Dial for Tcp {
    type Transport = Stream;

    async fn dial(&self, address: SocketAddr, within: Nanos) -> Result<Stream, NoLine> {
        let connect = async {
            let socket = Socket::connect(&self.reactor, address, within).await?;
            socket.sends_nothing_late(self.keep_alive)?;
            Ok::<_, std::io::Error>(socket)
        };
        let socket = connect.await.map_err(|error| NoLine(error.to_string()))?;
        Ok(Stream::new(socket, limits::AHEAD))
    }
}
