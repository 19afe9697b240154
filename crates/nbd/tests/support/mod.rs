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
use palisade_nbd::{ConnectionMemory, EndReason, Exports, MemorySize, serve_connection};
use sim::volume::MemoryVolume;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use transport::Pipe;

/// Named volumes.
#[derive(Clone, Default)]
pub struct Shelf(pub Vec<(String, MemoryVolume)>);

impl Exports for Shelf {
    type Volume = MemoryVolume;

    fn list(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    fn open(&self, name: &str) -> Option<MemoryVolume> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, volume)| volume.clone())
    }
}

/// One core with a server on it.
pub struct World {
    pub core: Rc<Core>,
    pub shelf: Shelf,
    pub memory: Rc<ConnectionMemory>,
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
        Self { core: Core::new(), shelf, memory: ConnectionMemory::new(size) }
    }

    /// Connects a client; how the connection ends is found in the cell.
    pub fn connect(&self) -> (Client, Rc<Cell<Option<EndReason>>>) {
        let pipe = Pipe::new();
        let end = Rc::new(Cell::new(None));
        let (told, server) = (end.clone(), pipe.clone());
        let (env, shelf) = (TestEnv(self.core.clone()), self.shelf.clone());
        let memory = self.memory.clone();
        self.core.spawn(async move {
            told.set(Some(serve_connection(env, server, shelf, memory).await));
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
