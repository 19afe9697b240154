//! Who has a shared array.

use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The server that has a shared array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Owner {
    /// The server's host id.
    pub host_id: String,
    /// Tells a start of the server from others.
    pub boot_id: String,
    /// What people call the server; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_name: Option<String>,
    /// Whether it is this server, since this start of it.
    pub own: bool,
    /// How long ago the server last said that it lives, in milliseconds by both clocks; absent if
    /// the drives don't tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub heartbeat_age_ms: Option<u64>,
}

impl From<&view::Owner> for Owner {
    fn from(from: &view::Owner) -> Self {
        let view::Owner { host_id, boot_id, name, own, heartbeat_age_ms } = from.clone();
        let host_name = Some(name).filter(|name| !name.is_empty());
        Self { host_id, boot_id, host_name, own, heartbeat_age_ms }
    }
}

impl From<Owner> for view::Owner {
    fn from(from: Owner) -> Self {
        let Owner { host_id, boot_id, host_name, own, heartbeat_age_ms } = from;
        Self { host_id, boot_id, name: host_name.unwrap_or_default(), own, heartbeat_age_ms }
    }
}
