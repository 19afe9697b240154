//! The past, in fewer words than Redfish's reports of metrics need.

use super::Extension;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a report of the past has beside what Redfish says of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct MetricReport {
    /// A series for each metric. All of a report begin at the same moment, and are as long.
    pub series: Vec<Series>,
}

impl Extension for MetricReport {
    const OF: &'static str = "MetricReport";
}

/// A metric over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Series {
    /// Names the series.
    pub id: String,
    /// The identifier of the metric.
    pub metric_id: String,
    /// The URI of what was measured.
    pub metric_property: String,
    /// When the first interval begins.
    #[schemars(extend("format" = "date-time"))]
    pub start_time: String,
    /// How long an interval is.
    pub step_seconds: u64,
    /// A value for each interval, oldest first; null where nobody knows.
    pub values: Vec<Option<f64>>,
}
