//! One core's part of volumes that are files of this machine ([`crate::services`]): it answers what
//! the kernel asks of them, by descriptors that `palisade services` has opened and mounted.
//!
//! A file is served until it is not mounted any more. Once its array has stopped, or its volume is
//! gone, whoever uses it has errors: nobody waits.

use crate::connection::{Fences, Target};
use crate::cores::{Core, CoreEnv};
use crate::counters::OnCore;
use crate::here::Here;
use crate::nvme::VolumeKey;

use ::io::{Env, Priority, Reach};
use fuse::{Device, Link, Look, Unmounted};
use runtime::{Reactor, RequestDevice, RequestLine};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

/// A file that is to be served.
pub struct File {
    /// Of which volume.
    pub target: Target,
    /// What it looks like.
    pub look: Look,
    /// Dropped by each core that serves it, once that has ended.
    pub held: Arc<dyn Send + Sync>,
}

/// A mount for its fence.
struct Mount(RequestLine);

impl Link for Mount {
    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

/// A mounted file, as the kernel asks for it.
pub struct Kernel(RequestDevice);

impl Kernel {
    /// Takes an open descriptor of `/dev/fuse` over.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(reactor: &Reactor, fd: OwnedFd) -> io::Result<Self> {
        RequestDevice::from_fd(reactor, fd).map(Self)
    }
}

impl Device for Kernel {
    async fn ready(&self) -> Result<(), Unmounted> {
        self.0.ready().await.map_err(|_| Unmounted)
    }

    fn receive(&self, head: &mut [u8], rest: &mut [u8]) -> Result<Option<usize>, Unmounted> {
        let mut parts = [IoSliceMut::new(head), IoSliceMut::new(rest)];
        self.0.read(&mut parts).map_err(|_| Unmounted)
    }

    fn answer(&self, parts: &[IoSlice<'_>]) {
        self.0.write(parts);
    }

    fn link(&self) -> Arc<dyn Link> {
        Arc::new(Mount(self.0.line()))
    }
}

/// The files of one core.
pub struct Files(Rc<Here>);

impl Files {
    /// None yet.
    pub fn new(
        core: (Core, Rc<OnCore>),
        fences: Arc<Fences>,
        reach: Option<Arc<dyn Reach>>,
    ) -> Rc<Self> {
        Rc::new(Self(Here::new(core, fences, reach, fuse::MEMORY)))
    }

    /// Serves a file on this core. One that can't be is let go, and with the last core its mount is
    /// dead.
    pub fn serve(self: &Rc<Self>, env: &CoreEnv, fd: OwnedFd, file: File) {
        let File { target, look, held } = file;
        let key = VolumeKey { array: target.array, volume: target.volume };
        let Some(volume) = self.0.volume(env, key) else { return };
        let Ok(device) = Kernel::new(env.reactor(), fd) else { return };
        let (fence, memory) = (self.0.fence(key), self.0.memory());
        let own = env.clone();
        env.spawn(Priority::First, async move {
            let device = Rc::new(device);
            fuse::serve(own, device, (volume, look), (&fence, &memory)).await;
            drop(held);
        });
    }
}
