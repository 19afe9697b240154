//! What a drive behind NVMe over Fabrics has beside what Redfish says of it.

use super::{PathAccess, PathState};
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path to a drive behind NVMe over Fabrics.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct RemotePath {
    /// Address and port of the controller.
    pub address: String,
    /// What becomes of requests by it.
    pub state: PathState,
    /// How the controller comes to the namespace, as it said last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub access_state: Option<PathAccess>,
    /// The controller's number in its subsystem, while the path is live.
    #[serde(rename = "ControllerID", skip_serializing_if = "Option::is_none", default)]
    pub controller_id: Option<u16>,
    /// I/O queues that are connected.
    pub queues: u16,
    /// How often an association ended, or could not begin.
    pub errors: u64,
    /// Associations behind the first.
    pub reconnects: u64,
    /// What was wrong last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_error: Option<String>,
    /// The time until it is tried again, if it will be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_try_seconds: Option<u64>,
}

impl From<&view::RemotePath> for RemotePath {
    fn from(own: &view::RemotePath) -> Self {
        Self {
            address: own.address.clone(),
            state: own.state.into(),
            access_state: own.ana.map(PathAccess::from),
            controller_id: own.cntlid,
            queues: own.queues,
            errors: own.errors,
            reconnects: own.reconnects,
            last_error: own.last_error.clone(),
            next_try_seconds: own.next_try_seconds,
        }
    }
}

impl From<RemotePath> for view::RemotePath {
    fn from(own: RemotePath) -> Self {
        Self {
            address: own.address,
            state: own.state.into(),
            ana: own.access_state.map(view::PathAccess::from),
            cntlid: own.controller_id,
            queues: own.queues,
            errors: own.errors,
            reconnects: own.reconnects,
            last_error: own.last_error,
            next_try_seconds: own.next_try_seconds,
        }
    }
}
