//! A shelf with the drives of a trial: the product's own target, over a simulated network.
//!
//! It has the last core of a world, and each drive is a namespace of one subsystem, in an access
//! group of its own. One server may come after another in the same world ([`crate::halt`]): each
//! has two ports of its own there, so that the shelf knows whose a request is. Modules that are
//! pulled are ports that are.

use crate::machine::Message;
use crate::owner::{Book, Booked, Server as Which};
use front::ConnectionMemory;
use front::memory::MemorySize;
use io::blocks::OfDrive;
use io::{BlockError, Env};
use nvme::log::Access;
use nvme::nqn::Nqn;
use nvme_target::access::{Export, Group, Hosts, Port, PortId};
use nvme_target::{Health, Product, Server, Target, Volumes, Way};
use sim::net::End;
use sim::{Rng, SharedSimDrive, SimDrive, SimEnv, World};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// What the drives are called together.
pub const SUBSYSTEM: &str = "nqn.2026-11.example:shelf";
/// Hosts that see them, by their numbers less one.
pub const HOSTS: [&str; 2] = ["nqn.2026-11.example:server", "nqn.2026-11.example:server-2"];
/// The ports of each server.
const PORTS: [[PortId; 2]; 2] = [[PortId(1), PortId(2)], [PortId(3), PortId(4)]];

/// Memory of the target.
const MEMORY: MemorySize = MemorySize {
    connections: 128,
    reserve_bytes: nvme_target::limits::MEMORY.reserve_bytes,
    pieces: [64, 32, 16, 8],
};

/// One end of a connection.
pub type Line = End<Message>;

/// The drives as the target serves them.
#[derive(Clone)]
struct Served {
    drives: Rc<RefCell<Vec<SimDrive>>>,
    book: Rc<Book>,
}

impl Volumes for Served {
    type Key = usize;
    type Volume = Booked;

    const COMPARES_AND_WRITES: bool = false;
    const CACHES_STAY: bool = true;

    fn open(&self, number: &usize, port: PortId) -> Option<Booked> {
        let by = if PORTS[1].contains(&port) { Which::Second } else { Which::First };
        let drive = self.drives.borrow().get(*number)?.clone();
        // A target that has a dead drive says that it can't read it.
        let volume = OfDrive::new(drive, BlockError::Unavailable);
        Some(Booked { volume, number: *number, by, book: self.book.clone() })
    }

    fn health(&self, _: &usize) -> Health {
        Health::default()
    }
}

/// A shelf with the drives of a trial.
pub struct Shelf {
    /// Its core.
    pub env: SimEnv<Message>,
    /// Its drives.
    pub drives: Vec<SharedSimDrive>,
    /// Who has changed them.
    pub book: Rc<Book>,
    served: Served,
    server: Rc<Server<SimEnv<Message>, Line, Served>>,
    target: Arc<Target<usize>>,
}

impl Shelf {
    /// Has these drives behind a shelf, which has the last core of a world. Whether controllers can
    /// end each other; else fences end by time.
    pub fn new(world: &World<Message>, drives: &[SharedSimDrive], resets: bool) -> Rc<Self> {
        let env = world.envs().pop().expect("it has cores");
        let product = Product { model: "Shelf".into(), version: "1".into(), quiesce_ms: 0, resets };
        let target = Target::new(product);
        for port in PORTS.into_iter().flatten() {
            target.set_port(port, Port { address: None, service: 4420 });
        }
        let book = Book::new(drives);
        let served = Served { drives: Rc::default(), book: book.clone() };
        let memory = ConnectionMemory::new(MEMORY);
        let server = Server::start_with(env.clone(), target.clone(), served.clone(), memory);
        for number in 0..drives.len() {
            target.add(&number.to_string(), export(number)).expect("another number");
        }
        target.settle();
        let shelf = Self { env, drives: drives.to_vec(), book, served, server, target };
        shelf.open_drives();
        Rc::new(shelf)
    }

    fn open_drives(&self) {
        *self.served.drives.borrow_mut() =
            self.drives.iter().map(|own| self.env.bind(own)).collect();
    }

    /// Serves a connection that came to a port of a server.
    pub async fn serve(&self, line: Line, (by, port): (Which, usize)) {
        let way = Way { host: "192.0.2.9".to_owned(), local: "192.0.2.1".to_owned() };
        self.server.serve(Rc::new(line), PORTS[by as usize][port], &way).await;
    }

    /// A drive of some number, counted from 1, is reached so by a port of a server.
    pub fn set_access(&self, (by, port): (Which, usize), drive: u32, access: Access) {
        let group = Group::new(drive).expect("a drive of the trial");
        self.target.set_access(PORTS[by as usize][port], group, access);
    }

    /// Drives lose their power. They answer again once they are opened anew, which they are.
    pub fn lose_power(&self, rng: &mut Rng) {
        for drive in self.drives.iter().filter(|drive| !drive.is_gone()) {
            drive.power_cut(rng.bits());
        }
        self.open_drives();
    }

    /// The world ends: what the target has is given back.
    pub fn abandon(&self) {
        self.server.abandon();
    }
}

/// A name.
pub fn nqn(name: &str) -> Nqn {
    Nqn::new(name).expect("a possible name")
}

fn export(number: usize) -> Export<usize> {
    let mut uuid = [9; 16];
    uuid[0] = number as u8;
    Export {
        subsystem: nqn(SUBSYSTEM),
        nsid: number as u32 + 1,
        volume: number,
        nguid: uuid,
        uuid,
        ports: PORTS.into_iter().flatten().collect(),
        hosts: Hosts::Only(BTreeSet::from(HOSTS.map(nqn))),
        group: Group::new(number as u32 + 1).unwrap_or(Group::FIRST),
    }
}
