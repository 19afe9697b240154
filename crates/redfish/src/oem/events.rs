//! What a subscription to events has beside what Redfish says of it.

use super::Extension;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a subscription to events has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct EventDestination {
    /// Events that were delivered since the daemon's start.
    pub delivered_events: u64,
    /// Events that were never delivered, as more came than are kept.
    pub dropped_events: u64,
    /// Why the last delivery failed; none if it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

impl Extension for EventDestination {
    const OF: &'static str = "EventDestination";
}
