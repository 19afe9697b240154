//! An array's volumes over NBD, on loopback: for a load from another process.
//!
//! Each core listens at a port of its own and serves its own connections, so that whoever loads
//! decides which core has how many.

use crate::error::BenchError;
use crate::rig::{Env, Rig};
use engine::array::message::ArrayId;
use engine::{Core, Volume};
use io::{Env as _, Priority};
use nbd::{ConnectionMemory, Exports, Fence, Link, MemorySize};
use runtime::{Line, Listener, Socket, Stream};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Uuid};

/// What is served: the volumes of an array, by their numbers `v0`, `v1` and so on.
struct Served {
    core: Core<Env>,
    array: ArrayId,
    volumes: Arc<[(Uuid, Arc<Fence>)]>,
    line: Line,
}

struct Hold(Line);

impl Link for Hold {
    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl Exports for Served {
    type Volume = Volume<Env>;

    fn list(&self) -> Vec<String> {
        (0..self.volumes.len()).map(name).collect()
    }

    fn open(&self, wanted: &str) -> Option<(Self::Volume, Arc<Fence>)> {
        let number: usize = wanted.strip_prefix('v')?.parse().ok()?;
        let (volume, fence) = self.volumes.get(number)?;
        let array = self.core.array(self.array)?;
        Some((Volume::new(array, *volume), fence.clone()))
    }

    fn link(&self) -> Arc<dyn Link> {
        Arc::new(Hold(self.line.clone()))
    }
}

/// The name of a volume, and of its export.
pub fn name(number: usize) -> String {
    format!("v{number}")
}

/// Serves volumes of an array; where each core does.
///
/// # Errors
/// When there is no port to be had.
pub fn serve(rig: &Rig, array: ArrayId, volumes: &[Uuid]) -> Result<Vec<SocketAddr>, BenchError> {
    let system = |error| BenchError::System { path: "the listener".into(), error };
    let fenced = volumes.iter().map(|volume| (*volume, Arc::<Fence>::default()));
    let volumes: Arc<[(Uuid, Arc<Fence>)]> = fenced.collect();
    let mut addresses = Vec::new();
    for core in 0..rig.cores() {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
        addresses.push(listener.local_addr().map_err(system)?);
        let volumes = volumes.clone();
        rig.on_core(CoreId(core), move |env, core| {
            let memory = ConnectionMemory::reached(MemorySize::default(), None);
            let (env, core) = (env.clone(), core.clone());
            let own = env.clone();
            env.spawn(Priority::First, async move {
                let Ok(listener) = Listener::from_tcp(own.reactor(), listener) else { return };
                while let Ok(fd) = listener.accept_fd().await {
                    let Ok(socket) = Socket::from_fd(own.reactor(), fd) else { continue };
                    let (core, volumes) = (core.clone(), volumes.clone());
                    let served = Served { core, array, volumes, line: socket.line() };
                    let stream = Rc::new(Stream::new(socket, nbd::limits::AHEAD));
                    let serving =
                        nbd::serve_connection(own.clone(), stream, served, memory.clone());
                    own.spawn(Priority::First, async move {
                        // How it ended is the client's business.
                        let _ = serving.await;
                    });
                }
            });
        });
    }
    Ok(addresses)
}
