//! A device by which the kernel hands out requests, each whole, and is answered so: that of FUSE.

use crate::reactor::{Descriptor, Reactor};
use crate::sys;
use core::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The device, used by tasks of one core.
pub struct RequestDevice {
    reactor: Reactor,
    fd: Descriptor,
}

impl RequestDevice {
    /// Takes an open descriptor over.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn from_fd(reactor: &Reactor, fd: OwnedFd) -> io::Result<Self> {
        sys::set_nonblocking(fd.as_fd())?;
        Ok(Self { reactor: reactor.clone(), fd: Descriptor::socket(Arc::new(fd)) })
    }

    /// Waits until a read is worth an attempt.
    ///
    /// # Errors
    /// What the kernel says.
    pub async fn ready(&self) -> io::Result<()> {
        poll_fn(|cx| self.reactor.poll_budget(cx)).await;
        Ok(self.reactor.ready(&self.fd, libc::POLLIN).await?)
    }

    /// Reads a request; `WouldBlock` if there is none.
    ///
    /// # Errors
    /// What the kernel says: `ENODEV` once nothing more will come.
    pub fn read(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Ok(rustix::io::readv(self.fd.as_fd(), into)?)
    }

    /// Answers one.
    ///
    /// # Errors
    /// What the kernel says: `ENOENT` where nobody waits for it any more.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.fd.as_fd(), parts)?)
    }
}
