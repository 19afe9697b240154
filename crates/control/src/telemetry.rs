//! What is done once a second: reports of metrics go to the streams that want them, and a sample of
//! the past is taken ([`crate::history`]).
//!
//! Purpose: the first report of a kind that is wanted holds all its values, and so does one each
//! minute; those between hold what changed. Whoever comes later, or missed some, reads the whole
//! report with a GET, or waits for it.
//!
//! Invariants
//! - Where nobody wants a report, none is made.
//! - Each report is of a new sample: samples are taken within half of a second, reports sent in the
//!   other half.

use crate::manager::Manager;
use redfish::service::{self, uri};
use redfish::telemetry::Report;
use redfish::view::View;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval_at};

/// How often.
const EACH: Duration = Duration::from_secs(1);

/// A report holds all values once in so many.
const WHOLE: u32 = 60;

/// The view that each report told last.
type Told = BTreeMap<Report, Arc<View>>;

impl Manager {
    /// Sends reports for as long as the daemon runs.
    pub(crate) async fn keep_reporting(&self) {
        let mut told = Told::new();
        let start = self.data.ledger().start() + EACH * 3 / 4;
        let mut ticks = interval_at(start.into(), EACH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for number in 0_u32.. {
            ticks.tick().await;
            if number.is_multiple_of(WHOLE) {
                told.clear();
            }
            self.report_once(&mut told);
            self.history.tick();
            self.metrics.forget_old();
        }
    }

    fn report_once(&self, told: &mut Told) {
        let (view, events) = (self.view(), self.events());
        for report in Report::ALL {
            let definition = uri::metric_report_definition(report.id());
            if !events.wants_reports(&definition) {
                told.remove(&report);
                continue;
            }
            let before = told.insert(report, view.clone()).unwrap_or_default();
            if let Some(made) = service::report(&before, &view, report) {
                events.report(&made, &definition);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::renewal::tests::run_with;
    use redfish::events::filter::{Filter, Wanted};
    use serde_json::Value;

    #[test]
    fn who_wants_a_report_has_all_of_it_and_then_what_changed() {
        run_with(false, vec![], async |manager| {
            manager.refresh();
            let (mut told, mut reports) = (Told::new(), manager.events().reports());
            manager.report_once(&mut told);
            assert!(reports.try_recv().is_err() && told.is_empty(), "nobody wants any");
            let filter = "EventFormatType eq 'MetricReport'";
            let wants = Wanted { filter: Filter::read(filter), ..Wanted::default() };
            let stream = manager.events().open(wants, "a", false).expect("room");
            manager.report_once(&mut told);
            let report = reports.try_recv().expect("a report");
            let text: Value = {
                let data = report.part.strip_prefix(b"data: ").expect("a part");
                serde_json::from_slice(data).expect("JSON")
            };
            assert_eq!(text["Id"], "Cores", "{text}");
            assert_eq!(text["MetricReportDefinition"]["@odata.id"], *report.definition);
            let all = text["MetricValues"].as_array().expect("values");
            assert_eq!(all.len(), Report::Cores.metrics().count(), "{text}");
            manager.report_once(&mut told);
            assert!(reports.try_recv().is_err(), "nothing changed in one view");
            drop(stream);
            manager.report_once(&mut told);
            assert!(told.is_empty());
        });
    }
}
