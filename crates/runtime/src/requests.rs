//! A device by which the kernel hands out requests, each whole, and is answered so: that of FUSE.
//!
//! A descriptor of it is opened and mounted by whoever may; those of further cores are clones of it
//! ([`another`]). What is read is classified here (`fuse_dev_do_read` in Linux's fs/fuse/dev.c):
//!
//! | error                   | what it means                                                     |
//! |-------------------------|-------------------------------------------------------------------|
//! | EAGAIN                  | there is no request                                               |
//! | ENOENT, EINTR           | who had asked has gone, or a signal came: the next one is read    |
//! | ENOMEM                  | for now: it is tried again at the next turn                       |
//! | ENODEV, ECONNABORTED, … | it is not mounted any more                                        |

use crate::reactor::{Descriptor, Reactor};
use crate::sys;
use core::future::poll_fn;
use rustix::io::Errno;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Nothing more will come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over;

/// The device, used by tasks of one core.
pub struct RequestDevice {
    reactor: Reactor,
    fd: Descriptor,
    line: RequestLine,
}

impl RequestDevice {
    /// Takes an open descriptor over.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn from_fd(reactor: &Reactor, fd: OwnedFd) -> io::Result<Self> {
        sys::set_nonblocking(fd.as_fd())?;
        let line = RequestLine(Arc::new(fd));
        let fd = Descriptor::socket(line.0.clone());
        Ok(Self { reactor: reactor.clone(), fd, line })
    }

    /// It, as any thread can look at it.
    pub fn line(&self) -> RequestLine {
        self.line.clone()
    }

    /// Waits until a read is worth an attempt.
    ///
    /// # Errors
    /// It can't be waited for.
    pub async fn ready(&self) -> Result<(), Over> {
        poll_fn(|cx| self.reactor.poll_budget(cx)).await;
        self.reactor.ready(&self.fd, libc::POLLIN).await.map_err(|_| Over)?;
        Ok(())
    }

    /// Reads a request, if there is one.
    ///
    /// # Errors
    /// Nothing more will come.
    pub fn read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Over> {
        loop {
            match rustix::io::readv(self.fd.as_fd(), into) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Errno::AGAIN | Errno::NOMEM) => return Ok(None),
                Err(Errno::NOENT | Errno::INTR) => {}
                Err(_) => return Err(Over),
            }
        }
    }

    /// Answers one. It comes to nothing where nobody waits for it any more.
    pub fn write(&self, parts: &[IoSlice<'_>]) {
        while rustix::io::writev(self.fd.as_fd(), parts) == Err(Errno::INTR) {}
    }
}

/// The device as any thread can look at it, whether or not its core comes to do so. Open as long as
/// that is there.
#[derive(Clone)]
pub struct RequestLine(Arc<OwnedFd>);

impl RequestLine {
    /// Whether it is not mounted any more.
    pub fn is_over(&self) -> bool {
        sys::has_failed(self.0.as_fd())
    }
}

/// Another descriptor of the same mounted file system, which is asked as the first one is
/// (`FUSE_DEV_IOC_CLONE` of include/uapi/linux/fuse.h). `fresh` was opened for that, and is given
/// back.
///
/// # Errors
/// What the kernel says.
pub fn another(mounted: BorrowedFd<'_>, fresh: OwnedFd) -> io::Result<OwnedFd> {
    sys::clone_request_device(mounted, fresh.as_fd())?;
    Ok(fresh)
}
