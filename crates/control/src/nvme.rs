//! One core's NVMe/TCP connections: how the target comes to this core's volumes.

use crate::data::{Core, CoreEnv};
use crate::stream::{NVME_AHEAD, Stream};
use engine::Volume;
use engine::array::message::ArrayId;
use engine::array::view::SlotState;
use io::{Env, Priority};
use nvme_target::{EndReason, Health, PortId, Volumes};
use runtime::Socket;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;
use units::Uuid;

/// Names a volume of a running array, on every core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumeKey {
    /// The running array.
    pub array: ArrayId,
    /// The volume.
    pub volume: Uuid,
}

/// The volumes of a core.
pub struct CoreVolumes(Core);

impl Volumes for CoreVolumes {
    type Key = VolumeKey;
    type Volume = Volume<CoreEnv>;

    fn open(&self, key: &VolumeKey) -> Option<Self::Volume> {
        Some(Volume::new(self.0.array(key.array)?, key.volume))
    }

    fn health(&self, key: &VolumeKey) -> Health {
        let Some(array) = self.0.array(key.array) else { return Health::default() };
        let bound = array.bound();
        let view = &bound.view;
        Health {
            is_degraded: view.slots.iter().any(|slot| slot.state != SlotState::InSync),
            media_errors: view.lost.listed.len() as u64,
        }
    }
}

/// The target, as all cores and the control plane share it.
pub type Target = Arc<nvme_target::Target<VolumeKey>>;

/// The part of the target that runs on one core.
pub struct Server {
    inner: Rc<nvme_target::Server<CoreEnv, Stream, CoreVolumes>>,
    /// Told when a host finds no room.
    turned_away: Arc<Notify>,
}

impl Server {
    /// Starts it; allocates its memory.
    pub fn new(core: Core, env: CoreEnv, target: Target, turned_away: Arc<Notify>) -> Rc<Self> {
        let inner = nvme_target::Server::start(env, target, CoreVolumes(core));
        Rc::new(Self { inner, turned_away })
    }

    /// Serves a connection that came to a port through an address of this machine.
    pub fn serve(self: &Rc<Self>, env: &CoreEnv, fd: OwnedFd, port: PortId, local: IpAddr) {
        // A connection that can't be taken over is closed; the host sees that.
        let Ok(socket) = Socket::from_fd(env.reactor(), fd) else { return };
        let stream = Rc::new(Stream::new(socket, NVME_AHEAD));
        let me = self.clone();
        env.spawn(Priority::First, async move {
            let end = me.inner.serve(stream, port, &local.to_string()).await;
            if end == EndReason::Full {
                me.turned_away.notify_one();
            }
        });
    }
}
