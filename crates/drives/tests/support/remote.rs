//! A target on a thread of its own, with a volume in memory, and the drive that it is over TCP.

use io::{Env as _, Priority};
use nvme::nqn::Nqn;
use nvme_target::{
    Export, Group, Health, Hosts, Port, PortId, Product, Server, Target, Volumes, Way,
};
use palisade_drives::SharedDrive;
use palisade_drives::remote::host::{HostIdentity, Settings};
use palisade_drives::remote::{Fabric, Place};
use runtime::{CoreEnv, Listener, NoDrive, Runtime, Socket, Stream};
use sim::volume::MemoryVolume;
use std::net::TcpListener;
use std::rc::Rc;
use units::{CoreId, Nanos};

const PORT: PortId = PortId(1);
pub const SUBSYSTEM: &str = "nqn.2026-11.example:shelf";

type Env = CoreEnv<(), NoDrive>;

struct All(MemoryVolume);

impl Volumes for All {
    type Key = u8;
    type Volume = MemoryVolume;

    fn open(&self, _: &u8, _: PortId) -> Option<MemoryVolume> {
        Some(self.0.clone())
    }

    fn health(&self, _: &u8) -> Health {
        Health::default()
    }
}

pub fn nqn(name: &str) -> Nqn {
    Nqn::new(name).unwrap()
}

/// A target with namespace 1, on a port of 127.0.0.1.
pub struct Shelf {
    pub place: Place,
    runtime: Option<Runtime<(), NoDrive>>,
}

impl Shelf {
    pub fn start(bytes: usize, block: u32) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap(), bytes, block)
    }

    pub fn at(listener: TcpListener, bytes: usize, block: u32) -> Self {
        let port = listener.local_addr().unwrap().port();
        let runtime = Runtime::start(1, false, |_| ());
        let call = Box::new(move |env: &Env| serve(env, listener, bytes, block));
        runtime.handle().run_on(CoreId(0), call);
        let place = Place { host: "127.0.0.1".to_owned(), port };
        Self { place, runtime: Some(runtime) }
    }

    /// It is gone.
    pub fn stop(&mut self) {
        self.runtime.take().expect("runs").stop();
    }
}

fn serve(env: &Env, listener: TcpListener, bytes: usize, block: u32) {
    let port = listener.local_addr().unwrap().port();
    let (model, version) = ("Palisade".into(), "0".into());
    let target = Target::new(Product { model, version, quiesce_ms: 0, resets: true });
    target.set_port(PORT, Port { address: None, service: port });
    let export = Export {
        subsystem: nqn(SUBSYSTEM),
        nsid: 1,
        volume: 0,
        nguid: [7; 16],
        uuid: [9; 16],
        ports: [PORT].into(),
        hosts: Hosts::Any,
        group: Group::FIRST,
    };
    target.add("one", export).unwrap();
    target.settle();
    let volume = MemoryVolume::new(bytes, block);
    let server = Server::start(env.clone(), target, All(volume), None);
    let own = env.clone();
    env.spawn(Priority::First, async move {
        let listener = Listener::from_tcp(own.reactor(), listener).unwrap();
        while let Ok(socket) = listener.accept().await {
            own.spawn(Priority::First, connection(server.clone(), socket));
        }
    });
}

async fn connection(server: Rc<Server<Env, Stream, All>>, socket: Socket) {
    let stream = Rc::new(Stream::new(socket, nvme_target::limits::AHEAD));
    let way = Way { host: "127.0.0.1".to_owned(), local: "127.0.0.1".to_owned() };
    server.serve(stream, PORT, &way).await;
}

/// As they are by default, but for digests, and for queues that are short.
fn settings(digests: bool) -> Settings {
    Settings {
        entries: 32,
        digests: nvme::pdu::Digests { header: digests, data: digests },
        ..Settings::default()
    }
}

fn start(settings: Settings, cores: u16) -> Fabric {
    let host = HostIdentity { nqn: nqn("nqn.2026-11.example:host"), id: [3; 16] };
    Fabric::start(host, settings, cores).unwrap()
}

pub fn fabric(cores: u16, digests: bool) -> Fabric {
    start(settings(digests), cores)
}

/// One that waits for nothing for long.
pub fn short_fabric() -> Fabric {
    let short = Settings {
        keep_alive: Nanos::from_millis(1_000),
        reconnect_delay: Nanos::from_millis(20),
        fast_io_fail: Nanos::from_millis(300),
        ..settings(false)
    };
    start(short, 1)
}

/// The drive, with what it needs.
pub struct Drive {
    pub shelf: Shelf,
    pub fabric: Fabric,
    pub drive: SharedDrive,
}

pub fn drive(bytes: usize, block: u32, digests: bool) -> Drive {
    drive_of(fabric(1, digests), bytes, block)
}

pub fn drive_of(fabric: Fabric, bytes: usize, block: u32) -> Drive {
    let shelf = Shelf::start(bytes, block);
    fabric.connect(&shelf.place, &nqn(SUBSYSTEM)).unwrap();
    let drive = fabric.open(&nqn(SUBSYSTEM), 1).unwrap();
    Drive { shelf, fabric, drive }
}
