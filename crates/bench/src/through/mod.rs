//! Volumes as hosts reach them: the data cores serve them, and as many cores of hosts ask, over
//! loopback or as what this machine has.
//!
//! - `line`: a connection with many requests under way. `nbd`, `nvme_tcp`, `iscsi`: what is said
//!   on it. `targets`: iSCSI's servers, which others keep.
//! - `files`, `devices`: volumes as files and as block devices of this machine. `rings`: as a
//!   virtual machine has them.
//! - [`Outside`]: the hosts' cores and their ways to the volumes.
//!
//! Connections and open files last as long as the array that is served; each load uses them anew. A
//! client is there to load the target: it copies what it sends, and keeps to one way of every
//! protocol.

mod devices;
pub(crate) mod files;
mod iscsi;
mod line;
mod nbd;
mod nvme_tcp;
pub(crate) mod rings;
pub(crate) mod targets;

use crate::error::BenchError;
use crate::nvme_tcp::client::Queue;
use crate::rig::{Aim, Env, Rig, Visit};
use crate::{nvme_tcp as bench_nvme_tcp, served};
use core::any::Any;
use core::fmt;
use core::str::FromStr;
use drives::SharedDrive;
use engine::Volume;
use engine::array::message::ArrayId;
use engine::manage::command::{ArrayStatus, Request};
use io::Env as _;
use line::{Connection, Lines, Protocol, Remote, SLOTS};
use nvme_target::limits::IO_QUEUES;
use rings::{Attached, Machine};
use std::rc::Rc;
use std::sync::Arc;
use units::Uuid;
use workload::target::Raw;
use workload::{Many, Target};

/// Connections of a host's core to a data core; more where there are more volumes over NBD or
/// iSCSI, which take one for each.
const CONNECTIONS: usize = 4;

/// What hosts reach volumes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// NBD.
    Nbd,
    /// NVMe/TCP.
    NvmeTcp,
    /// Files of this machine.
    Fuse,
    /// Block devices of this machine.
    Ublk,
    /// iSCSI, by tgt over files of this machine.
    Iscsi,
}

impl Through {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Nbd, Self::NvmeTcp, Self::Fuse, Self::Ublk, Self::Iscsi];

    const fn name(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::NvmeTcp => "nvme-tcp",
            Self::Fuse => "fuse",
            Self::Ublk => "ublk",
            Self::Iscsi => "iscsi",
        }
    }
}

impl FromStr for Through {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|own| own.name() == text);
        found.ok_or_else(|| "use nbd, nvme-tcp, fuse, ublk or iscsi".to_owned())
    }
}

impl fmt::Display for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Through {
    /// Bytes of a request at most. Larger ones of files and devices the kernel cuts.
    pub fn largest(self) -> usize {
        match self {
            Self::Nbd => ::nbd::limits::REQUEST_BYTES_MAX as usize,
            Self::NvmeTcp => nvme_tcp::LARGEST,
            Self::Iscsi => iscsi::LARGEST,
            Self::Fuse | Self::Ublk => usize::MAX,
        }
    }
}

/// Connections of each host's core: for each volume those that lead to it, or those that lead to
/// all.
type Connections<P> = Vec<Vec<Vec<Connection<P>>>>;

/// Ways to the volumes of a served array.
#[derive(Clone)]
pub struct Ways {
    by: By,
    /// Bytes of each volume.
    bytes: Arc<[u64]>,
}

/// What requests go by.
#[derive(Clone)]
enum By {
    Nbd(Arc<Connections<nbd::Nbd>>),
    NvmeTcp(Arc<Connections<nvme_tcp::NvmeTcp>>),
    Iscsi(Arc<Connections<iscsi::Iscsi>>),
    /// Files or devices, of each volume.
    Opened(Arc<[SharedDrive]>),
    /// A virtual machine's rings, of one volume: one of each core.
    Rings(Arc<[Machine]>),
}

/// Begins something at one target, or at several as one address space.
fn visit_all<T: Target>(env: &Env, targets: Vec<T>, visit: impl Visit) {
    match <[T; 1]>::try_from(targets) {
        Ok([only]) => visit.at(env, only),
        Err(several) => visit.at(env, Many::new(several)),
    }
}

impl Ways {
    /// By files or devices: each is a volume of so many bytes.
    pub(crate) fn opened(drives: Vec<SharedDrive>, bytes: u64) -> Self {
        let bytes = drives.iter().map(|_| bytes).collect();
        Self { by: By::Opened(drives.into()), bytes }
    }

    /// By a virtual machine's rings, to a volume of so many bytes.
    pub(crate) fn rings(machines: Vec<Machine>, bytes: u64) -> Self {
        Self { by: By::Rings(machines.into()), bytes: [bytes].into() }
    }

    /// Begins something at the volumes, on a host's core.
    pub(crate) fn visit(&self, env: &Env, visit: impl Visit) {
        match &self.by {
            By::Nbd(all) => self.visit_by(all, env, visit),
            By::NvmeTcp(all) => self.visit_by(all, env, visit),
            By::Iscsi(all) => self.visit_by(all, env, visit),
            By::Opened(all) => {
                let whole = |(drive, bytes): (&SharedDrive, &u64)| {
                    Raw::in_turns(vec![env.bind(drive)], 0, *bytes, *bytes)
                };
                visit_all(env, all.iter().zip(&*self.bytes).map(whole).collect(), visit);
            }
            By::Rings(all) => {
                let attached = Attached::new(env, all, self.bytes[0]);
                visit.at(env, attached.expect("this process may have more descriptors"));
            }
        }
    }

    fn visit_by<P: Protocol>(&self, all: &Connections<P>, env: &Env, visit: impl Visit) {
        let lines = |own: &Vec<Connection<P>>| {
            Rc::new(Lines::new(env, own).expect("this process may have more descriptors"))
        };
        let lines: Vec<Rc<Lines<P>>> = all[env.core().index()].iter().map(lines).collect();
        let remote = |(number, bytes): (usize, &u64)| {
            let lines = lines[number.min(lines.len() - 1)].clone();
            Remote::<P>::new(lines, number as u32 + 1, *bytes)
        };
        visit_all(env, self.bytes.iter().enumerate().map(remote).collect(), visit);
    }
}

/// The hosts of a served array. Their cores end first when it is dropped, then what they use.
pub struct Outside {
    rig: Rig,
    ways: Ways,
    _held: Held,
}

/// What ways stand on, as long as it is there: connections that keep controllers, devices, servers.
type Held = Box<dyn Any>;

impl Outside {
    /// Serves volumes of an array, of so many bytes each, and leads as many host cores as there are
    /// data cores to each of these.
    ///
    /// # Errors
    /// When the system has no port, or no descriptor; or this machine lacks what volumes are to be
    /// reached by.
    pub fn connect(
        rig: &Rig,
        through: Through,
        array: ArrayId,
        volumes: &[(Uuid, u64)],
    ) -> Result<Self, BenchError> {
        let names: Vec<Uuid> = volumes.iter().map(|own| own.0).collect();
        let bytes = volumes.iter().map(|own| own.1).collect();
        let (by, held): (By, Held) = match through {
            Through::Nbd => (By::Nbd(by_nbd(rig, array, &names)?.into()), Box::new(())),
            Through::NvmeTcp => {
                let (all, admin) = by_nvme_tcp(rig, array, names)?;
                (By::NvmeTcp(all.into()), Box::new(admin))
            }
            Through::Fuse => {
                let drives = mounted(rig, through, array, &names)?.open()?;
                (By::Opened(drives.into()), Box::new(()))
            }
            Through::Ublk => {
                let (devices, drives) =
                    devices::Devices::make(rig, (array, &status(rig, array)?), volumes)?;
                (By::Opened(drives.into()), Box::new(devices))
            }
            Through::Iscsi => {
                let files = mounted(rig, through, array, &names)?;
                let block_bytes = status(rig, array)?.block_bytes;
                let targets = targets::Targets::serve(&names, block_bytes, &files)?;
                let all = by_iscsi(rig, &targets).map_err(targets::not_served)?;
                (By::Iscsi(all.into()), Box::new(targets))
            }
        };
        let ways = Ways { by, bytes };
        Ok(Self { rig: Rig::start_beside(rig.cores())?, ways, _held: held })
    }

    /// The hosts' cores.
    pub fn rig(&self) -> &Rig {
        &self.rig
    }

    /// What they aim at.
    pub fn aim(&self) -> Aim {
        Aim::Remote(self.ways.clone())
    }
}

/// How an array is.
fn status(rig: &Rig, array: ArrayId) -> Result<ArrayStatus, BenchError> {
    let mut all = rig.ask(Request::Status)?.into_iter();
    all.find(|own| own.id == array).ok_or(BenchError::CoreGone)
}

/// The volumes as files.
fn mounted(
    rig: &Rig,
    through: Through,
    array: ArrayId,
    volumes: &[Uuid],
) -> Result<files::Mounted, BenchError> {
    files::check(through)?;
    let volumes: Arc<[Uuid]> = volumes.into();
    files::mount(rig, volumes.len(), move |core, number| {
        let array = core.array(array).expect("the array runs while it is served");
        Volume::new(array, volumes[number])
    })
}

/// Sessions: each of a core's to a volume is one connection.
fn by_iscsi(rig: &Rig, targets: &targets::Targets) -> std::io::Result<Connections<iscsi::Iscsi>> {
    let each = CONNECTIONS.div_ceil(targets.names.len());
    let to_volume = |name: &::iscsi::Name| {
        let all = core::iter::repeat_n(name, each);
        let connect = |name| iscsi::connect(targets.portal, name, &targets.initiator);
        all.map(connect).collect::<std::io::Result<Vec<_>>>()
    };
    let of_core = |_| targets.names.iter().map(to_volume).collect::<std::io::Result<Vec<_>>>();
    (0..rig.cores()).map(of_core).collect()
}

fn by_nbd(
    rig: &Rig,
    array: ArrayId,
    volumes: &[Uuid],
) -> Result<Connections<nbd::Nbd>, BenchError> {
    let addresses = served::serve(rig, array, volumes)?;
    let each = CONNECTIONS.div_ceil(volumes.len());
    let to_volume = |number: usize| {
        let name = served::name(number);
        let all = addresses.iter().flat_map(|address| std::iter::repeat_n(address, each));
        all.map(|address| Ok(nbd::connect(*address, &name)?.into())).collect::<std::io::Result<_>>()
    };
    let of_core = |_| (0..volumes.len()).map(to_volume).collect::<std::io::Result<_>>();
    let all = (0..rig.cores()).map(of_core).collect::<std::io::Result<_>>();
    all.map_err(|error| BenchError::System { path: "a connection over NBD".into(), error })
}

/// The connections, and those that keep the controllers: one for each host core.
fn by_nvme_tcp(
    rig: &Rig,
    array: ArrayId,
    volumes: Vec<Uuid>,
) -> Result<(Connections<nvme_tcp::NvmeTcp>, Vec<Queue>), BenchError> {
    let addresses = bench_nvme_tcp::served::serve(rig, &Aim::Volumes { array, volumes })?;
    let (mut all, mut keepers) = (Vec::new(), Vec::new());
    for core in 0..rig.cores() {
        let first = &addresses[usize::from(core) % addresses.len()];
        let (admin, controller) = first.associate()?;
        keepers.push(admin);
        let mut streams = Vec::new();
        let all_ways = addresses.iter().flat_map(|own| std::iter::repeat_n(own, CONNECTIONS));
        for address in all_ways.take(IO_QUEUES.into()) {
            let queue = streams.len() as u16 + 1;
            streams.push(address.connect(queue, controller, SLOTS)?.0.into_stream().into());
        }
        all.push(vec![streams]);
    }
    Ok((all, keepers))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::lacks;
