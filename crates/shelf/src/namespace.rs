//! A namespace as a core serves it: a drive.

use crate::core::Env;
use crate::switches::Switches;
use drives::SharedDrive;
use io::{BlockError, Blocks, Buf, BufMut, Drive as _, DriveError, Env as _};
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// A drive, or a part of it that is a namespace, on one core.
#[derive(Clone)]
pub(crate) struct Namespace(Rc<Inner>);

struct Inner {
    env: Env,
    drive: <SharedDrive as runtime::Bind>::Bound,
    /// Which of the shelf's drives it is a part of.
    number: usize,
    switches: Arc<Switches>,
}

/// What a drive's error is to a host.
fn told(error: DriveError) -> BlockError {
    match error {
        DriveError::Bounds => BlockError::Bounds,
        DriveError::Gone | DriveError::Shrunk => BlockError::Stopped,
        _ => BlockError::Unavailable,
    }
}

impl Namespace {
    pub fn new(env: &Env, drive: &SharedDrive, number: usize, switches: Arc<Switches>) -> Self {
        Self(Rc::new(Inner { env: env.clone(), drive: env.bind(drive), number, switches }))
    }

    /// A drive that was made slow takes that longer.
    async fn waited(&self) {
        let slow = self.0.switches.slow(self.0.number);
        if slow > Nanos(0) {
            self.0.env.sleep(slow).await;
        }
    }

    async fn synced(&self, fua: bool) -> Result<(), BlockError> {
        if fua && self.volatile_cache() { self.0.drive.flush().await.map_err(told) } else { Ok(()) }
    }
}

impl Blocks for Namespace {
    fn bytes(&self) -> u64 {
        self.0.drive.info().bytes
    }

    fn block_bytes(&self) -> u32 {
        self.0.drive.info().block_bytes
    }

    fn strip_bytes(&self) -> u32 {
        self.block_bytes()
    }

    fn stripe_bytes(&self) -> u32 {
        self.block_bytes()
    }

    fn volatile_cache(&self) -> bool {
        self.0.drive.info().volatile_cache
    }

    async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        self.waited().await;
        let (outcome, into) = self.0.drive.read(offset, into).await;
        (outcome.map_err(told), into)
    }

    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        self.waited().await;
        self.0.drive.write(offset, core::slice::from_ref(&data), fua).await.map_err(told)
    }

    /// Not offered: no namespace of a shelf says that it is.
    async fn compare_and_write(&self, _: u64, _: (Buf, Buf), _: bool) -> Result<bool, BlockError> {
        Err(BlockError::Unavailable)
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        self.waited().await;
        self.0.drive.write_zeroes(offset, bytes).await.map_err(told)?;
        self.synced(fua).await
    }

    /// Zeros, so that what is read afterwards is the same each time.
    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        self.write_zeroes(offset, bytes, false).await
    }

    async fn flush(&self) -> Result<(), BlockError> {
        self.waited().await;
        self.0.drive.flush().await.map_err(told)
    }
}
