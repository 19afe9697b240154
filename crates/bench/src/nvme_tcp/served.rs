//! The target under measurement, on a rig's cores: volumes of an array, or a bare drive.

use super::client::Address;
use crate::error::BenchError;
use crate::rig::{Aim, Env, Rig};
use engine::array::message::ArrayId;
use engine::{Core, Volume};
use io::{BlockError, Blocks, Buf, BufMut, Drive as _, Env as _, Priority};
use nvme::nqn::Nqn;
use nvme_target::{
    Export, Group, Health, Hosts, Port, PortId, Product, Server, Target, Volumes, Way,
};
use runtime::{Listener, Socket, Stream};
use std::net::TcpListener;
use std::rc::Rc;
use units::{CoreId, Uuid};

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

/// What a core serves: namespace 1 is the first.
struct All(Vec<Behind>);

impl Volumes for All {
    type Key = usize;
    type Volume = Behind;

    fn open(&self, number: &usize, _: PortId) -> Option<Behind> {
        self.0.get(*number).cloned()
    }

    fn health(&self, _: &usize) -> Health {
        Health::default()
    }
}

fn behind(env: &Env, core: &Core<Env>, aim: &Aim) -> Vec<Behind> {
    let volumes = |array: &ArrayId, volumes: &[Uuid]| {
        let array = core.array(*array).expect("the array runs while it is measured");
        volumes.iter().map(|own| Behind::Volume(Volume::new(array.clone(), *own))).collect()
    };
    match aim {
        Aim::Volume { array, volume } => volumes(array, core::slice::from_ref(volume)),
        Aim::Volumes { array, volumes: all } => volumes(array, all),
        Aim::Drives { drives, bytes, .. } => vec![Behind::Drive(env.bind(&drives[0]), *bytes)],
        Aim::Remote(_) => unreachable!("what is served is here"),
    }
}

/// Serves what a load is aimed at on each of the rig's cores; where hosts find each. Volumes are
/// the namespaces from 1 on.
pub fn serve(rig: &Rig, aim: &Aim) -> Result<Vec<Address>, BenchError> {
    let system = |error| BenchError::System { path: "the listener".into(), error };
    let nqn = |name: &str| Nqn::new(name).expect("a possible name");
    let (subsystem, host) = (nqn("nqn.2026-11.bench:target"), nqn("nqn.2026-11.bench:host"));
    let (model, version) = ("Palisade".into(), String::new());
    let target = Target::new(Product { model, version, quiesce_ms: 0, resets: true });
    let count = if let Aim::Volumes { volumes, .. } = aim { volumes.len() } else { 1 };
    for volume in 0..count {
        let nsid = volume as u32 + 1;
        let mut name = [1; 16];
        name[12..].copy_from_slice(&nsid.to_be_bytes());
        let export = Export {
            subsystem: subsystem.clone(),
            nsid,
            volume,
            nguid: name,
            uuid: name,
            ports: [PORT].into(),
            hosts: Hosts::Any,
            group: Group::FIRST,
        };
        target.add(&format!("bench{nsid}"), export).expect("nobody has its name or number");
    }
    let mut addresses = Vec::new();
    for core in 0..rig.cores() {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
        let socket = listener.local_addr().map_err(system)?;
        target.set_port(PORT, Port { address: None, service: socket.port() });
        addresses.push(Address { socket, subsystem: subsystem.clone(), host: host.clone() });
        let (aim, target) = (aim.clone(), target.clone());
        rig.on_core(CoreId(core), move |env, core| {
            let server = Server::start(env.clone(), target, All(behind(env, core, &aim)), None);
            env.spawn(Priority::First, accept(env.clone(), listener, server));
        });
    }
    Ok(addresses)
}

async fn accept(env: Env, listener: TcpListener, server: Rc<Server<Env, Stream, All>>) {
    let Ok(listener) = Listener::from_tcp(env.reactor(), listener) else { return };
    while let Ok(fd) = listener.accept_fd().await {
        let Ok(socket) = Socket::from_fd(env.reactor(), fd) else { continue };
        let (server, stream) =
            (server.clone(), Rc::new(Stream::new(socket, nvme_target::limits::AHEAD)));
        env.spawn(Priority::First, async move {
            server.serve(stream, PORT, &Way::default()).await;
        });
    }
}
