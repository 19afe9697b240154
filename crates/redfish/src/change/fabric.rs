//! What a request wants done with paths to drives behind NVMe over Fabrics.
//!
//! - `PalisadeManager.Discover`: `Address`, `Port`?.
//! - `PalisadeManager.Connect`: `Address`, `Port`?, `Subsystem`?. Without the latter, all that the
//!   discovery service at that address tells.
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

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FabricChange {
    /// Asks a discovery service where subsystems are.
    Discover(Place),
    /// Connects a subsystem by a path; without its name, all that are found there.
    Connect {
        /// Where.
        place: Place,
        /// The subsystem.
        subsystem: Option<String>,
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
            Self::Discover(place) => format!("ask {} where subsystems are", at(place)),
            Self::Connect { place, subsystem: Some(name) } => {
                format!("connect {name} by {}", at(place))
            }
            Self::Connect { place, subsystem: None } => {
                format!("connect all subsystems that {} tells of", at(place))
            }
            Self::Disconnect { subsystem, place: Some(place) } => {
                format!("disconnect {subsystem} from {}", at(place))
            }
            Self::Disconnect { subsystem, place: None } => format!("disconnect {subsystem}"),
        }
    }
}

fn port(fields: &mut Fields<'_>) -> Result<Option<u16>, Refusal> {
    let port = fields.take("Port").map(|node| node.whole(1, u16::MAX.into())).transpose()?;
    // Within these it is one.
    Ok(port.and_then(|port| u16::try_from(port).ok()))
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
    Ok(FabricChange::Discover(Place { address, port }))
}

fn connect(fields: &mut Fields<'_>) -> Result<FabricChange, Refusal> {
    let address = fields.need("Address")?.text()?.to_owned();
    let port = port(fields)?;
    let subsystem = fields.take("Subsystem").map(|node| node.text()).transpose()?;
    let usual = if subsystem.is_some() { PORT } else { DISCOVERY_PORT };
    let place = Place { address, port: port.unwrap_or(usual) };
    Ok(FabricChange::Connect { place, subsystem: subsystem.map(str::to_owned) })
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
