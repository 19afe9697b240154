//! Bells that other processes ring: eventfds (eventfd(2)).
//!
//! Invariant: no core waits for one in the kernel, whatever others do who have it open. They could
//! take the count away between its being seen and its being read, and undo that it does not block:
//! a read that may wait is never made (`RWF_NOWAIT`).

use crate::reactor::{Descriptor, Reactor};
use crate::requests::Over;
use core::future::poll_fn;
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Says that an offset is the file's own (preadv2(2)).
const OWN: u64 = u64::MAX;

/// A bell, waited for by one task of a core.
pub struct Bell {
    reactor: Reactor,
    fd: Descriptor,
}

impl Bell {
    /// Takes an eventfd over.
    pub fn from_fd(reactor: &Reactor, fd: OwnedFd) -> Self {
        Self { reactor: reactor.clone(), fd: Descriptor::socket(Arc::new(fd)) }
    }

    /// Waits until it is rung, if it was not since the last time; the number of times, as those who
    /// rang it count.
    ///
    /// # Errors
    /// It is no bell, or can't be waited for.
    pub async fn rung(&self) -> Result<u64, Over> {
        loop {
            poll_fn(|cx| self.reactor.poll_budget(cx)).await;
            self.reactor.ready(&self.fd, libc::POLLIN).await.map_err(|_| Over)?;
            if let Some(count) = self.count()? {
                return Ok(count);
            }
        }
    }

    fn count(&self) -> Result<Option<u64>, Over> {
        let mut count = [0; 8];
        loop {
            let into = &mut [IoSliceMut::new(&mut count)];
            match rustix::io::preadv2(self.fd.as_fd(), into, OWN, ReadWriteFlags::NOWAIT) {
                Ok(8) => return Ok(Some(u64::from_le_bytes(count))),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return Err(Over),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreEnv, NoDrive, run_single};
    use rustix::event::{EventfdFlags, eventfd};
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn a_bell_is_heard_and_never_waited_for_in_the_kernel() {
        // One that blocks whoever reads it while it is not rung.
        let event = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        let ringer = File::from(event.try_clone().expect("a clone"));
        run_single(async move |env: CoreEnv<(), NoDrive>| {
            let bell = Bell::from_fd(env.reactor(), event);
            assert_eq!(bell.count(), Ok(None));
            for times in [1_u64, 3] {
                (&ringer).write_all(&times.to_le_bytes()).expect("rung");
                assert_eq!(bell.rung().await, Ok(times));
            }
            assert_eq!(bell.count(), Ok(None));
        });
    }
}
