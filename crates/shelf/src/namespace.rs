//! A namespace as a core serves it: a drive, which somebody may have made slow.

use crate::core::Env;
use crate::switches::Switches;
use drives::SharedDrive;
use io::blocks::OfDrive;
use io::{BlockError, Blocks, Buf, BufMut, Env as _};
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// A drive, or a part of it that is a namespace, on one core.
#[derive(Clone)]
pub(crate) struct Namespace(Rc<Inner>);

struct Inner {
    env: Env,
    drive: OfDrive<<SharedDrive as runtime::Bind>::Bound>,
    /// Which of the shelf's drives it is a part of.
    number: usize,
    switches: Arc<Switches>,
}

impl Namespace {
    pub fn new(env: &Env, drive: &SharedDrive, number: usize, switches: Arc<Switches>) -> Self {
        let drive = OfDrive::new(env.bind(drive), BlockError::Stopped);
        Self(Rc::new(Inner { env: env.clone(), drive, number, switches }))
    }

    /// A drive that was made slow takes that longer.
    async fn waited(&self) -> &OfDrive<<SharedDrive as runtime::Bind>::Bound> {
        let slow = self.0.switches.slow(self.0.number);
        if slow > Nanos(0) {
            self.0.env.sleep(slow).await;
        }
        &self.0.drive
    }
}

impl Blocks for Namespace {
    fn bytes(&self) -> u64 {
        self.0.drive.bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.0.drive.block_bytes()
    }

    fn strip_bytes(&self) -> u32 {
        self.0.drive.strip_bytes()
    }

    fn stripe_bytes(&self) -> u32 {
        self.0.drive.stripe_bytes()
    }

    fn volatile_cache(&self) -> bool {
        self.0.drive.volatile_cache()
    }

    async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        self.waited().await.read(offset, into).await
    }

    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        self.waited().await.write(offset, data, fua).await
    }

    async fn compare_and_write(
        &self,
        offset: u64,
        blocks: (Buf, Buf),
        fua: bool,
    ) -> Result<bool, BlockError> {
        self.0.drive.compare_and_write(offset, blocks, fua).await
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        self.waited().await.write_zeroes(offset, bytes, fua).await
    }

    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        self.waited().await.discard(offset, bytes).await
    }

    async fn flush(&self) -> Result<(), BlockError> {
        self.waited().await.flush().await
    }
}
