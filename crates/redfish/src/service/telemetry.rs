//! The service of metrics, and what it tells: definitions and reports.

use super::{Standing, collection, history, link, put_named, uri};
use crate::dates;
use crate::history::{STEPS, Step};
use crate::routes::{Match, Resource};
use crate::telemetry::{self, METRICS, Reading, Report, Values};
use crate::view::View;
use serde_json::{Value, json};

/// How often metrics are read, and reports sent (ISO 8601).
const INTERVAL: &str = "PT1S";

/// A resource of the service.
pub(super) fn rendered(view: &View, found: &Match) -> Option<Value> {
    use Resource as R;
    let id = found.id(0);
    match found.route.resource {
        R::TelemetryService => Some(service()),
        R::MetricDefinitions => Some(definitions()),
        R::MetricDefinition => definition(id),
        R::MetricReportDefinitions => Some(report_definitions()),
        R::MetricReportDefinition => report_definition(id),
        R::MetricReports => Some(reports()),
        R::MetricReport => report(view, id),
        _ => None,
    }
}

fn service() -> Value {
    json!({
        "@odata.id": uri::TELEMETRY,
        "@odata.type": "#TelemetryService.v1_4_1.TelemetryService",
        "Id": "TelemetryService",
        "Name": "Metrics",
        "ServiceEnabled": true,
        "Status": Standing::GOOD.status(),
        "MaxReports": Report::ALL.len() + STEPS,
        "MinCollectionInterval": INTERVAL,
        "MetricDefinitions": link(uri::METRIC_DEFINITIONS),
        "MetricReportDefinitions": link(uri::METRIC_REPORT_DEFINITIONS),
        "MetricReports": link(uri::METRIC_REPORTS),
    })
}

fn definitions() -> Value {
    let uris = METRICS.iter().map(|metric| uri::metric_definition(metric.id));
    let uris = uris.chain(history::definitions());
    collection(uri::METRIC_DEFINITIONS, "MetricDefinitionCollection", "Metrics", uris)
}

fn definition(id: &str) -> Option<Value> {
    let Some(metric) = telemetry::metric_of(id) else { return history::definition(id) };
    let (kind, data) = match metric.values {
        Values::Counter => ("Counter", "Integer"),
        Values::Gauge => ("Gauge", "Integer"),
        Values::Truth => ("Discrete", "Boolean"),
    };
    let mut resource = json!({
        "@odata.id": uri::metric_definition(id),
        "@odata.type": "#MetricDefinition.v1_3_6.MetricDefinition",
        "Id": id,
        "Name": metric.about,
        "MetricType": kind,
        "MetricDataType": data,
        "SensingInterval": INTERVAL,
    });
    put_named(&mut resource, "Units", metric.units);
    Some(resource)
}

/// The identifiers of all reports that there always are.
fn ids() -> impl Iterator<Item = &'static str> {
    Report::ALL.into_iter().map(Report::id).chain(Step::ALL.into_iter().map(Step::id))
}

fn report_definitions() -> Value {
    let uris = ids().map(uri::metric_report_definition);
    let (uri, schema) = (uri::METRIC_REPORT_DEFINITIONS, "MetricReportDefinitionCollection");
    collection(uri, schema, "Reports of metrics", uris)
}

fn report_definition(id: &str) -> Option<Value> {
    let Some(report) = Report::of(id) else { return history::report_definition(id) };
    let metrics: Vec<Value> =
        report.metrics().map(|metric| json!({"MetricId": metric.id})).collect();
    Some(json!({
        "@odata.id": uri::metric_report_definition(id),
        "@odata.type": "#MetricReportDefinition.v1_4_7.MetricReportDefinition",
        "Id": id,
        "Name": name(report),
        "MetricReportDefinitionType": "Periodic",
        "MetricReportDefinitionEnabled": true,
        "Schedule": {"RecurrenceInterval": INTERVAL},
        "ReportActions": ["LogToMetricReportsCollection", "RedfishEvent"],
        "ReportUpdates": "Overwrite",
        "SuppressRepeatedMetricValue": true,
        "Status": Standing::GOOD.status(),
        "Metrics": metrics,
        "MetricReport": link(uri::metric_report(id)),
    }))
}

fn name(report: Report) -> String {
    format!("Metrics of {}", report.id().to_ascii_lowercase())
}

fn reports() -> Value {
    let uris = ids().map(uri::metric_report);
    collection(uri::METRIC_REPORTS, "MetricReportCollection", "Reports of metrics", uris)
}

fn report(view: &View, id: &str) -> Option<Value> {
    let Some(report) = Report::of(id) else { return history::report(view, id, true) };
    Some(report_of(view, report, &telemetry::readings(view, report)))
}

/// A report with these readings.
pub fn report_of(view: &View, report: Report, readings: &[Reading]) -> Value {
    let value = |own: &Reading| {
        let (metric, of) = (own.metric, &own.of);
        json!({"MetricId": metric, "MetricProperty": of, "MetricValue": own.value})
    };
    json!({
        "@odata.id": uri::metric_report(report.id()),
        "@odata.type": "#MetricReport.v1_5_2.MetricReport",
        "Id": report.id(),
        "Name": name(report),
        "MetricReportDefinition": link(uri::metric_report_definition(report.id())),
        "Timestamp": dates::text_of_millis(view.counters.at),
        "MetricValues": readings.iter().map(value).collect::<Vec<_>>(),
    })
}
