//! Virtual machines that have volumes over vhost-user: their sockets.
//!
//! A socket belongs to one export, which one machine has at a time: the next is let in once the one
//! before has gone. Its connection has a thread, which waits for what the machine says; its rings
//! are served by data cores ([`crate::rings`]), each as many as others.
//!
//! A machine that loses its connection comes again (QEMU: `reconnect`), and what was under way is
//! carried out by who serves it then.
//!
//! What ends a machine's connection here takes nothing more of it first, and waits for what is
//! under way. What lasts too long is given up: cores write nothing more of it, and it is left to
//! the next.
//!
//! Invariant: no two serve a ring at a time, wherever a machine comes next.

use crate::connection::Target;
use crate::data::Data;
use crate::lock::lock;
use crate::nvme::VolumeKey;
use crate::rings::{RingWork, Unserved};
use ::machines::{Config, Cores, Line, talk};
use engine::manage::command::ArrayStatus;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, Weak};
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
#[derive(Default)]
struct Rings {
    all: BTreeMap<u16, (CoreId, u64)>,
    /// Its connection is about to end: none is served from here on.
    is_closed: bool,
}

/// A machine that has the device.
#[derive(Clone)]
struct Machine {
    line: Line,
    rings: Arc<Mutex<Rings>>,
    /// Held once for each ring that is served, and once by its thread.
    under_way: Weak<()>,
}

impl Machine {
    /// Ends its connection, once nothing of it is under way. What is after some time is left to who
    /// serves the machine next.
    async fn end(&self, data: &Data) {
        let rings: Vec<_> = {
            let mut rings = lock(&self.rings);
            rings.is_closed = true;
            rings.all.values().copied().collect()
        };
        for (core, number) in &rings {
            data.stop_ring(*core, *number);
        }
        let end = Instant::now() + DRAINS;
        while self.under_way.strong_count() > 1 && Instant::now() < end {
            tokio::time::sleep(LOOK).await;
        }
        if self.under_way.strong_count() > 1 {
            data.sever_rings(rings).await;
        }
        self.line.end();
    }
}

/// Cores for one machine.
struct ForMachine {
    socket: Arc<Socket>,
    target: Target,
    config: Arc<Mutex<Config>>,
    line: Line,
    /// Its first ring's core.
    first: u16,
    rings: Arc<Mutex<Rings>>,
    under_way: Arc<()>,
    ended: BTreeMap<u16, Receiver<u16>>,
}

impl ForMachine {
    /// Has a core serve a ring: the first of them that has room, from `first` on. Its number there,
    /// and what says how it ended.
    fn begin(
        &self,
        first: u16,
        mut ring: ::machines::Ring,
    ) -> Result<((CoreId, u64), Receiver<u16>), String> {
        let data = &self.socket.data;
        for turn in 0..data.cores() {
            let core = CoreId(first.wrapping_add(turn) % data.cores());
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let ((served, told), (ended, over)) = (channel(), channel());
            let (target, line, under_way) =
                (self.target.clone(), self.line.clone(), self.under_way.clone());
            data.serve_ring(
                core,
                RingWork { number, ring, target, line, under_way, served, ended },
            );
            match told.recv() {
                Ok(Ok(())) => return Ok(((core, number), over)),
                Ok(Err(Unserved::Full(same))) => ring = same,
                Ok(Err(Unserved::Wrong(why))) => return Err(why.to_owned()),
                Err(_) => return Err("the daemon ends".to_owned()),
            }
        }
        Err("the data cores have no memory for more queues".to_owned())
    }
}

impl Cores for ForMachine {
    fn serve(&mut self, number: u16, ring: ::machines::Ring) -> Result<(), String> {
        let (own, over) = self.begin(self.first.wrapping_add(number), ring)?;
        let mut rings = lock(&self.rings);
        rings.all.insert(number, own);
        self.ended.insert(number, over);
        if rings.is_closed {
            self.socket.data.stop_ring(own.0, own.1);
        }
        drop(rings);
        self.socket.went(None);
        Ok(())
    }

    fn stop(&mut self, number: u16) -> Option<u16> {
        let (core, own) = lock(&self.rings).all.remove(&number)?;
        self.socket.data.stop_ring(core, own);
        self.ended.remove(&number)?.recv().ok()
    }

    fn config(&self) -> Config {
        *lock(&self.config)
    }
}

/// How long what is under way of a machine may take to end: a request is held up for longer only by
/// a drive that does not answer.
const DRAINS: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(10);
/// How often it is said again that a machine can't be served.
const QUIET: Duration = Duration::from_secs(60);

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
    /// Why the last machine could not be served.
    problem: Option<String>,
    /// When that was said.
    said: Option<Instant>,
}

/// Lets the next machine in when the one before has gone, however its thread ends.
struct Leaves(Arc<Socket>, Line);

impl Drop for Leaves {
    fn drop(&mut self) {
        let mut inner = lock(&self.0.inner);
        if inner.machine.as_ref().is_some_and(|machine| machine.line.is(&self.1)) {
            inner.machine = None;
        }
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
        let (rings, under_way, line) = (Arc::default(), Arc::new(()), Line::new(socket));
        let gone = Leaves(self.clone(), line.clone());
        let cores = ForMachine {
            socket: self.clone(),
            first: self.data.next_core().0,
            target,
            config,
            line: line.clone(),
            rings: Arc::clone(&rings),
            under_way: under_way.clone(),
            ended: BTreeMap::new(),
        };
        let under_way = Arc::downgrade(&under_way);
        inner.machine = Some(Machine { line: line.clone(), rings, under_way });
        drop(inner);
        // Where there is no thread for it, it is sent away.
        let _ = std::thread::Builder::new().name("palisade-machine".to_owned()).spawn(move || {
            let gone = gone;
            if let Err(why) = talk(&line, cores) {
                gone.0.went(Some(why));
            }
        });
    }

    /// A machine is served, or can't be: why.
    fn went(&self, problem: Option<String>) {
        let mut inner = lock(&self.inner);
        let is_said = inner.said.is_some_and(|then| then.elapsed() < QUIET);
        if let (Some(why), Some((target, _)), false) = (&problem, &inner.served, is_said) {
            let export = &target.export;
            runtime::say(format_args!("palisade: the machine of export {export}: {why}"));
            inner.said = Some(Instant::now());
        }
        inner.problem = problem;
    }

    /// Why the last machine could not be served.
    pub fn problem(&self) -> Option<String> {
        lock(&self.inner).problem.clone()
    }

    /// Whether a machine has it now.
    pub fn is_taken(&self) -> bool {
        lock(&self.inner).machine.is_some()
    }

    /// Nothing is served there any more: ends the connection of its machine once nothing of that is
    /// under way, which is waited for for a bounded time.
    pub async fn end(&self) {
        let machine = {
            let mut inner = lock(&self.inner);
            inner.served = None;
            inner.machine.take()
        };
        if let Some(machine) = machine {
            machine.end(&self.data).await;
        }
    }
}
