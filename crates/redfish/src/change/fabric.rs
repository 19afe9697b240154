//! What a request wants done with paths to drives behind NVMe over Fabrics.
//!
//! - `PalisadeManager.Discover`: `Address`, `Port`?, and of [`Terms`] the host and digests.
//! - `PalisadeManager.Connect`: `Address`, `Port`?, `Subsystem`?, [`Terms`]. Without a subsystem,
//!   all that the discovery service at that address tells.
//! - `PalisadeManager.Disconnect`: `Subsystem`, and for one path `Address`, `Port`?.

use super::node::Fields;
use crate::error::Refusal;
use crate::routes::{Method, Resource};

/// The port of discovery services (IANA, `nvme-disc`).
pub const DISCOVERY_PORT: u16 = 8009;

/// The port of controllers (IANA, `nvme`).
pub const PORT: u16 = 4420;

/// Where a controller answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its address, or a name that leads there.
    pub address: String,
    /// Its TCP port.
    pub port: u16,
}

/// The least and the most seconds of a keep-alive timeout.
pub const KEEP_ALIVE: (u16, u16) = (1, 300);
/// The same from a try to connect to the next.
pub const RECONNECT_DELAY: (u16, u16) = (1, 300);
/// The same for which requests wait for a path.
pub const FAST_IO_FAIL: (u16, u16) = (1, 3_600);
/// The same for which it is tried to connect anew.
pub const CONTROLLER_LOSS: (u16, u16) = (1, u16::MAX);
/// The least and the most entries of an I/O queue.
pub const QUEUE_SIZE: (u16, u16) = (16, 1024);
/// The least and the most I/O queues of a path; data cores may need more than the least.
pub const IO_QUEUES: (u16, u16) = (2, u16::MAX);

/// How the host connects, where a request wants it otherwise than the configuration has it. Times
/// are in seconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// `HostNQN`: the host's name.
    pub host_nqn: Option<String>,
    /// `HostID`: its identifier, a UUID.
    pub host_id: Option<String>,
    /// `HeaderDigest`: whether headers have a CRC-32C.
    pub header_digest: Option<bool>,
    /// `DataDigest`: whether data has one.
    pub data_digest: Option<bool>,
    /// `IOQueues`: how many a path has.
    pub io_queues: Option<u16>,
    /// `QueueSize`: entries of each.
    pub queue_size: Option<u16>,
    /// `KeepAliveSeconds`: the keep-alive timeout.
    pub keep_alive: Option<u16>,
    /// `ReconnectDelaySeconds`: from a try to connect to the next.
    pub reconnect_delay: Option<u16>,
    /// `FastIOFailSeconds`: how long requests wait for a path.
    pub fast_io_fail: Option<u16>,
    /// `ControllerLossSeconds`: how long it is tried to connect anew.
    pub controller_loss: Option<u16>,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FabricChange {
    /// Asks a discovery service where subsystems are.
    Discover {
        /// Where the service is.
        place: Place,
        /// How: those of a host, and digests.
        terms: Terms,
    },
    /// Connects a subsystem by a path; without its name, all that are found there.
    Connect {
        /// Where.
        place: Place,
        /// The subsystem.
        subsystem: Option<String>,
        /// How.
        terms: Terms,
    },
    /// Disconnects a subsystem.
    Disconnect {
        /// The subsystem.
        subsystem: String,
        /// The path; all if there is none.
        place: Option<Place>,
    },
}

impl FabricChange {
    /// What it does, for people.
    pub fn words(&self) -> String {
        let at = |place: &Place| format!("{} port {}", place.address, place.port);
        match self {
            Self::Discover { place, .. } => format!("ask {} where subsystems are", at(place)),
            Self::Connect { place, subsystem: Some(name), .. } => {
                format!("connect {name} by {}", at(place))
            }
            Self::Connect { place, subsystem: None, .. } => {
                format!("connect all subsystems that {} tells of", at(place))
            }
            Self::Disconnect { subsystem, place: Some(place) } => {
                format!("disconnect {subsystem} from {}", at(place))
            }
            Self::Disconnect { subsystem, place: None } => format!("disconnect {subsystem}"),
        }
    }
}

/// A whole number within these.
fn within(
    fields: &mut Fields<'_>,
    name: &str,
    (least, most): (u16, u16),
) -> Result<Option<u16>, Refusal> {
    let value = fields.take(name).map(|node| node.whole(least.into(), most.into())).transpose()?;
    Ok(value.and_then(|value| u16::try_from(value).ok()))
}

/// Those that also a discovery service is asked with.
fn host(fields: &mut Fields<'_>) -> Result<Terms, Refusal> {
    let mut text = |name| -> Result<_, Refusal> {
        Ok(fields.take(name).map(|node| node.text()).transpose()?.map(str::to_owned))
    };
    let (host_nqn, host_id) = (text("HostNQN")?, text("HostID")?);
    let mut truth = |name| fields.take(name).map(|node| node.truth()).transpose();
    let (header_digest, data_digest) = (truth("HeaderDigest")?, truth("DataDigest")?);
    Ok(Terms { host_nqn, host_id, header_digest, data_digest, ..Terms::default() })
}

fn terms(fields: &mut Fields<'_>) -> Result<Terms, Refusal> {
    Ok(Terms {
        io_queues: within(fields, "IOQueues", IO_QUEUES)?,
        queue_size: within(fields, "QueueSize", QUEUE_SIZE)?,
        keep_alive: within(fields, "KeepAliveSeconds", KEEP_ALIVE)?,
        reconnect_delay: within(fields, "ReconnectDelaySeconds", RECONNECT_DELAY)?,
        fast_io_fail: within(fields, "FastIOFailSeconds", FAST_IO_FAIL)?,
        controller_loss: within(fields, "ControllerLossSeconds", CONTROLLER_LOSS)?,
        ..host(fields)?
    })
}

fn port(fields: &mut Fields<'_>) -> Result<Option<u16>, Refusal> {
    within(fields, "Port", (1, u16::MAX))
}

/// Reads such a change; `None` if the request is of something else.
pub(super) fn parse(
    resource: Resource,
    method: Method,
    fields: &mut Fields<'_>,
) -> Option<Result<FabricChange, Refusal>> {
    match (method, resource) {
        (Method::Post, Resource::Discover) => Some(discover(fields)),
        (Method::Post, Resource::Connect) => Some(connect(fields)),
        (Method::Post, Resource::Disconnect) => Some(disconnect(fields)),
        _ => None,
    }
}

fn discover(fields: &mut Fields<'_>) -> Result<FabricChange, Refusal> {
    let address = fields.need("Address")?.text()?.to_owned();
    let port = port(fields)?.unwrap_or(DISCOVERY_PORT);
    let terms = host(fields)?;
    Ok(FabricChange::Discover { place: Place { address, port }, terms })
}

fn connect(fields: &mut Fields<'_>) -> Result<FabricChange, Refusal> {
    let address = fields.need("Address")?.text()?.to_owned();
    let port = port(fields)?;
    let subsystem = fields.take("Subsystem").map(|node| node.text()).transpose()?;
    let usual = if subsystem.is_some() { PORT } else { DISCOVERY_PORT };
    let place = Place { address, port: port.unwrap_or(usual) };
    let (subsystem, terms) = (subsystem.map(str::to_owned), terms(fields)?);
    Ok(FabricChange::Connect { place, subsystem, terms })
}

fn disconnect(fields: &mut Fields<'_>) -> Result<FabricChange, Refusal> {
    let subsystem = fields.need("Subsystem")?.text()?.to_owned();
    let address = fields.take("Address").map(|node| node.text()).transpose()?;
    let port = port(fields)?;
    let place = match (address, port) {
        (Some(address), port) => {
            Some(Place { address: address.to_owned(), port: port.unwrap_or(PORT) })
        }
        (None, None) => None,
        (None, Some(_)) => return Err(fields.missing("Address")),
    };
    Ok(FabricChange::Disconnect { subsystem, place })
}
