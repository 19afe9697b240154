//! A drive for callers that may wait: each request is over when its ticket is given.
//!
//! Tools and examinations drive the engine's own code with it, outside any reactor.

use crate::SharedDrive;
use core::future::{Future, Ready, ready};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use io::{Buf, BufMut, Drive, DriveError, DriveInfo};

/// A drive whose requests are carried out in the calling thread. Discards are not offered.
#[derive(Clone)]
pub struct BlockingDrive(pub SharedDrive);

impl Drive for BlockingDrive {
    type Read = Ready<(Result<(), DriveError>, BufMut)>;
    type Done = Ready<Result<(), DriveError>>;

    fn info(&self) -> &DriveInfo {
        self.0.info()
    }

    fn read(&self, offset: u64, mut into: BufMut) -> Self::Read {
        let outcome = self.0.read_blocking(offset, &mut into);
        ready((outcome, into))
    }

    fn write(&self, offset: u64, data: &[Buf], fua: bool) -> Self::Done {
        let written = self.0.write_blocking(offset, data);
        ready(written.and_then(|()| if fua { self.0.flush_blocking() } else { Ok(()) }))
    }

    fn flush(&self) -> Self::Done {
        ready(self.0.flush_blocking())
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Self::Done {
        ready(self.0.zero_blocking(offset, bytes))
    }

    fn discard(&self, _offset: u64, _bytes: u64) -> Self::Done {
        ready(Err(DriveError::Unsupported))
    }
}

/// The outcome of work that waits for nothing but [`BlockingDrive`]s.
pub fn now<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("a blocking drive's requests are over at once"),
    }
}
