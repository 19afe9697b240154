//! What runs on a core: connections at all ports, and on the first core those who listen there.
//!
//! What a core owns stays in its own registry, which functions run on the core reach.

use crate::gate::{Gate, Gates};
use crate::namespace::Namespace;
use crate::switches::Switches;
use core::cell::{Cell, RefCell};
use core::pin::pin;
use drives::SharedDrive;
use io::local::{Event, First, first_of};
use io::{Env as _, Priority};
use nvme_target::{Health, PortId, Server, Target, Volumes, Way};
use runtime::{Handle, Listener, Socket};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use units::{CoreId, Nanos};

/// A core of a shelf's.
pub(crate) type Env = runtime::CoreEnv<(), SharedDrive>;
/// What talks to cores.
pub(crate) type Cores = Handle<(), SharedDrive>;

/// How long accepting rests after an error, such as too many open files.
const REST: Nanos = Nanos::from_millis(100);

/// Names a namespace: drive and number, both from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub drive: usize,
    pub namespace: usize,
}

/// What all cores share.
pub(crate) struct Shared {
    pub target: Arc<Target<Key>>,
    pub switches: Arc<Switches>,
    /// Drives by namespace, as each port reaches them.
    pub drives: Vec<Vec<Vec<SharedDrive>>>,
    /// Names of subsystems.
    pub names: Vec<String>,
    /// The core that the next connection is served on.
    pub next: AtomicU16,
}

impl Shared {
    /// The target's name of a port.
    pub fn port_id(port: usize) -> PortId {
        PortId(port as u16 + 1)
    }
}

/// The namespaces of a core.
struct Namespaces {
    env: Env,
    shared: Arc<Shared>,
}

impl Volumes for Namespaces {
    type Key = Key;
    type Volume = Namespace;
    const COMPARES_AND_WRITES: bool = false;
    const CACHES_STAY: bool = true;

    fn open(&self, key: &Key, port: PortId) -> Option<Namespace> {
        let at_port = self.shared.drives.get(key.drive)?.get(key.namespace)?;
        let drive = at_port.get(usize::from(port.0).checked_sub(1)?)?;
        Some(Namespace::new(&self.env, drive, key.drive, self.shared.switches.clone()))
    }

    fn health(&self, _: &Key) -> Health {
        Health::default()
    }
}

/// A port that listens.
struct Door {
    listener: Listener,
    is_closed: Cell<bool>,
    changed: Event,
}

/// What a core has.
pub(crate) struct Core {
    env: Env,
    shared: Arc<Shared>,
    server: Rc<Server<Env, Gate, Namespaces>>,
    gates: Rc<Gates>,
    doors: RefCell<BTreeMap<usize, Rc<Door>>>,
}

thread_local! {
    static CORE: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Begins on this core.
pub(crate) fn begin(env: &Env, shared: &Arc<Shared>) {
    let volumes = Namespaces { env: env.clone(), shared: shared.clone() };
    let names: Rc<[String]> = shared.names.clone().into();
    let core = Core {
        env: env.clone(),
        shared: shared.clone(),
        server: Server::start(env.clone(), shared.target.clone(), volumes, None),
        gates: Gates::new(shared.switches.clone(), names),
        doors: RefCell::default(),
    };
    CORE.set(Some(Rc::new(core)));
    // A stopping core drops its tasks; with this one, what the registry leads to.
    env.spawn(Priority::Last, async {
        let _registered = Registered;
        core::future::pending::<()>().await;
    });
}

/// Empties the core's registry when it is dropped.
struct Registered;

impl Drop for Registered {
    fn drop(&mut self) {
        CORE.take();
    }
}

/// What this thread's core has.
pub(crate) fn here() -> Option<Rc<Core>> {
    CORE.with_borrow(Clone::clone)
}

impl Core {
    /// The switches were changed.
    pub fn look_again(&self) {
        self.gates.look_again();
        self.doors.borrow().values().for_each(|door| door.changed.notify());
    }

    /// Ends connections at once.
    pub fn reset(&self, is_meant: impl Fn(usize, Option<usize>) -> bool) {
        self.gates.reset(is_meant);
    }

    /// Listens at a port, and hands connections to all cores in turn.
    pub fn listen(&self, port: usize, listener: TcpListener, cores: Cores) -> std::io::Result<()> {
        let listener = Listener::from_tcp(self.env.reactor(), listener)?;
        let (is_closed, changed) = (Cell::default(), Event::default());
        let door = Rc::new(Door { listener, is_closed, changed });
        self.doors.borrow_mut().insert(port, door.clone());
        let (env, shared) = (self.env.clone(), self.shared.clone());
        self.env.spawn(Priority::First, async move {
            accept((env, shared), port, &door, cores).await;
        });
        Ok(())
    }

    /// Does not listen at a port any more once this returns.
    pub fn close(&self, port: usize) -> std::io::Result<()> {
        let Some(door) = self.doors.borrow_mut().remove(&port) else { return Ok(()) };
        door.is_closed.set(true);
        door.changed.notify();
        // The task that accepts there drops it later.
        door.listener.close()
    }

    fn serve(&self, fd: OwnedFd, port: usize) {
        let (fd, way) = way(fd);
        // A connection that can't be taken over is closed; the host sees that.
        let Ok(socket) = Socket::from_fd(self.env.reactor(), fd) else { return };
        let gate = Rc::new(self.gates.enter(socket, port));
        let server = self.server.clone();
        self.env.spawn(Priority::First, async move {
            server.serve(gate, Shared::port_id(port), &way).await;
        });
    }
}

/// By which addresses a connection came.
fn way(fd: OwnedFd) -> (OwnedFd, Way) {
    let stream = TcpStream::from(fd);
    let text = |address: std::io::Result<SocketAddr>| {
        address.map_or_else(|_| String::new(), |address| address.ip().to_canonical().to_string())
    };
    let way = Way { host: text(stream.peer_addr()), local: text(stream.local_addr()) };
    (stream.into(), way)
}

/// Accepts connections at a port until it is closed; none while that is silent.
async fn accept((env, shared): (Env, Arc<Shared>), port: usize, door: &Door, cores: Cores) {
    loop {
        let is_silent = || shared.switches.is_port_silent(port);
        let is_open = || (door.is_closed.get() || !is_silent()).then_some(());
        door.changed.wait_until(is_open).await;
        if door.is_closed.get() {
            return;
        }
        let changed = || (door.is_closed.get() || is_silent()).then_some(());
        // One for all connections: each that is begun leaves a waker behind until it happens.
        let mut changed = pin!(door.changed.wait_until(changed));
        loop {
            match first_of(door.listener.accept_fd(), changed.as_mut()).await {
                First::One(Ok(fd)) => {
                    let next = shared.next.fetch_add(1, Ordering::Relaxed);
                    let core = CoreId(next % env.cores());
                    let serve = move |_: &Env| {
                        if let Some(core) = here() {
                            core.serve(fd, port);
                        }
                    };
                    cores.run_on(core, Box::new(serve));
                }
                First::One(Err(_)) if door.is_closed.get() => return,
                First::One(Err(_)) => env.sleep(REST).await,
                First::Other(()) => break,
            }
        }
    }
}
