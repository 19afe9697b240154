//! One core's part of what virtual machines have over vhost-user ([`crate::machines`]): rings.

use crate::connection::{Fences, Target};
use crate::cores::{Core, CoreEnv};
use crate::counters::OnCore;
use crate::here::Here;
use crate::nvme::VolumeKey;
use ::io::local::{First, first_of};
use ::io::{Env, Priority, Reach};
use ::machines::{Caller, Line};
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use units::Uuid;
use vhost_user::wire::NAME;
use vhost_user::{Bell, Gone, Link, Share};

/// A ring that a core is to serve.
pub struct RingWork {
    /// Names it on its core.
    pub number: u64,
    /// What the machine said of it.
    pub ring: ::machines::Ring,
    /// Of which volume.
    pub target: Target,
    /// The machine's connection.
    pub line: Line,
    /// Dropped once nothing of it is under way.
    pub under_way: Arc<()>,
    /// Told whether it is served.
    pub served: Sender<Result<(), Unserved>>,
    /// Told once it is no more how many requests were taken.
    pub ended: Sender<u16>,
}

/// Why a core does not serve a ring.
pub enum Unserved {
    /// It has as many as it can have: another may serve it.
    Full(::machines::Ring),
    /// No core can.
    Wrong(&'static str),
}

/// What ends a ring. One task at a time waits for it, again and again: an `Event` would keep a
/// waker of each time.
#[derive(Default)]
struct Stop {
    is_said: Cell<bool>,
    /// It is not waited for any more: the ring is given up.
    is_severed: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl Stop {
    fn say(&self) {
        self.is_said.set(true);
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }

    async fn said(&self) {
        poll_fn(|cx| {
            if self.is_said.get() {
                return Poll::Ready(());
            }
            *self.waiter.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Whether a ring is over, for its fence.
#[derive(Default)]
struct Over(AtomicBool);

impl Link for Over {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A ring's bells.
struct Bells {
    kick: runtime::Bell,
    call: Caller,
    stop: Rc<Stop>,
    over: Arc<Over>,
}

impl Bells {
    fn over(&self) -> Gone {
        self.over.0.store(true, Ordering::Relaxed);
        Gone
    }
}

impl Bell for Bells {
    async fn rung(&self) -> Result<(), Gone> {
        match first_of(self.stop.said(), self.kick.rung()).await {
            First::Other(Ok(_)) => Ok(()),
            First::One(()) | First::Other(Err(_)) => Err(self.over()),
        }
    }

    fn is_over(&self) -> bool {
        self.stop.is_said.get()
    }

    fn is_severed(&self) -> bool {
        self.stop.is_severed.get()
    }

    fn ring(&self) {
        self.call.ring();
    }

    fn link(&self) -> Arc<dyn Link> {
        self.over.clone()
    }
}

/// The rings of one core.
pub struct Rings {
    here: Rc<Here>,
    served: RefCell<BTreeMap<u64, Rc<Stop>>>,
}

impl Rings {
    /// None yet.
    pub fn new(
        core: (Core, Rc<OnCore>),
        fences: Arc<Fences>,
        reach: Option<Arc<dyn Reach>>,
    ) -> Rc<Self> {
        let here = Here::new(core, fences, reach, vhost_user::MEMORY);
        Rc::new(Self { here, served: RefCell::default() })
    }

    /// Serves a ring on this core, until it is stopped.
    pub fn serve(self: &Rc<Self>, env: &CoreEnv, work: RingWork) {
        let RingWork { number, ring, target, line, under_way, served, ended } = work;
        let Some(share) = Share::open(&self.here.memory()) else {
            return drop(served.send(Err(Unserved::Full(ring))));
        };
        let stop = Rc::<Stop>::default();
        let ::machines::Ring { memory, place, kept, kick, call } = ring;
        let kick = runtime::Bell::from_fd(env.reactor(), kick);
        let bells = Bells { kick, call, stop: stop.clone(), over: Arc::default() };
        let made = vhost_user::Ring::new(memory, place, kept, bells);
        let made = made.map_err(|_| "a ring that can't be");
        let key = VolumeKey { array: target.array, volume: target.volume };
        let volume = self.here.volume(env, key).ok_or("its array does not run");
        let (ring, volume) = match (made, volume) {
            (Ok(ring), Ok(volume)) => (Rc::new(ring), volume),
            (Err(why), _) | (_, Err(why)) => {
                return drop(served.send(Err(Unserved::Wrong(why))));
            }
        };
        let fence = self.here.fence(key);
        let stopped = stop.clone();
        self.served.borrow_mut().insert(number, stop);
        let _ = served.send(Ok(()));
        let (own, me) = (env.clone(), self.clone());
        env.spawn(Priority::First, async move {
            let name = name_of(target.volume);
            vhost_user::serve(own, ring.clone(), (volume, name), (&fence, share)).await;
            me.served.borrow_mut().remove(&number);
            let _ = ended.send(ring.taken());
            // One that ends by itself can't be, and its machine has nothing of it.
            if !stopped.is_said.get() {
                line.end();
            }
            drop(under_way);
        });
    }

    /// Writes nothing more into a ring that was stopped, whatever of it is under way.
    pub fn sever(&self, number: u64) {
        if let Some(stop) = self.served.borrow().get(&number) {
            stop.say();
            stop.is_severed.set(true);
        }
    }

    /// Takes nothing more from a ring.
    pub fn stop(&self, number: u64) {
        if let Some(stop) = self.served.borrow().get(&number) {
            stop.say();
        }
    }
}

/// What a device is known by in its machine: the first digits of the volume's UUID.
fn name_of(volume: Uuid) -> [u8; NAME] {
    let mut name = [0; NAME];
    let digits = volume.to_string().replace('-', "");
    name.iter_mut().zip(digits.bytes()).for_each(|(to, from)| *to = from);
    name
}
