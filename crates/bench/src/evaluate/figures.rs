//! Courses as results: `STATE-WORKLOAD` and its aspects, `STATE-WORKLOAD-ASPECT`.
//!
//! A result is the mean of the instances, with the smallest and the largest.

use super::course::{Course, Instance, VARIES};
use crate::report::{Goal, Report, Run};
use crate::stats::Spread;
use workload::Steadiness;

/// What a workload's figures are compared with.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Against {
    /// What the bare drives gave: requests a second, or bytes.
    pub baseline: Option<f64>,
    /// The bound, as a part of what the bare drives give.
    pub bound: Option<f64>,
    /// What `of-bound` should reach.
    pub goal: Option<f64>,
}

/// The mean of these with the smallest and the largest.
fn spread(values: &[f64]) -> Option<Spread> {
    let all = Spread::of(values.iter().copied())?;
    Some(Spread { median: workload::mean(values), ..all })
}

/// Adds a course to a report.
pub fn add(report: &mut Report, state: &str, course: &Course, against: Against) {
    let name = format!("{state}-{}", course.workload.name);
    let (values, is_bandwidth) = (course.values(), course.workload.is_sequential());
    let (unit, factor) = if is_bandwidth { ("GB/s", 1e9) } else { ("iops", 1.0) };
    let told: Vec<f64> = values.iter().map(|value| value / factor).collect();
    report.add(&name, unit, spread(&told), None);
    let mut one = |aspect: &str, unit, spread, goal| {
        report.add(&format!("{name}-{aspect}"), unit, spread, goal);
    };
    let each = |of: &dyn Fn(&Instance) -> f64| {
        spread(&course.instances().iter().map(of).collect::<Vec<_>>())
    };
    let below = |part: f64| each(&|own| own.ran.tally.times().below(part).0 as f64 / 1e3);
    one("latency-us", "us", each(&|own| own.ran.tally.times().mean() / 1e3), None);
    one("p50-us", "us", below(0.5), None);
    one("p99-us", "us", below(0.99), None);
    one("p999-us", "us", below(0.999), None);
    one("max-us", "us", each(&|own| own.ran.tally.times().longest().0 as f64 / 1e3), None);
    let (between, within) = course.variation();
    one("cov", "ratio", Spread::of([between]), None);
    one("cov-seconds", "ratio", Spread::of([within]), None);
    one("cpu-percent", "%", each(&|own| own.cpu_percent), None);
    one("looking-percent", "%", each(&|own| own.looking_percent), None);
    let per_cpu = |own: &Instance| own.value(&course.workload) / factor / own.cpu_percent;
    one("per-cpu-percent", unit, each(&per_cpu), None);
    if let Some(baseline) = against.baseline {
        let ratios: Vec<f64> = values.iter().map(|value| value / baseline).collect();
        one("to-baseline", "ratio", spread(&ratios), None);
        if let Some(bound) = against.bound {
            let of_bound: Vec<f64> = ratios.iter().map(|ratio| ratio / bound).collect();
            one("of-bound", "ratio", spread(&of_bound), against.goal.map(Goal::AtLeast));
        }
    }
    let asked =
        |of: fn(&Instance) -> u64| each(&|own| of(own) as f64 / own.ran.tally.made.max(1) as f64);
    one("drive-reads", "requests", asked(|own| own.asked.reads), None);
    one("drive-writes", "requests", asked(|own| own.asked.writes), None);
    notes(report, &name, course, (between, within));
    runs(report, &name, course);
}

/// Says what a reader should doubt.
fn notes(report: &mut Report, name: &str, course: &Course, (between, within): (f64, f64)) {
    if !course.windows.is_empty() && !course.steadiness.is_steady() {
        let how = match course.steadiness {
            Steadiness::Few => "there were less than five windows".to_owned(),
            Steadiness::Known { range, drift } => format!(
                "range {:.0}% and drift {:.0}% of the mean in the last five windows",
                range * 100.0,
                drift * 100.0
            ),
        };
        report.notes.push(format!("{name} was not steady: {how}"));
    }
    if course.all.len() > course.counted {
        let again = if between > VARIES || within > VARIES { ", and so did they" } else { "" };
        report.notes.push(format!(
            "{name}: the first instances varied by more than {:.0}% and were run again{again}",
            VARIES * 100.0
        ));
    }
}

fn runs(report: &mut Report, name: &str, course: &Course) {
    let first = course.all.len() - course.counted;
    for (number, instance) in course.all.iter().enumerate() {
        report.runs.push(Run {
            name: name.to_owned(),
            instance: number + 1,
            counts: number >= first,
            flagged: instance.is_flagged,
            interval_seconds: course.interval.as_secs_f64(),
            series: instance.ran.tally.series.clone(),
        });
    }
}
