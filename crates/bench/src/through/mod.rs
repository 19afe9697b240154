//! Volumes as hosts reach them: the data cores serve them, and as many cores of hosts ask, over
//! loopback.
//!
//! - `line`: a connection with many requests under way. `nbd`, `nvme_tcp`: what is said on it.
//! - [`Outside`]: the hosts' cores and their connections.
//!
//! Connections last as long as the array that is served; each load uses them anew. A client is
//! there to load the target: it copies what it sends, and keeps to one way of every protocol.

mod line;
mod nbd;
mod nvme_tcp;

use crate::error::BenchError;
use crate::nvme_tcp::client::Queue;
use crate::rig::{Aim, Env, Rig, Visit};
use crate::{nvme_tcp as bench_nvme_tcp, served};
use core::fmt;
use core::str::FromStr;
use engine::array::message::ArrayId;
use io::Env as _;
use line::{Lines, Protocol, Remote, SLOTS};
use nvme_target::limits::IO_QUEUES;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use units::Uuid;
use workload::Many;

/// Connections of a host's core to a data core; more where there are more volumes over NBD, which
/// takes one for each.
const CONNECTIONS: usize = 4;

/// What hosts reach volumes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// NBD.
    Nbd,
    /// NVMe/TCP.
    NvmeTcp,
}

impl FromStr for Through {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nbd" => Ok(Self::Nbd),
            "nvme-tcp" => Ok(Self::NvmeTcp),
            _ => Err("use nbd or nvme-tcp".to_owned()),
        }
    }
}

impl fmt::Display for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nbd => "nbd",
            Self::NvmeTcp => "nvme-tcp",
        })
    }
}

impl Through {
    /// Bytes of a request at most.
    pub fn largest(self) -> usize {
        match self {
            Self::Nbd => ::nbd::limits::REQUEST_BYTES_MAX as usize,
            Self::NvmeTcp => nvme_tcp::LARGEST,
        }
    }
}

/// A host core's connections: for each volume those that lead to it, or those that lead to all.
type Streams = Vec<Vec<TcpStream>>;

/// Ways to the volumes of a served array.
#[derive(Clone)]
pub struct Ways {
    through: Through,
    /// Of each host core.
    streams: Arc<[Streams]>,
    /// Bytes of each volume.
    bytes: Arc<[u64]>,
}

impl Ways {
    /// Begins something at the volumes, on a host's core.
    pub(crate) fn visit(&self, env: &Env, visit: impl Visit) {
        match self.through {
            Through::Nbd => self.visit_by::<nbd::Nbd>(env, visit),
            Through::NvmeTcp => self.visit_by::<nvme_tcp::NvmeTcp>(env, visit),
        }
    }

    fn visit_by<P: Protocol>(&self, env: &Env, visit: impl Visit) {
        let own = &self.streams[env.core().index()];
        let lines = |streams: &Vec<TcpStream>| {
            Rc::new(Lines::new::<P>(env, streams).expect("this process may have more descriptors"))
        };
        let lines: Vec<Rc<Lines>> = own.iter().map(lines).collect();
        let remote = |(number, bytes): (usize, &u64)| {
            let lines = lines[number.min(lines.len() - 1)].clone();
            Remote::<P>::new(lines, number as u32 + 1, *bytes)
        };
        let remotes: Vec<Remote<P>> = self.bytes.iter().enumerate().map(remote).collect();
        match <[Remote<P>; 1]>::try_from(remotes) {
            Ok([only]) => visit.at(env, only),
            Err(several) => visit.at(env, Many::new(several)),
        }
    }
}

/// The hosts of a served array.
pub struct Outside {
    rig: Rig,
    ways: Ways,
    /// Connections that keep controllers.
    _admin: Vec<Queue>,
}

impl Outside {
    /// Serves volumes of an array, of so many bytes each, and connects as many host cores as there
    /// are data cores to each of these.
    ///
    /// # Errors
    /// When the system has no port, or no descriptor.
    pub fn connect(
        rig: &Rig,
        through: Through,
        array: ArrayId,
        volumes: &[(Uuid, u64)],
    ) -> Result<Self, BenchError> {
        let names: Vec<Uuid> = volumes.iter().map(|own| own.0).collect();
        let bytes = volumes.iter().map(|own| own.1).collect();
        let (streams, admin) = match through {
            Through::Nbd => (by_nbd(rig, array, &names)?, Vec::new()),
            Through::NvmeTcp => by_nvme_tcp(rig, array, names)?,
        };
        let ways = Ways { through, streams: streams.into(), bytes };
        Ok(Self { rig: Rig::start_beside(rig.cores())?, ways, _admin: admin })
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

fn by_nbd(rig: &Rig, array: ArrayId, volumes: &[Uuid]) -> Result<Vec<Streams>, BenchError> {
    let addresses = served::serve(rig, array, volumes)?;
    let each = CONNECTIONS.div_ceil(volumes.len());
    let to_volume = |number: usize| {
        let name = served::name(number);
        let all = addresses.iter().flat_map(|address| std::iter::repeat_n(address, each));
        all.map(|address| nbd::connect(*address, &name)).collect::<std::io::Result<_>>()
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
) -> Result<(Vec<Streams>, Vec<Queue>), BenchError> {
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
            streams.push(address.connect(queue, controller, SLOTS)?.0.into_stream());
        }
        all.push(vec![streams]);
    }
    Ok((all, keepers))
}

#[cfg(test)]
mod tests;
