//! What the tests of this crate share: a deterministic executor, a memory volume, a transport in
//! memory, and a client that speaks bytes.
//!
//! Invariant: no threads, no real time; a test that can't go on stalls and fails.
#![allow(dead_code)]

pub mod client;
pub mod executor;
pub mod transport;

use client::Client;
use executor::{Core, TestEnv};
use palisade_nbd::{
    ConnectionMemory, EndReason, Exports, Fence, Link, MemorySize, serve_connection,
};
use sim::volume::MemoryVolume;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::Pipe;

/// Named volumes.
#[derive(Clone, Default)]
pub struct Shelf(pub Vec<(String, MemoryVolume)>);

/// The fences of volumes, by name.
pub type Fences = Rc<RefCell<BTreeMap<String, Arc<Fence>>>>;

/// Whether a client is gone, as the system of the server knows it.
#[derive(Default)]
pub struct Gone(AtomicBool);

impl Gone {
    /// It is.
    pub fn tell(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Link for Gone {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one connection may choose from.
pub struct Choice {
    shelf: Shelf,
    fences: Fences,
    gone: Arc<Gone>,
}

impl Choice {
    /// Of a client whose end is noticed in no other way than by its connection.
    pub fn new(shelf: &Shelf, fences: &Fences) -> Self {
        Self { shelf: shelf.clone(), fences: fences.clone(), gone: Arc::default() }
    }
}

impl Exports for Choice {
    type Volume = MemoryVolume;

    fn list(&self) -> Vec<String> {
        self.shelf.0.iter().map(|(name, _)| name.clone()).collect()
    }

    fn open(&self, name: &str) -> Option<(MemoryVolume, Arc<Fence>)> {
        let (name, volume) = self.shelf.0.iter().find(|(known, _)| known == name)?;
        let fence = self.fences.borrow_mut().entry(name.clone()).or_default().clone();
        Some((volume.clone(), fence))
    }

    fn link(&self) -> Arc<dyn Link> {
        self.gone.clone()
    }
}

/// One core with a server on it.
pub struct World {
    pub core: Rc<Core>,
    pub shelf: Shelf,
    pub memory: Rc<ConnectionMemory>,
    fences: Fences,
}

/// The memory most tests run with: little.
pub const SIZE: MemorySize =
    MemorySize { connections: 4, reserve_bytes: 64 << 10, pieces: [8, 0, 4, 4] };

impl World {
    /// A server with the volume as its only export, "vol".
    pub fn new(volume: &MemoryVolume) -> Self {
        Self::with(Shelf(vec![("vol".into(), volume.clone())]), SIZE)
    }

    pub fn with(shelf: Shelf, size: MemorySize) -> Self {
        let (core, memory) = (Core::new(), ConnectionMemory::new(size));
        Self { core, shelf, memory, fences: Fences::default() }
    }

    /// The fence of a volume that has had connections.
    pub fn fence(&self, name: &str) -> Arc<Fence> {
        self.fences.borrow()[name].clone()
    }

    /// Connects a client; how the connection ends is found in the cell.
    pub fn connect(&self) -> (Client, Rc<Cell<Option<EndReason>>>) {
        self.connect_by(Arc::default())
    }

    /// As [`World::connect`]; that the client is gone can be told to who looks.
    pub fn connect_by(&self, gone: Arc<Gone>) -> (Client, Rc<Cell<Option<EndReason>>>) {
        let pipe = Pipe::new();
        let end = Rc::new(Cell::new(None));
        let (told, server) = (end.clone(), pipe.clone());
        let choice = Choice { gone, ..Choice::new(&self.shelf, &self.fences) };
        let env = TestEnv(self.core.clone());
        let memory = self.memory.clone();
        self.core.spawn(async move {
            told.set(Some(serve_connection(env, server, choice, memory).await));
        });
        (Client::new(pipe), end)
    }

    /// Runs a script until it is done, closes its connection, and lets the server come to its
    /// end; gives the connection's.
    pub fn run<F: Future<Output = ()> + 'static>(
        &self,
        script: impl FnOnce(Client) -> F,
    ) -> EndReason {
        let (client, end) = self.connect();
        let pipe = client.pipe.clone();
        self.core.block_on(script(client));
        pipe.hang_up();
        self.core.run();
        assert_eq!(self.core.tasks(), 0, "tasks are left");
        assert!(self.memory.is_idle(), "memory is lost");
        end.get().expect("the connection did not end")
    }

    /// Sends the bytes, then hangs up.
    pub fn throw(&self, bytes: &[u8]) -> (EndReason, Vec<u8>) {
        let (client, end) = self.connect();
        client.pipe.send(bytes);
        client.pipe.hang_up();
        self.core.run();
        assert_eq!(self.core.tasks(), 0, "tasks are left");
        assert!(self.memory.is_idle(), "memory is lost");
        (end.get().expect("the connection did not end"), client.pipe.take_sent())
    }
}
