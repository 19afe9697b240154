//! One core's NVMe/TCP connections: how the target comes to this core's volumes.

use crate::cores::{Core, CoreEnv};
use crate::counters::OnCore;
use crate::lock::lock;

use engine::Volume;
use engine::array::message::ArrayId;
use engine::array::view::SlotState;
use front::Counted;
use io::{Env, Priority, Reach};
use nvme_target::{EndReason, Health, PortId, Volumes, Way};
use runtime::{Socket, Stream};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::sync::Notify;
use units::Uuid;

/// Names a volume of a running array, on every core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct VolumeKey {
    /// The running array.
    pub array: ArrayId,
    /// The volume.
    pub volume: Uuid,
}

/// Which volumes the queues of hosts have, on all cores, so that who ends an export learns when no
/// command for it is under way any more.
#[derive(Default, Debug)]
pub struct Uses(Mutex<BTreeMap<VolumeKey, Weak<()>>>);

impl Uses {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<VolumeKey, Weak<()>>> {
        lock(&self.0)
    }

    /// It is used as long as what this gives, or a clone of it, is there.
    fn begin(&self, key: VolumeKey) -> Arc<()> {
        let mut all = self.lock();
        if let Some(used) = all.get(&key).and_then(Weak::upgrade) {
            return used;
        }
        all.retain(|_, used| used.strong_count() > 0);
        let used = Arc::new(());
        all.insert(key, Arc::downgrade(&used));
        used
    }

    /// Whether a queue has it, or a command is under way.
    pub fn is_used(&self, key: VolumeKey) -> bool {
        self.lock().get(&key).is_some_and(|used| used.strong_count() > 0)
    }
}

/// What one queue's view of a volume holds, and with it each command. Clones of an [`Rc`] of it are
/// counted by this core alone: cores that share a volume pass no counter to and fro by commands.
pub struct Use(#[expect(dead_code, reason = "it is there to be dropped")] Arc<()>);

/// The volumes of a core.
pub struct CoreVolumes {
    core: Core,
    env: CoreEnv,
    uses: Arc<Uses>,
    counters: Rc<OnCore>,
}

impl Volumes for CoreVolumes {
    type Key = VolumeKey;
    type Volume = Counted<Volume<CoreEnv>, CoreEnv, Rc<Use>>;

    fn open(&self, key: &VolumeKey, _: PortId) -> Option<Self::Volume> {
        let volume = Volume::new(self.core.array(key.array)?, key.volume);
        let counted = Counted::new(volume, &self.env, self.counters.writer(key.volume));
        Some(counted.holding(Rc::new(Use(self.uses.begin(*key)))))
    }

    fn health(&self, key: &VolumeKey) -> Health {
        let Some(array) = self.core.array(key.array) else { return Health::default() };
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
    counters: Rc<OnCore>,
}

impl Server {
    /// Starts it; allocates its memory.
    pub fn new(
        (core, counters): (Core, Rc<OnCore>),
        env: CoreEnv,
        (target, uses): (Target, Arc<Uses>),
        turned_away: Arc<Notify>,
        reach: Option<&Arc<dyn Reach>>,
    ) -> Rc<Self> {
        let volumes = CoreVolumes { core, env: env.clone(), uses, counters: counters.clone() };
        let inner = nvme_target::Server::start(env, target, volumes, reach);
        Rc::new(Self { inner, turned_away, counters })
    }

    /// Serves a connection that came to a port.
    pub fn serve(self: &Rc<Self>, env: &CoreEnv, fd: OwnedFd, port: PortId, way: Way) {
        // A connection that can't be taken over is closed; the host sees that.
        let Ok(socket) = Socket::from_fd(env.reactor(), fd) else { return };
        let stream = Rc::new(Stream::new(socket, nvme_target::limits::AHEAD));
        let me = self.clone();
        env.spawn(Priority::First, async move {
            let end = me.inner.serve(stream, port, &way).await;
            if end == EndReason::Full {
                me.counters.ledger().turn_away_nvme();
                me.turned_away.notify_one();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_used_until_the_last_has_let_it_go() {
        let uses = Uses::default();
        let key = |volume| VolumeKey { array: ArrayId(1), volume: Uuid([volume; 16]) };
        assert!(!uses.is_used(key(1)));
        let first = uses.begin(key(1));
        let (second, other) = (uses.begin(key(1)), uses.begin(key(2)));
        drop(first);
        assert!(uses.is_used(key(1)));
        drop((second, other));
        assert!(!uses.is_used(key(1)) && !uses.is_used(key(2)));
        let _again = uses.begin(key(1));
        assert_eq!((uses.is_used(key(1)), uses.lock().len()), (true, 1));
    }
}
