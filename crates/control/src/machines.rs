//! Virtual machines that have volumes over vhost-user: their sockets.
//!
//! A socket belongs to one export, which one machine has at a time: the next is let in once the one
//! before has gone. Its connection has a thread, which waits for what the machine says; its rings
//! are served by data cores ([`crate::rings`]), each as many as others.
//!
//! A machine that loses its connection comes again (QEMU: `reconnect`), and what was under way is
//! carried out by who serves it then.
//!
//! Invariant: what ends a machine's connection here takes nothing more of it first, and waits for
//! what is under way.

use crate::connection::Target;
use crate::data::Data;
use crate::lock::lock;
use crate::nvme::VolumeKey;
use crate::rings::RingWork;
use ::machines::{Config, Cores, Line, talk};
use engine::manage::command::ArrayStatus;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{CoreId, Uuid};
use vhost_user::limits::RINGS;

/// Numbers rings, so that none is taken for another.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What a volume's device is like.
pub fn device(array: &ArrayStatus, volume: Uuid) -> Config {
    let own = array.volumes.iter().find(|own| own.uuid == volume);
    Config {
        bytes: own.map_or(0, |own| own.bytes),
        block_bytes: array.block_bytes,
        best_bytes: array.strip_bytes,
        discard_bytes: array.discard_bytes,
        rings: RINGS,
    }
}

/// The rings of a machine that are served: by which core, and their numbers.
type Served = Arc<Mutex<BTreeMap<u16, (CoreId, u64)>>>;

/// Cores for one machine.
struct ForMachine {
    data: Data,
    target: Target,
    config: Arc<Mutex<Config>>,
    line: Line,
    /// Its first ring's core.
    first: u16,
    served: Served,
    under_way: Arc<()>,
    ended: BTreeMap<u16, Receiver<u16>>,
}

impl Cores for ForMachine {
    fn serve(&mut self, number: u16, ring: ::machines::Ring) -> Result<(), String> {
        let core = CoreId(self.first.wrapping_add(number) % self.data.cores());
        let own = NEXT.fetch_add(1, Ordering::Relaxed);
        let ((served, told), (ended, over)) = (channel(), channel());
        let (target, line, under_way) =
            (self.target.clone(), self.line.clone(), self.under_way.clone());
        let work = RingWork { number: own, ring, target, line, under_way, served, ended };
        self.data.serve_ring(core, work);
        told.recv().unwrap_or_else(|_| Err("the daemon ends".to_owned()))?;
        lock(&self.served).insert(number, (core, own));
        self.ended.insert(number, over);
        Ok(())
    }

    fn stop(&mut self, number: u16) -> Option<u16> {
        let (core, own) = lock(&self.served).remove(&number)?;
        self.data.stop_ring(core, own);
        self.ended.remove(&number)?.recv().ok()
    }

    fn config(&self) -> Config {
        *lock(&self.config)
    }
}

/// How long what is under way of a machine may take to end: a request is held up for about as long
/// by a drive that does not answer.
const DRAINS: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(10);

/// An export's socket: who comes there, and what for.
pub struct Socket {
    data: Data,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// What is served there, and what its device is like.
    served: Option<(Target, Arc<Mutex<Config>>)>,
    machine: Option<Machine>,
}

/// A machine that has the device.
#[derive(Clone)]
struct Machine {
    line: Line,
    served: Served,
    under_way: Arc<()>,
}

/// Lets the next machine in when the one before has gone, however its thread ends.
struct Leaves(Arc<Socket>);

impl Drop for Leaves {
    fn drop(&mut self) {
        lock(&self.0.inner).machine = None;
    }
}

impl Socket {
    /// Nothing is served there yet.
    pub fn new(data: Data) -> Arc<Self> {
        Arc::new(Self { data, inner: Mutex::default() })
    }

    /// Serves an export there; false if another one is.
    pub fn set(&self, target: Target, config: Config) -> bool {
        let mut inner = lock(&self.inner);
        if inner.served.as_ref().is_some_and(|(own, _)| own.export != target.export) {
            return false;
        }
        inner.served = Some((target, Arc::new(Mutex::new(config))));
        true
    }

    /// The volume is of so many bytes now: its machine is told.
    pub fn resized(&self, volume: &VolumeKey, bytes: u64) {
        let inner = lock(&self.inner);
        let Some((own, config)) = &inner.served else { return };
        if own.volume == volume.volume {
            lock(config).bytes = bytes;
            if let Some(machine) = &inner.machine {
                machine.line.changed();
            }
        }
    }

    /// A machine has come. One that comes while another has the device is sent away.
    pub fn came(self: &Arc<Self>, fd: OwnedFd) {
        let socket = UnixStream::from(fd);
        let mut inner = lock(&self.inner);
        let Some((target, config)) = inner.served.clone().filter(|_| inner.machine.is_none())
        else {
            return;
        };
        if socket.set_nonblocking(false).is_err() {
            return;
        }
        let (served, under_way, line) = (Served::default(), Arc::default(), Line::new(socket));
        let machine = Machine { line: line.clone(), served, under_way };
        inner.machine = Some(machine.clone());
        drop(inner);
        let gone = Leaves(self.clone());
        let cores = ForMachine {
            data: self.data.clone(),
            first: self.data.next_core().0,
            target: target.clone(),
            config,
            line: line.clone(),
            served: machine.served,
            under_way: machine.under_way,
            ended: BTreeMap::new(),
        };
        // Where there is no thread for it, it is sent away.
        let _ = std::thread::Builder::new().name("palisade-machine".to_owned()).spawn(move || {
            let _gone = gone;
            if let Err(why) = talk(&line, cores) {
                let export = &target.export;
                runtime::say(format_args!("palisade: the machine of export {export}: {why}"));
            }
        });
    }

    /// Whether a machine has it now.
    pub fn is_taken(&self) -> bool {
        lock(&self.inner).machine.is_some()
    }

    /// Nothing is served there any more: takes nothing more of the machine, waits until nothing of
    /// it is under way, for a bounded time, and ends its connection.
    pub async fn end(&self) {
        let machine = {
            let mut inner = lock(&self.inner);
            inner.served = None;
            inner.machine.clone()
        };
        let Some(machine) = machine else { return };
        let rings: Vec<_> = lock(&machine.served).values().copied().collect();
        for (core, number) in rings {
            self.data.stop_ring(core, number);
        }
        let end = Instant::now() + DRAINS;
        // This one, the socket's, the thread's; and one for each ring.
        while Arc::strong_count(&machine.under_way) > 3 && Instant::now() < end {
            tokio::time::sleep(LOOK).await;
        }
        machine.line.end();
        while self.is_taken() && Instant::now() < end {
            tokio::time::sleep(LOOK).await;
        }
    }
}
