//! Courses as results: `STATE-WORKLOAD` and its aspects, `STATE-WORKLOAD-ASPECT`.
//!
//! A result is the mean of the instances, with the smallest and the largest.
//!
//! A ratio counts only if drives were asked for what the plan asks for: more may be the cost of
//! something that is not meant to be measured, and less may be answered by nobody's drive. Where it
//! does not count its goal is not met, and a note says why.

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
    /// Reads and writes of drives for one request, by an independent count.
    pub plan: Option<(f64, f64)>,
    /// Whether the bare drives were asked for what they should have been.
    pub is_bare_unplanned: bool,
}

/// Why a figure is not known.
const UNKNOWN: &str = "no request was done in an instance, or the array was in this state for too \
                       short a time: give more --seconds or a larger --area";

/// How far what drives are asked for may be from the plan, in parts of it.
const OFF_PLAN: f64 = 0.02;

/// Whether drives were asked for what was planned, for each request; so it is taken to be where
/// nobody counts.
pub fn is_as_planned(course: &Course, (reads, writes): (f64, f64)) -> bool {
    !course.is_asked_here()
        || is_planned(course.mean(|own| own.for_each(own.asked.reads)), reads)
            && is_planned(course.mean(|own| own.for_each(own.asked.own_writes())), writes)
}

/// Whether `asked` is what was planned.
fn is_planned(asked: f64, plan: f64) -> bool {
    (asked - plan).abs() <= OFF_PLAN * if plan > 0.0 { plan } else { 1.0 }
}

/// The mean of these with the smallest and the largest.
fn spread(values: &[f64]) -> Option<Spread> {
    let all = Spread::of(values.iter().copied())?;
    Some(Spread { median: workload::mean(values), ..all })
}

/// Adds a course to a report.
pub fn add(report: &mut Report, state: &str, course: &Course, against: Against) {
    let name = format!("{state}-{}", course.workload.name);
    if !course.is_known() {
        // Not 0: of this nothing is known.
        report.leave_open(&name, UNKNOWN);
        return runs(report, &name, course);
    }
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
    // The machine counts its time in ticks, of which a short run may have none.
    if course.instances().iter().all(|own| own.cpu_percent > 0.0) {
        one("per-cpu-percent", unit, each(&per_cpu), None);
    }
    let reads = |own: &Instance| own.for_each(own.asked.reads);
    let writes = |own: &Instance| own.for_each(own.asked.own_writes());
    let unplanned = against.plan.filter(|plan| !is_as_planned(course, *plan));
    if let Some(baseline) = against.baseline {
        let ratios: Vec<f64> = values.iter().map(|value| value / baseline).collect();
        one("to-baseline", "ratio", spread(&ratios), None);
        if let Some(bound) = against.bound {
            let of_bound: Vec<f64> = ratios.iter().map(|ratio| ratio / bound).collect();
            let is_whole = course.instances().iter().all(|own| own.is_whole);
            let goal = against.goal.filter(|_| is_whole).map(Goal::AtLeast);
            one("of-bound", "ratio", spread(&of_bound), goal);
        }
    }
    if course.is_asked_here() {
        one("drive-reads", "requests", each(&reads), None);
        one("drive-writes", "requests", each(&writes), None);
        one("drive-pages", "requests", each(&|own| own.for_each(own.asked.pages)), None);
        one("drive-batches", "requests", each(&|own| own.for_each(own.asked.batches)), None);
    }
    if against.baseline.is_some() {
        if let Some((plan_reads, plan_writes)) = unplanned {
            let why = format!(
                "for each request drives were asked for {:.3} reads and {:.3} writes, and the plan \
                 is {plan_reads:.3} and {plan_writes:.3}",
                course.mean(reads),
                course.mean(writes)
            );
            does_not_count(report, &name, &why);
        } else if against.is_bare_unplanned {
            does_not_count(report, &name, "the bare drives were not asked for each request once");
        }
    }
    notes(report, &name, course, (between, within));
    runs(report, &name, course);
}

/// Says that a workload's ratios do not count.
fn does_not_count(report: &mut Report, name: &str, why: &str) {
    let ratios = ["to-baseline", "of-bound"].map(|aspect| format!("{name}-{aspect}"));
    for result in report.results.iter_mut().filter(|own| ratios.contains(&own.name)) {
        result.met = result.met.map(|_| false);
    }
    report.notes.push(format!("{name}: its ratios do not count: {why}"));
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
    if let Some(short) = course.instances().iter().find(|own| !own.is_whole) {
        let seconds = short.ran.tally.time.0 as f64 / 1e9;
        report.notes.push(format!(
            "{name} was measured for {seconds:.2} s only: the array is in this state for too short \
             a time"
        ));
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
            interval_seconds: instance.interval().as_secs_f64(),
            series: instance.ran.tally.series.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_counts_only_if_drives_do_what_is_planned() {
        for (asked, plan, is_it) in [
            (2.0, 2.0, true),
            (2.039, 2.0, true),
            (2.05, 2.0, false),
            (1.95, 2.0, false),
            (0.01, 0.0, true),
            (0.03, 0.0, false),
            (0.5, 0.0, false),
        ] {
            assert_eq!(is_planned(asked, plan), is_it, "{asked} of {plan}");
        }
        let mut report = Report::new("", "");
        let one = Spread::of([1.0]);
        report.add("nominal-x-of-bound", "ratio", one, Some(Goal::AtLeast(0.5)));
        report.add("nominal-x-to-baseline", "ratio", one, None);
        report.add("nominal-y-of-bound", "ratio", one, Some(Goal::AtLeast(0.5)));
        does_not_count(&mut report, "nominal-x", "why");
        let met: Vec<_> = report.results.iter().map(|own| own.met).collect();
        assert_eq!(met, [Some(false), None, Some(true)]);
        assert_eq!(report.notes, ["nominal-x: its ratios do not count: why"]);
    }
}
