//! The data path as the control plane sees it: cores that run the engine and connections of hosts.
//!
//! Control and data talk one way only: requests go in as mail or as functions run on a core,
//! answers come back through a one-shot channel. Nothing on a core ever waits for the control
//! plane.
//!
//! Invariant: what a core owns stays in that core's own registry (a thread-local, outside the
//! engine), which functions run on the core reach.

use crate::connection::{Connections, Fences, Table};
use crate::cores::{Core, CoreEnv};
use crate::counters::{Ledger, OnCore};
use crate::devices::{Devices, Known, Queue};
use crate::fabrics::Fabrics;
use crate::failure;
use crate::files::{File, Files};
use crate::gpu::Parity;
use crate::nvme::{self, Server, Uses, VolumeKey};
use crate::rings::{RingWork, Rings};
use core::cell::RefCell;
use core::future::pending;
use drives::SharedDrive;
use drives::remote::Fabric;
use engine::Settings;
use engine::array::MANAGER;
use engine::mail::Mail;
use engine::manage::command::{ManageError, Reply, Request};
use io::{Env, Priority};
use nvme_target::{PortId, Product, Way};
use redfish::messages as say;
use redfish::view::Error;
use runtime::{CoreCounts, Handle, Runtime};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::LocalKey;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use units::{CoreId, Nanos};

/// How long commands under way may take to end when an export is deleted: a request of theirs is
/// held up for about as long by a drive that does not answer.
const LET_GO: Duration = Duration::from_secs(10);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(10);

thread_local! {
    /// The NBD connections of the core that this thread is.
    static CONNECTIONS: RefCell<Option<Rc<Connections>>> = const { RefCell::new(None) };
    /// What serves NVMe/TCP on the core that this thread is.
    static SERVER: RefCell<Option<Rc<Server>>> = const { RefCell::new(None) };
    /// What serves files on the core that this thread is.
    static FILES: RefCell<Option<Rc<Files>>> = const { RefCell::new(None) };
    /// What serves queues of devices on the core that this thread is.
    static DEVICES: RefCell<Option<Rc<Devices>>> = const { RefCell::new(None) };
    /// What serves rings of machines on the core that this thread is.
    static RINGS: RefCell<Option<Rc<Rings>>> = const { RefCell::new(None) };
}

fn connections() -> Option<Rc<Connections>> {
    CONNECTIONS.with_borrow(Clone::clone)
}

/// Empties the core's registry when it is dropped.
struct Registered;

impl Drop for Registered {
    fn drop(&mut self) {
        CONNECTIONS.take();
        SERVER.take();
        FILES.take();
        DEVICES.take();
        RINGS.take();
    }
}

/// Talks to the cores. Clones talk to the same.
#[derive(Clone)]
pub struct Data {
    handle: Handle<Mail<SharedDrive>, SharedDrive>,
    next: Arc<AtomicU16>,
    turned_away: Arc<Notify>,
    target: nvme::Target,
    uses: Arc<Uses>,
    ledger: Arc<Ledger>,
    fabrics: Arc<Fabrics>,
}

/// Starts the cores, and the engine on each; what they count goes into `ledger`. Dropping the
/// runtime stops them.
pub fn start(
    cores: u16,
    settings: Settings,
    parity: Arc<Parity>,
    ledger: Arc<Ledger>,
) -> std::io::Result<(Runtime<Mail<SharedDrive>, SharedDrive>, Data)> {
    let config = runtime::Config { cores, ..runtime::Config::default() };
    let turned_away = Arc::<Notify>::default();
    let told = turned_away.clone();
    let product = Product {
        model: "Palisade".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        quiesce_ms: quiesce_ms(settings.deadline),
        resets: true,
    };
    let target = nvme_target::Target::new(product);
    let (uses, fences) = (Arc::<Uses>::default(), Arc::<Fences>::default());
    let shared = (target.clone(), uses.clone());
    let counted = ledger.clone();
    let runtime = Runtime::start_with(config, move |env: CoreEnv| {
        let (accelerator, reach) = (parity.accelerator(), parity.reach());
        let core = Core::start_with(env.clone(), settings, accelerator);
        let core = (core, OnCore::new(env.core(), counted.clone()));
        let fences = fences.clone();
        FILES.set(Some(Files::new(core.clone(), fences.clone(), reach.clone())));
        DEVICES.set(Some(Devices::new(core.clone(), fences.clone(), reach.clone())));
        RINGS.set(Some(Rings::new(core.clone(), fences.clone(), reach.clone())));
        let connections = Connections::new(core.clone(), fences, told.clone(), reach.as_ref());
        CONNECTIONS.set(Some(connections));
        let server = Server::new(core, env.clone(), shared.clone(), told.clone(), reach.as_ref());
        SERVER.set(Some(server));
        // A stopping core drops its tasks. The end of its thread may never come, and would be too
        // late to let go of what the registry leads to.
        let registered = Registered;
        env.spawn(Priority::Last, async move {
            pending::<()>().await;
            drop(registered);
        });
    })?;
    let (handle, next) = (runtime.handle(), Arc::default());
    let served = handle.clone();
    let serve = move |fabric: &Fabric| {
        for core in (0..served.cores()).map(CoreId) {
            let fabric = fabric.clone();
            served.run_on(core, Box::new(move |env| fabric.serve(env)));
        }
    };
    let fabrics = Arc::new(Fabrics::new(cores, Box::new(serve)));
    let data = Data { handle, next, turned_away, target, uses, ledger, fabrics };
    Ok((runtime, data))
}

/// Most milliseconds in which a command changes blocks that was begun: it reads, and then writes,
/// and a drive has its deadline for each.
fn quiesce_ms(deadline: Nanos) -> u16 {
    u16::try_from(deadline.0.saturating_mul(2) / 1_000_000 + 1000).unwrap_or(u16::MAX)
}

impl Data {
    /// Data cores.
    pub fn cores(&self) -> u16 {
        self.handle.cores()
    }

    /// The NVMe/TCP target.
    pub fn target(&self) -> &nvme::Target {
        &self.target
    }

    /// What the cores count.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// How the cores spent their time, by number.
    pub fn core_counts(&self) -> Vec<CoreCounts> {
        (0..self.cores()).filter_map(|core| self.handle.counts(CoreId(core))).collect()
    }

    /// Waits until no queue of a host has a volume that is not exported any more, and no command
    /// for it is under way; false if that takes too long.
    pub async fn let_go(&self, volume: VolumeKey) -> bool {
        let since = Instant::now();
        while self.uses.is_used(volume) {
            if since.elapsed() >= LET_GO {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    }

    /// Waits until a client found no room since the last time.
    pub async fn turned_away(&self) {
        self.turned_away.notified().await;
    }

    /// Sends the engine a request and waits for its answer.
    pub async fn ask<T: Send + 'static>(
        &self,
        make: impl FnOnce(Reply<T>) -> Request<SharedDrive>,
    ) -> Result<T, Error> {
        self.ask_engine(make).await?.map_err(|error| failure::told(&error))
    }

    /// As [`Data::ask`], with the engine's own error within.
    pub async fn ask_engine<T: Send + 'static>(
        &self,
        make: impl FnOnce(Reply<T>) -> Request<SharedDrive>,
    ) -> Result<Result<T, ManageError>, Error> {
        let (sender, receiver) = oneshot::channel();
        let reply: Reply<T> = Box::new(move |answer| {
            // Nobody waits any more when the client has gone.
            let _ = sender.send(answer);
        });
        self.handle.post(MANAGER, Mail::Request(make(reply)));
        let stopped = |_| Error::new(&say::ENGINE_STOPPED, &[]);
        receiver.await.map_err(stopped)
    }

    /// Runs a test's work on the manager's core.
    #[cfg(test)]
    pub fn run_on_manager(&self, work: impl FnOnce() + Send + 'static) {
        self.handle.run_on(MANAGER, Box::new(move |_| work()));
    }

    /// Has a core do something by what serves a front end there, if that does still.
    fn on<T: 'static>(
        &self,
        core: CoreId,
        front: &'static LocalKey<RefCell<Option<Rc<T>>>>,
        act: impl FnOnce(&Rc<T>, &CoreEnv) + Send + 'static,
    ) {
        self.handle.run_on(
            core,
            Box::new(move |env| {
                // Not while it is borrowed: what is done may ask for it again.
                if let Some(own) = front.with_borrow(Clone::clone) {
                    act(&own, env);
                }
            }),
        );
    }

    /// Serves a connection on the next core in turn; one over a socket of this machine came no way.
    pub fn serve(&self, fd: OwnedFd, way: Option<Way>, table: Arc<Table>) {
        let serve = move |own: &Rc<Connections>, env: &_| own.serve(env, (fd, way), table);
        self.on(self.next_core(), &CONNECTIONS, serve);
    }

    /// Serves an NVMe/TCP connection on the next core in turn.
    pub fn serve_nvme(&self, fd: OwnedFd, port: PortId, way: Way) {
        let serve = move |own: &Rc<Server>, env: &_| own.serve(env, fd, port, way);
        self.on(self.next_core(), &SERVER, serve);
    }

    /// Serves a file of this machine on a core.
    pub fn serve_file(&self, core: CoreId, fd: OwnedFd, file: File) {
        self.on(core, &FILES, move |own: &Rc<Files>, env| own.serve(env, fd, file));
    }

    /// Serves a queue of a device of this machine on a core.
    pub fn serve_device(&self, core: CoreId, queue: Queue, known: Arc<Known>) {
        self.on(core, &DEVICES, move |own: &Rc<Devices>, env| own.serve(env, queue, known));
    }

    /// The next core in turn.
    pub fn next_core(&self) -> CoreId {
        CoreId(self.next.fetch_add(1, Ordering::Relaxed) % self.cores())
    }

    /// Serves a ring of a machine on a core.
    pub fn serve_ring(&self, core: CoreId, work: RingWork) {
        self.on(core, &RINGS, move |own: &Rc<Rings>, env| own.serve(env, work));
    }

    /// Has a core take nothing more from a ring.
    pub fn stop_ring(&self, core: CoreId, number: u64) {
        self.on(core, &RINGS, move |own: &Rc<Rings>, _| own.stop(number));
    }

    /// Has cores give rings up: none is written any more once this is over.
    pub async fn sever_rings(&self, all: Vec<(CoreId, u64)>) {
        for (core, number) in all {
            self.on(core, &RINGS, move |own: &Rc<Rings>, _| own.sever(number));
        }
        // A core that has stopped writes nothing.
        let _ = self.turn().await;
    }

    /// Whether all cores have io_uring.
    pub fn has_rings(&self) -> bool {
        self.handle.has_rings()
    }

    /// Drives behind NVMe over Fabrics.
    pub const fn fabrics(&self) -> &Arc<Fabrics> {
        &self.fabrics
    }

    /// Waits until every core has done a turn; false where one has stopped.
    pub async fn turn(&self) -> bool {
        self.on_every_core(|| || ()).await
    }

    /// Ends the connections of an export, or with `None` all of an address, on every core.
    pub async fn end_connections(&self, table: &Arc<Table>, export: Option<&str>) {
        // A core that stopped has no connections any more.
        self.on_every_core(|| {
            let (table, export) = (table.clone(), export.map(str::to_owned));
            move || {
                if let Some(connections) = connections() {
                    connections.end(&table, export.as_deref());
                }
            }
        })
        .await;
    }

    /// Has each core do something, one after the other; false where one has stopped.
    async fn on_every_core<W: FnOnce() + Send + 'static>(&self, work: impl Fn() -> W) -> bool {
        let mut is_everywhere = true;
        for core in (0..self.cores()).map(CoreId) {
            let (sender, receiver) = oneshot::channel();
            let own = work();
            self.handle.run_on(
                core,
                Box::new(move |_| {
                    own();
                    let _ = sender.send(());
                }),
            );
            is_everywhere &= receiver.await.is_ok();
        }
        is_everywhere
    }
}
