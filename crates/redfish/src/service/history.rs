//! Reports of the past: by seconds, minutes and hours, of the machine or of one thing.
//!
//! `Seconds` is of the machine; `Seconds.array.UUID`, `Seconds.volume.UUID` and `Seconds.drive.ID`
//! are of one thing. These are no members of the collection of reports: there are three for each
//! thing, and what expands the collection would be too large.

use super::{link, put_named, uri};
use crate::dates;
use crate::history::number::shown;
use crate::history::rows::Key;
use crate::history::series::{How, Kind, METRICS, Metric, metric_of};
use crate::history::{Points, Step, report_id, report_of};
use crate::oem;
use crate::view::View;
use serde_json::{Value, json};

/// URIs of the definitions of the past's metrics.
pub(super) fn definitions() -> impl Iterator<Item = String> {
    METRICS.iter().map(|metric| uri::metric_definition(metric.id))
}

/// The definition of a metric of the past.
pub(super) fn definition(id: &str) -> Option<Value> {
    let Metric { id, units, about } = metric_of(id)?;
    let mut resource = json!({
        "@odata.id": uri::metric_definition(id),
        "@odata.type": "#MetricDefinition.v1_3_6.MetricDefinition",
        "Id": id,
        "Name": about,
        "MetricType": "Gauge",
        "MetricDataType": "Decimal",
        "SensingInterval": Step::Seconds.interval(),
    });
    put_named(&mut resource, "Units", units);
    Some(resource)
}

/// What reports of a step are, if the identifier is that of one.
pub(super) fn report_definition(id: &str) -> Option<Value> {
    let step = Step::ALL.into_iter().find(|step| step.id() == id)?;
    let mut metrics: Vec<Value> = Vec::new();
    for metric in METRICS {
        let mut fields = Kind::ALL.iter().flat_map(|kind| kind.fields());
        let how = fields.find(|field| field.metric == metric.id).map(|field| field.how);
        let function = match how.filter(|_| step != Step::Seconds) {
            Some(How::Most) => Some("Maximum"),
            Some(How::Mean | How::MeanOfRequests(_)) => Some("Average"),
            _ => None,
        };
        metrics.push(match function {
            Some(function) => json!({
                "MetricId": metric.id,
                "CollectionFunction": function,
                "CollectionDuration": step.interval(),
            }),
            None => json!({"MetricId": metric.id}),
        });
    }
    Some(json!({
        "@odata.id": uri::metric_report_definition(id),
        "@odata.type": "#MetricReportDefinition.v1_4_7.MetricReportDefinition",
        "Id": id,
        "Name": name(step, &Key::Machine),
        "MetricReportDefinitionType": "Periodic",
        "MetricReportDefinitionEnabled": true,
        "Schedule": {"RecurrenceInterval": step.interval()},
        "ReportActions": ["LogToMetricReportsCollection"],
        "ReportUpdates": "AppendWrapsWhenFull",
        "AppendLimit": step.points() * Kind::Machine.fields().len(),
        "Status": super::Standing::GOOD.status(),
        "Metrics": metrics,
        "MetricReport": link(uri::metric_report(id)),
    }))
}

fn name(step: Step, key: &Key) -> String {
    let of = match key.kind() {
        Kind::Machine => "the machine".to_owned(),
        kind => format!("{} {}", kind.word(), key.name()),
    };
    format!("The past of {of} by {}", step.id().to_ascii_lowercase())
}

/// The URI of a thing, if it is there, and how it is named.
fn subject(view: &View, key: &Key) -> Option<(String, Key)> {
    let (uri, name) = match key {
        Key::Machine => (uri::MANAGER.to_owned(), ""),
        Key::Array(uuid) => view.array(uuid).map(|own| (uri::pool(&own.uuid), &own.uuid[..]))?,
        Key::Volume(uuid) => {
            let (_, own) = view.volume(uuid)?;
            (uri::volume(&own.uuid), &own.uuid[..])
        }
        Key::Drive(id) => view.drive(id).map(|own| (uri::drive(&own.id), &own.id[..]))?,
    };
    Some((uri, Key::of(key.kind(), name)?))
}

/// A report of the past, with what Redfish makes of it if that `is_whole`: a value for each number.
pub(super) fn report(view: &View, id: &str, is_whole: bool) -> Option<Value> {
    let (step, key) = report_of(id)?;
    let (of, key) = subject(view, &key)?;
    let (points, last) = {
        let past = view.past.lock();
        (past.points(&key, step), past.last())
    };
    let none = || Points { begin: 0, fields: key.kind().fields(), columns: Vec::new() };
    let points = points.unwrap_or_else(none);
    let id = report_id(step, &key);
    let extension = oem::MetricReport { series: series(&points, step, &id, &of) };
    let mut resource = json!({
        "@odata.id": uri::metric_report(&id),
        "@odata.type": "#MetricReport.v1_5_2.MetricReport",
        "Id": id,
        "Name": name(step, &key),
        "MetricReportDefinition": link(uri::metric_report_definition(step.id())),
        "Timestamp": dates::text(if last == 0 { view.server.now } else { last }),
        "Oem": oem::wrapped(&extension),
    });
    if is_whole {
        super::put(&mut resource, "MetricValues", Value::Array(values(&points, step, &of)));
    }
    Some(resource)
}

fn series(points: &Points, step: Step, id: &str, of: &str) -> Vec<oem::Series> {
    let columns = points.fields.iter().zip(&points.columns);
    let column = columns.filter(|(_, values)| !values.is_empty());
    let one = column.map(|(field, values)| oem::Series {
        id: format!("{id}.{}", field.metric),
        metric_id: field.metric.to_owned(),
        metric_property: of.to_owned(),
        start_time: dates::text(points.begin),
        step_seconds: step.seconds(),
        values: values.iter().map(|value| value.map(shown)).collect(),
    });
    one.collect()
}

/// Of an interval all values that are known, oldest first.
fn values(points: &Points, step: Step, of: &str) -> Vec<Value> {
    let count = points.columns.first().map_or(0, Vec::len);
    let mut all = Vec::new();
    for at in 0..count {
        let time = dates::text(points.begin + at as u64 * step.seconds());
        for (field, column) in points.fields.iter().zip(&points.columns) {
            let Some(value) = column.get(at).copied().flatten() else { continue };
            all.push(json!({
                "MetricId": field.metric,
                "MetricProperty": of,
                "MetricValue": shown(value).to_string(),
                "Timestamp": time,
            }));
        }
    }
    all
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
