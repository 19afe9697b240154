//! TCP and Unix streams: try the system call first, wait for readiness only if it would block, and
//! for what comes in only after another look.
//!
//! Clones of a [`Socket`] share the connection, so that one task reads while another writes.
//! Dropping a future of a socket at any time loses nothing but the bytes it had moved.

use crate::lookout::Lookout;
use crate::reactor::{Descriptor, Reactor};
use crate::sys;
use ::io::local::{First, first_of};
use core::cell::Cell;
use core::future::poll_fn;
use core::time::Duration;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_tcp_user_timeout, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// Most slices one call sends.
const SLICES: usize = 64;

/// Runs `attempt` until it does not block, waiting for `events` between attempts.
async fn retry<T>(
    reactor: &Reactor,
    on: &Descriptor,
    events: i16,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    poll_fn(|cx| reactor.poll_budget(cx)).await;
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                reactor.ready(on, events).await.map_err(io::Error::from)?;
            }
            other => return other,
        }
    }
}

/// A connection. Clones share it; it closes when the last one is gone.
#[derive(Clone)]
pub struct Socket {
    reactor: Reactor,
    fd: Descriptor,
    line: Line,
    /// The last read gave all there was.
    is_drained: Rc<Cell<bool>>,
    /// Of those who read.
    lookout: Rc<Cell<Lookout>>,
}

impl Socket {
    /// Takes a connected stream socket over; small messages of TCP go out at once, and a peer of
    /// TCP that has vanished is noticed.
    pub fn from_fd(reactor: &Reactor, fd: OwnedFd) -> io::Result<Self> {
        sys::set_nonblocking(fd.as_fd())?;
        sys::no_delay(fd.as_fd());
        sys::keep_alive(fd.as_fd());
        let line = Line(Arc::new(fd));
        let (fd, is_drained) = (Descriptor::socket(line.0.clone()), Rc::default());
        let lookout = Rc::new(Cell::new(reactor.lookout()));
        Ok(Self { reactor: reactor.clone(), fd, line, is_drained, lookout })
    }

    /// Connects to a TCP address, within so long, and without waiting for it in the calling thread.
    ///
    /// # Errors
    /// What the kernel says; `TimedOut` if nobody has answered until then.
    pub async fn connect(
        reactor: &Reactor,
        address: SocketAddr,
        within: Nanos,
    ) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let own = Self::from_fd(reactor, socket)?;
        let ready = reactor.ready(&own.fd, libc::POLLOUT);
        if let First::Other(()) = first_of(ready, reactor.sleep(within)).await {
            // Else it would go on with that.
            let _ = own.shutdown();
            return Err(ErrorKind::TimedOut.into());
        }
        socket_error(own.fd.as_fd())??;
        Ok(own)
    }

    /// For a peer that must get nothing any more once this has dropped the connection: what was not
    /// sent then never is, and what was sent and not acknowledged within so long ends the
    /// connection.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn sends_nothing_late(&self, unacknowledged: Nanos) -> io::Result<()> {
        set_socket_linger(self.fd.as_fd(), Some(Duration::ZERO))?;
        let millis = u32::try_from(unacknowledged.0 / 1_000_000).unwrap_or(u32::MAX);
        Ok(set_tcp_user_timeout(self.fd.as_fd(), millis.max(1))?)
    }

    /// The connection as any thread can look at it.
    pub fn line(&self) -> Line {
        self.line.clone()
    }

    /// Takes a TCP connection over.
    pub fn from_tcp(reactor: &Reactor, stream: TcpStream) -> io::Result<Self> {
        Self::from_fd(reactor, stream.into())
    }

    /// Takes a Unix connection over.
    pub fn from_unix(reactor: &Reactor, stream: UnixStream) -> io::Result<Self> {
        Self::from_fd(reactor, stream.into())
    }

    /// Receives at least a byte; 0 at the end of the stream or for an empty buffer.
    pub async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.reactor.poll_budget(cx)).await;
        let (mut since, look) = (None, self.lookout.get().look());
        if self.is_drained.take() {
            self.reactor.look_again(&mut since, look).await;
        }
        loop {
            match sys::receive(self.fd.as_fd(), into) {
                Ok(count) => {
                    self.is_drained.set(count > 0 && count < into.len());
                    self.waited(since);
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.reactor.look_again(&mut since, look).await {
                        let told = self.reactor.ready(&self.fd, libc::POLLIN).await;
                        told.map_err(io::Error::from)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Something has come that was waited for since then, if it was.
    fn waited(&self, since: Option<Nanos>) {
        let Some(since) = since else { return };
        let mut lookout = self.lookout.get();
        lookout.ended(self.reactor.now().since(since));
        self.lookout.set(lookout);
    }

    /// Fills `into`; `UnexpectedEof` if the stream ends before.
    pub async fn read_exact(&self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let count = self.read(into).await?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            into = &mut into[count..];
        }
        Ok(())
    }

    /// Sends all of `data`.
    pub async fn write_all(&self, data: &[u8]) -> io::Result<()> {
        self.write_vectored_all(&[IoSlice::new(data)]).await
    }

    /// Sends all slices, one behind the other, with as few system calls as the kernel allows.
    pub async fn write_vectored_all(&self, data: &[IoSlice<'_>]) -> io::Result<()> {
        let mut next = 0;
        // Bytes of slice `next` that are sent already.
        let mut sent = 0;
        while next < data.len() {
            let count = {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let batch = &data[next..data.len().min(next + SLICES)];
                for (to, from) in slices.iter_mut().zip(batch) {
                    *to = IoSlice::new(from);
                }
                slices[0] = IoSlice::new(&data[next][sent..]);
                let slices = &slices[..batch.len()];
                let attempt = || sys::send(self.fd.as_fd(), slices);
                retry(&self.reactor, &self.fd, libc::POLLOUT, attempt).await?
            };
            sent += count;
            while next < data.len() && sent >= data[next].len() {
                sent -= data[next].len();
                next += 1;
            }
        }
        Ok(())
    }

    /// Waits until the connection is over, as [`Line::is_over`] says it, or was ended here.
    pub async fn over(&self) {
        while !self.line.is_over() {
            // A descriptor that can't be waited for belongs to nobody who could ask for anything.
            if self.reactor.ready(&self.fd, libc::POLLRDHUP).await.is_err() {
                return;
            }
        }
    }

    /// Ends the direction to the peer, which reads what was sent and then the end.
    pub fn finish(&self) -> io::Result<()> {
        sys::shutdown_sending(self.fd.as_fd())
    }

    /// Ends both directions; a reader of a clone sees the end of the stream.
    pub fn shutdown(&self) -> io::Result<()> {
        sys::shutdown(self.fd.as_fd())
    }
}

/// A connection as any thread can look at it, whether or not its core comes to do so. Open as long
/// as that is there.
#[derive(Clone)]
pub struct Line(Arc<OwnedFd>);

impl Line {
    /// Whether the peer has ended the connection, or sends nothing more: also if what it sent
    /// before has not been received.
    pub fn is_over(&self) -> bool {
        sys::is_over(self.0.as_fd())
    }

    /// As [`Socket::shutdown`].
    pub fn shutdown(&self) -> io::Result<()> {
        sys::shutdown(self.0.as_fd())
    }
}

/// A listening socket of one core.
pub struct Listener {
    reactor: Reactor,
    fd: Descriptor,
}

impl Listener {
    /// Listens on a TCP address.
    pub fn tcp(reactor: &Reactor, address: SocketAddr) -> io::Result<Self> {
        Self::from_tcp(reactor, TcpListener::bind(address)?)
    }

    /// Listens on a Unix socket, which must not exist yet.
    pub fn unix(reactor: &Reactor, path: &Path) -> io::Result<Self> {
        Self::from_unix(reactor, UnixListener::bind(path)?)
    }

    /// Takes a TCP listener over; several cores may take clones of one.
    pub fn from_tcp(reactor: &Reactor, listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let fd = Descriptor::socket(Arc::new(listener.into()));
        Ok(Self { reactor: reactor.clone(), fd })
    }

    /// Takes a Unix listener over; several cores may take clones of one.
    pub fn from_unix(reactor: &Reactor, listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let fd = Descriptor::socket(Arc::new(listener.into()));
        Ok(Self { reactor: reactor.clone(), fd })
    }

    /// Ends listening before it returns: whoever connects from then on is refused, and who was not
    /// accepted yet is reset. What accepts gets an error.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn close(&self) -> io::Result<()> {
        sys::shutdown(self.fd.as_fd())
    }

    /// Waits for a connection, to be served on this core.
    pub async fn accept(&self) -> io::Result<Socket> {
        Socket::from_fd(&self.reactor, self.accept_fd().await?)
    }

    /// Waits for a connection, to be served on any core: see [`Socket::from_fd`].
    pub async fn accept_fd(&self) -> io::Result<OwnedFd> {
        loop {
            let attempt = || sys::accept(self.fd.as_fd());
            match retry(&self.reactor, &self.fd, libc::POLLIN, attempt).await {
                // The peer was gone before we took it.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                other => return other,
            }
        }
    }
}
