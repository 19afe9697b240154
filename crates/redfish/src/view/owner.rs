//! Who has a shared array.

use serde::{Deserialize, Serialize};

/// The server that has a shared array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Owner {
    /// Its host id.
    pub host_id: String,
    /// Tells a start of it from others.
    pub boot_id: String,
    /// What people call it; empty if that is not known.
    #[serde(default)]
    pub name: String,
    /// Whether it is this server, since this start of it.
    pub own: bool,
    /// How long ago it last said that it lives, in milliseconds by both clocks; null if the drives
    /// don't tell.
    pub heartbeat_age_ms: Option<u64>,
}

impl Owner {
    /// How people know it.
    pub fn called(&self) -> &str {
        if self.name.is_empty() { &self.host_id } else { &self.name }
    }
}
