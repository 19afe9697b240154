//! The target under measurement, on a rig's core: a volume of an array, or a bare drive.

use super::client::Address;
use crate::error::BenchError;
use crate::rig::{Aim, Env, Rig};
use control::stream::{NVME_AHEAD, Stream};
use engine::{Core, Volume};
use io::{BlockError, Blocks, Buf, BufMut, Drive as _, Env as _, Priority};
use nvme::nqn::Nqn;
use nvme_target::{Export, Health, Hosts, Port, PortId, Product, Server, Target, Volumes, Way};
use runtime::{Listener, Socket};
use std::net::TcpListener;
use std::rc::Rc;
use units::CoreId;

const PORT: PortId = PortId(1);

/// What is served.
#[derive(Clone)]
enum Behind {
    Volume(Volume<Env>),
    Drive(<Env as io::Env>::Drive, u64),
}

impl Blocks for Behind {
    fn bytes(&self) -> u64 {
        match self {
            Self::Volume(volume) => volume.bytes(),
            Self::Drive(_, bytes) => *bytes,
        }
    }
    fn block_bytes(&self) -> u32 {
        512
    }
    fn strip_bytes(&self) -> u32 {
        64 << 10
    }
    fn stripe_bytes(&self) -> u32 {
        64 << 10
    }
    fn volatile_cache(&self) -> bool {
        false
    }
    async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        match self {
            Self::Volume(volume) => volume.read(offset, into).await,
            Self::Drive(drive, _) => {
                let (outcome, into) = drive.read(offset, into).await;
                (outcome.map_err(|_| BlockError::Unavailable), into)
            }
        }
    }
    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        match self {
            Self::Volume(volume) => volume.write(offset, data, fua).await,
            Self::Drive(drive, _) => {
                let outcome = drive.write(offset, core::slice::from_ref(&data), fua).await;
                outcome.map_err(|_| BlockError::Unavailable)
            }
        }
    }
    async fn compare_and_write(&self, _: u64, _: (Buf, Buf), _: bool) -> Result<bool, BlockError> {
        Err(BlockError::Unavailable)
    }
    async fn write_zeroes(&self, _: u64, _: u64, _: bool) -> Result<(), BlockError> {
        Err(BlockError::Unavailable)
    }
    async fn discard(&self, _: u64, _: u64) -> Result<(), BlockError> {
        Err(BlockError::Unavailable)
    }
    async fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }
}

/// The one volume of a core.
struct Only(Behind);

impl Volumes for Only {
    type Key = ();
    type Volume = Behind;

    fn open(&self, (): &()) -> Option<Behind> {
        Some(self.0.clone())
    }

    fn health(&self, (): &()) -> Health {
        Health::default()
    }
}

fn behind(env: &Env, core: &Core<Env>, aim: &Aim) -> Behind {
    match aim {
        Aim::Volume { array, volume } => {
            let array = core.array(*array).expect("the array runs while it is measured");
            Behind::Volume(Volume::new(array, *volume))
        }
        Aim::Volumes { .. } => unreachable!("one volume is served"),
        Aim::Drives { drives, bytes, .. } => Behind::Drive(env.bind(&drives[0]), *bytes),
    }
}

/// Serves what a load is aimed at on the rig's first core; where hosts find it.
pub fn serve(rig: &Rig, aim: &Aim) -> Result<Address, BenchError> {
    let system = |error| BenchError::System { path: "the listener".into(), error };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
    let nqn = |name: &str| Nqn::new(name).expect("a possible name");
    let (subsystem, host) = (nqn("nqn.2026-11.bench:target"), nqn("nqn.2026-11.bench:host"));
    let socket = listener.local_addr().map_err(system)?;
    let address = Address { socket, subsystem: subsystem.clone(), host };
    let target = Target::new(Product { model: "Palisade".into(), version: String::new() });
    target.set_port(PORT, Port { address: None, service: socket.port() });
    let export = Export {
        subsystem,
        nsid: 1,
        volume: (),
        nguid: [1; 16],
        uuid: [1; 16],
        ports: [PORT].into(),
        hosts: Hosts::Any,
    };
    target.add("bench", export).expect("the only one");
    let aim = aim.clone();
    rig.on_core(CoreId(0), move |env, core| {
        let only = Only(behind(env, core, &aim));
        let server = Server::start(env.clone(), target, only, None);
        env.spawn(Priority::First, accept(env.clone(), listener, server));
    });
    Ok(address)
}

async fn accept(env: Env, listener: TcpListener, server: Rc<Server<Env, Stream, Only>>) {
    let Ok(listener) = Listener::from_tcp(env.reactor(), listener) else { return };
    while let Ok(fd) = listener.accept_fd().await {
        let Ok(socket) = Socket::from_fd(env.reactor(), fd) else { continue };
        let (server, stream) = (server.clone(), Rc::new(Stream::new(socket, NVME_AHEAD)));
        env.spawn(Priority::First, async move {
            server.serve(stream, PORT, &Way::default()).await;
        });
    }
}
