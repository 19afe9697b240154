//! A client that is not known, over a stream in memory: what it is answered by a daemon without
//! drives and accounts.
//!
//! Purpose: fuzzing tries the whole way of a request ([`crate::http`], [`crate::answer`],
//! [`crate::login`]) with bytes as a client of HTTPS sends them behind its handshake.
//!
//! Invariant: a stranger changes nothing, and nothing is sent to anybody else.

use crate::answer;
use crate::counters::Ledger;
use crate::data;
use crate::gpu::Parity;
use crate::http;
use crate::manager::Manager;
use crate::peer::Peer;
use crate::room::Room;
use crate::server::{cannot_start, parity_kernel};
use core::future::pending;
use core::net::{IpAddr, Ipv4Addr};
use drives::SharedDrive;
use engine::Settings;
use engine::mail::Mail;
use parity_gpu::{Limits, Placement};
use redfish::view::{Error, Memory};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::timeout;

/// Bytes under way in each direction.
const UNDER_WAY: usize = 64 << 10;

/// How often the daemon has its turn before the client says that nothing more comes: what needs no
/// other thread is answered then.
const TURNS: usize = 64;

/// Longer than anything takes.
const LIMIT: Duration = Duration::from_secs(60);

/// The daemon, and where its clients come from.
pub struct Stranger {
    runtime: Runtime,
    manager: Arc<Manager>,
    room: Arc<Room>,
    cores: Option<runtime::Runtime<Mail<SharedDrive>, SharedDrive>>,
}

impl Stranger {
    /// Starts the daemon.
    ///
    /// # Errors
    /// It can't start on this machine.
    pub fn new() -> Result<Self, Error> {
        let parity =
            Arc::new(Parity::open(parity_kernel()?, Placement::Cpu, Limits::default().sample));
        let ledger = Arc::new(Ledger::new(true, 0));
        let started = data::start(1, Settings::default(), parity.clone(), ledger);
        let (cores, data) = started.map_err(|error| cannot_start(&error))?;
        let manager = Manager::new(data, parity, Memory::default(), Vec::new(), true);
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| cannot_start(&error))?;
        let (manager, room) = (Arc::new(manager), Arc::default());
        Ok(Self { runtime, manager, room, cores: Some(cores) })
    }

    /// What these bytes are answered, to the end of the connection; none if it does not end.
    pub fn told(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let peer = Peer::Network { address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let place = self.room.enter(&peer)?;
        let answer = {
            let manager = self.manager.clone();
            move |asked| {
                let manager = manager.clone();
                async move { answer::answer(&manager, asked).await }
            }
        };
        self.runtime.block_on(async move {
            let (client, own) = tokio::io::duplex(UNDER_WAY);
            let (mut from, mut to) = tokio::io::split(client);
            let served = tokio::spawn(http::converse(own, peer, place, answer, pending()));
            let mut told = Vec::new();
            let all = async {
                // Who is let go has sent what it has sent.
                let _ = to.write_all(bytes).await;
                for _ in 0..TURNS {
                    yield_now().await;
                }
                let _ = to.shutdown().await;
            };
            let all = async {
                let ((), _) = tokio::join!(all, from.read_to_end(&mut told));
                served.await.is_ok()
            };
            let is_over = timeout(LIMIT, all).await;
            (is_over == Ok(true)).then_some(told)
        })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.runtime.block_on(self.manager.shut_down());
        if let Some(cores) = self.cores.take() {
            cores.stop();
        }
    }
}

#[cfg(test)]
#[path = "stranger_tests.rs"]
mod tests;
