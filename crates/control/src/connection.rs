//! One core's NBD connections: a socket as the front end wants it, the exports it may choose
//! from, and a list of what is connected, so that connections can be ended; and the fences that the
//! connections of all cores share.
//!
//! States of a connection: shaking hands (no export opened; ended after [`HANDSHAKE`]) → serving
//! an export → over (the client sends nothing more; ended after [`LINGER`]) → ended (by the client,
//! by a mistake of the client, or because the export went). One more than the core has memory for
//! is ended at once, and the control plane told.
//!
//! Invariants: a connection is in its core's list from before its first byte until its task ends;
//! its socket is closed then. Its end is seen from the first byte on, also while it is not looked
//! for requests, and its fence told.

use crate::cores::{Core, CoreEnv};
use crate::counters::{Arrival, OnCore};
use crate::lock::lock;
use crate::nvme::VolumeKey;

use core::cell::RefCell;
use engine::Volume;
use engine::array::message::ArrayId;
use front::Counted;
use io::{Env, Priority, Reach};
use nbd::{ConnectionMemory, EndReason, Exports, Fence, Link, Transport};
use nvme_target::Way;
use runtime::{Line, Socket, Stream};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::Notify;
use units::{Nanos, Uuid};

/// How long a client may take to choose an export.
const HANDSHAKE: Nanos = Nanos::from_millis(60_000);

/// How long a client that sends nothing more may take to receive its answers: others wait for what
/// it still has to change. More than a hung drive holds them up.
const LINGER: Nanos = Nanos::from_millis(30_000);

/// What an export serves.
#[derive(Clone, Debug)]
pub struct Target {
    /// Names the export: `ARRAY:NUMBER`.
    pub export: String,
    /// The running array.
    pub array: ArrayId,
    /// The volume.
    pub volume: Uuid,
}

/// The exports of one address by the names that clients use, shared by all cores.
#[derive(Default, Debug)]
pub struct Table {
    targets: Mutex<BTreeMap<String, Target>>,
}

impl Table {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Target>> {
        lock(&self.targets)
    }

    /// Adds an export; false if the name is taken.
    pub fn add(&self, name: &str, target: Target) -> bool {
        let mut targets = self.lock();
        let free = !targets.contains_key(name);
        if free {
            targets.insert(name.to_owned(), target);
        }
        free
    }

    /// Removes an export; true if none is left.
    pub fn remove(&self, export: &str) -> bool {
        let mut targets = self.lock();
        targets.retain(|_, target| target.export != export);
        targets.is_empty()
    }
}

/// The fences of volumes that have connections, on all cores and at all addresses.
#[derive(Default, Debug)]
pub struct Fences(Mutex<BTreeMap<VolumeKey, Weak<Fence>>>);

impl Fences {
    /// The one of a volume, there as long as anybody has it.
    pub fn of(&self, key: VolumeKey) -> Arc<Fence> {
        let mut all = lock(&self.0);
        if let Some(fence) = all.get(&key).and_then(Weak::upgrade) {
            return fence;
        }
        all.retain(|_, fence| fence.strong_count() > 0);
        let fence = Arc::<Fence>::default();
        all.insert(key, Arc::downgrade(&fence));
        fence
    }
}

/// A connection for its fence.
struct Hold(Line);

impl Link for Hold {
    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

/// What one connection may choose from; remembers what it chose.
struct Choice {
    core: Core,
    env: CoreEnv,
    counters: Rc<OnCore>,
    table: Arc<Table>,
    fences: Arc<Fences>,
    open: Rc<Open>,
}

impl Exports for Choice {
    type Volume = Counted<Volume<CoreEnv>, CoreEnv>;

    fn list(&self) -> Vec<String> {
        self.table.lock().keys().cloned().collect()
    }

    fn open(&self, name: &str) -> Option<(Self::Volume, Arc<Fence>)> {
        let Target { export, array, volume } = self.table.lock().get(name).cloned()?;
        let bound = self.core.array(array)?;
        *self.open.export.borrow_mut() = Some(export);
        let fence = self.fences.of(VolumeKey { array, volume });
        *self.open.fence.borrow_mut() = Some(fence.clone());
        let writer = self.counters.writer(volume);
        Some((Counted::new(Volume::new(bound, volume), &self.env, writer), fence))
    }

    fn link(&self) -> Arc<dyn Link> {
        // The export that was opened last is the one that is served.
        if let Some(export) = &*self.open.export.borrow() {
            *self.open.arrival.borrow_mut() =
                Some(self.counters.ledger().arrive(export, self.open.way.clone()));
        }
        Arc::new(Hold(self.open.line.clone()))
    }
}

/// A connection that is there.
struct Open {
    stream: Rc<Stream>,
    line: Line,
    table: Arc<Table>,
    /// How it came over the network.
    way: Option<Way>,
    export: RefCell<Option<String>>,
    fence: RefCell<Option<Arc<Fence>>>,
    /// Once it has its export.
    arrival: RefCell<Option<Arrival>>,
}

/// The connections of one core.
pub struct Connections {
    core: Core,
    counters: Rc<OnCore>,
    fences: Arc<Fences>,
    memory: Rc<ConnectionMemory>,
    open: RefCell<Vec<Rc<Open>>>,
    /// Told when a client finds no room.
    turned_away: Arc<Notify>,
}

impl Connections {
    /// None yet; allocates their memory, where a device may reach it. `turned_away` is told when a
    /// client finds no room.
    pub fn new(
        (core, counters): (Core, Rc<OnCore>),
        fences: Arc<Fences>,
        turned_away: Arc<Notify>,
        reach: Option<&Arc<dyn Reach>>,
    ) -> Rc<Self> {
        let memory = ConnectionMemory::reached(nbd::MemorySize::default(), reach);
        Rc::new(Self { core, counters, fences, memory, open: RefCell::default(), turned_away })
    }

    /// Serves a connection on this core.
    pub fn serve(
        self: &Rc<Self>,
        env: &CoreEnv,
        (fd, way): (OwnedFd, Option<Way>),
        table: Arc<Table>,
    ) {
        // A connection that can't be taken over is closed; the client sees that.
        let Ok(socket) = Socket::from_fd(env.reactor(), fd) else { return };
        let line = socket.line();
        let stream = Rc::new(Stream::new(socket.clone(), nbd::limits::AHEAD));
        let open = Rc::new(Open {
            stream: stream.clone(),
            line,
            table: table.clone(),
            way,
            export: RefCell::default(),
            fence: RefCell::default(),
            arrival: RefCell::default(),
        });
        self.open.borrow_mut().push(open.clone());
        let (core, fences) = (self.core.clone(), self.fences.clone());
        let counters = self.counters.clone();
        let choice = Choice { core, env: env.clone(), counters, table, fences, open: open.clone() };
        // The timer outlives the connection: it must not keep its socket open.
        let (me, late) = (self.clone(), Rc::downgrade(&open));
        let known = late.clone();
        let (own_env, after) = (env.clone(), env.clone());
        env.spawn(Priority::First, async move {
            let end = nbd::serve_connection(own_env, stream, choice, me.memory.clone()).await;
            let ledger = me.counters.ledger();
            match end {
                EndReason::Refused => {
                    ledger.turn_away_nbd();
                    me.turned_away.notify_one();
                }
                EndReason::UnknownExport => ledger.turn_away_nbd(),
                _ => {}
            }
            me.open.borrow_mut().retain(|other| !Rc::ptr_eq(other, &open));
        });
        env.spawn(Priority::First, async move {
            socket.over().await;
            drop(socket);
            let fence = |open: Rc<Open>| open.fence.borrow().clone();
            let Some(fence) = known.upgrade().and_then(fence) else { return };
            fence.look();
            drop(fence);
            after.sleep(LINGER).await;
            if let Some(open) = known.upgrade() {
                open.stream.close();
            }
        });
        let patience = env.sleep(HANDSHAKE);
        env.spawn(Priority::First, async move {
            patience.await;
            if let Some(open) = late.upgrade().filter(|open| open.export.borrow().is_none()) {
                open.stream.close();
            }
        });
    }

    /// Ends the connections of an export, or with `None` all of an address.
    pub fn end(&self, table: &Arc<Table>, export: Option<&str>) {
        for open in self.open.borrow().iter().filter(|open| Arc::ptr_eq(&open.table, table)) {
            if export.is_none() || open.export.borrow().as_deref() == export {
                open.stream.close();
            }
        }
    }
}
