//! A queue of a block device that this process serves: that of ublk
//! (`include/uapi/linux/ublk_cmd.h` of Linux).
//!
//! The queue's first command binds it to the thread that gives it: all others come from there, too.
//! Nothing here knows what requests mean.

use crate::reactor::{Descriptor, DoneTicket, Reactor};
use crate::sys::{self, Shown};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// What a device says of a queue's requests, mapped: not yet any core's.
pub struct QueueView {
    fd: Arc<OwnedFd>,
    shown: Shown,
    bytes: usize,
}

impl QueueView {
    /// That of an open device: a queue of `depth` requests, of each of which `bytes` bytes are
    /// said. Where these lie in the device follows from the bytes of a page.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn map(
        fd: Arc<OwnedFd>,
        (depth, bytes): (u16, usize),
        at: impl FnOnce(u64) -> u64,
    ) -> io::Result<Self> {
        let page = sys::page_bytes();
        let whole = (usize::from(depth) * bytes).next_multiple_of(page as usize);
        let shown = Shown::map(fd.as_fd(), at(page), whole)?;
        Ok(Self { fd, shown, bytes })
    }
}

/// The queue, used by tasks of one core.
pub struct BlockQueue {
    reactor: Reactor,
    fd: Descriptor,
    shown: Shown,
    bytes: usize,
}

impl BlockQueue {
    /// The queue as this core's.
    pub fn new(reactor: &Reactor, view: QueueView) -> Self {
        let QueueView { fd, shown, bytes } = view;
        Self { reactor: reactor.clone(), fd: Descriptor::socket(fd), shown, bytes }
    }

    /// Gives a command.
    pub fn command(&self, code: u32, says: [u8; 16]) -> DoneTicket {
        self.reactor.command(&self.fd, code, says)
    }

    /// What is said of a request.
    pub fn shown<const N: usize>(&self, tag: u16) -> [u8; N] {
        self.shown.read(usize::from(tag) * self.bytes)
    }

    /// Copies a request's payload from the device, all of it.
    ///
    /// # Errors
    /// What the kernel says; `UnexpectedEof` if it has less.
    pub fn take(&self, at: u64, mut into: &mut [u8]) -> io::Result<()> {
        self.reactor.charge(into.len());
        let mut from = at;
        while !into.is_empty() {
            match rustix::io::pread(self.fd.as_fd(), &mut *into, from)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    into = &mut into[count..];
                    from += count as u64;
                }
            }
        }
        Ok(())
    }

    /// Copies a request's payload to the device, all of it.
    ///
    /// # Errors
    /// What the kernel says; `WriteZero` if it wants less.
    pub fn give(&self, at: u64, mut from: &[u8]) -> io::Result<()> {
        self.reactor.charge(from.len());
        let mut into = at;
        while !from.is_empty() {
            match rustix::io::pwrite(self.fd.as_fd(), from, into)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => {
                    from = &from[count..];
                    into += count as u64;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreEnv, NoDrive, run_single};
    use ::io::Env as _;
    use units::Nanos;

    /// A device whose "descriptors" are a file's bytes.
    fn queue(env: &CoreEnv<(), NoDrive>, bytes: &[u8]) -> BlockQueue {
        use std::io::Write as _;
        let mut file = tempfile();
        file.write_all(bytes).expect("written");
        let view = QueueView::map(Arc::new(file.into()), (64, 24), |_| 0).expect("mapped");
        BlockQueue::new(env.reactor(), view)
    }

    fn tempfile() -> std::fs::File {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        rustix::fs::memfd_create("queue", flags).expect("memory").into()
    }

    #[test]
    fn what_is_said_and_moved_is_that_of_the_request() {
        run_single(async |env: CoreEnv<(), NoDrive>| {
            let all: Vec<u8> = (0..=255).cycle().take(8192).collect();
            let queue = queue(&env, &all);
            assert_eq!(queue.shown::<24>(3)[..], all[72..96]);
            let mut own = vec![0; 300];
            queue.take(1000, &mut own).expect("taken");
            assert!(own == all[1000..1300]);
            queue.give(1000, &[9; 300]).expect("given");
            queue.take(1000, &mut own).expect("taken");
            assert!(own == [9; 300]);
            assert_eq!(
                queue.take(8000, &mut own).map_err(|error| error.kind()),
                Err(io::ErrorKind::UnexpectedEof)
            );
            // No driver is behind it.
            let told = queue.command(0xc010_7520, [0; 16]).await;
            assert!(told.is_err(), "{told:?}");
            drop(queue.command(0xc010_7520, [0; 16]));
            env.sleep(Nanos::from_millis(1)).await;
        });
    }
}
