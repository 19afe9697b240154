//! What alerts have beside what Redfish says of conditions.

use super::Extension;
use crate::dates;
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the service's conditions have beside what Redfish says of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceConditions {
    /// The alerts of `Conditions`, in the same order.
    pub alerts: Vec<Alert>,
}

impl Extension for ServiceConditions {
    const OF: &'static str = "ServiceConditions";
}

/// A condition as an alert.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Alert {
    /// Names the alert. It is never used again.
    pub id: String,
    /// What the alert is about: an array's name, a drive's path.
    pub name: String,
    /// The URI of what the alert is about, also where that is not there any more.
    pub resource: String,
    /// When somebody acknowledged the alert; absent if nobody did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acknowledged_time: Option<String>,
    /// Who that was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acknowledged_by: Option<String>,
}

impl From<&view::Alert> for Alert {
    fn from(alert: &view::Alert) -> Self {
        let acknowledged = alert.acknowledged.as_ref();
        Self {
            id: alert.id.clone(),
            name: alert.name.clone(),
            resource: alert.of.clone(),
            acknowledged_time: acknowledged.map(|(at, _)| dates::text(*at)),
            acknowledged_by: acknowledged.map(|(_, who)| who.clone()),
        }
    }
}
