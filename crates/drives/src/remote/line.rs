//! Connections to controllers, over TCP.

use core::net::SocketAddr;
use io::{Closed, Transport};
use nvme_host::{Dial, NoLine, limits};
use runtime::{Reactor, Socket, Stream};
use std::io::IoSlice;
use units::Nanos;

/// Makes connections for one core.
#[derive(Clone)]
pub(super) struct Tcp {
    pub reactor: Reactor,
    /// How long what was sent may stay unacknowledged.
    pub keep_alive: Nanos,
}

/// A connection: nothing of it is sent any more once it is dropped.
pub(super) struct Line(Stream);

impl Dial for Tcp {
    type Transport = Line;

    async fn dial(&self, address: SocketAddr, within: Nanos) -> Result<Line, NoLine> {
        let connect = async {
            let socket = Socket::connect(&self.reactor, address, within).await?;
            socket.sends_nothing_late(self.keep_alive)?;
            Ok::<_, std::io::Error>(socket)
        };
        let socket = connect.await.map_err(|error| NoLine(error.to_string()))?;
        Ok(Line(Stream::new(socket, limits::AHEAD)))
    }
}

impl Transport for Line {
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

impl Drop for Line {
    fn drop(&mut self) {
        // Whoever waits for it in the kernel has it until then.
        self.0.close();
    }
}
