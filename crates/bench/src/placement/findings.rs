//! What the turns came to: which figures count, and why the others stay open.

use super::{WHOLE, Workload, placements};
use crate::report::{Goal, Report};
use crate::stats::{Sample, Spread};
use core::fmt;
use parity_gpu::{Fence, Figures, Placement};

/// What `auto` must reach of the better one.
const AUTO_GOAL: f64 = 0.97;
/// What a GPU must save of the CPU's time for parity.
const SAVED_GOAL: f64 = 0.80;

/// Who computes an array's parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Placed(Placement),
    /// Nobody: see [`crate::omitted`].
    Omitted,
}

impl Who {
    const CPU: Who = Who::Placed(Placement::Cpu);
    const GPU: Who = Who::Placed(Placement::Gpu);
    const AUTO: Who = Who::Placed(Placement::Auto);

    pub(super) fn needs_gpu(self) -> bool {
        matches!(self, Who::GPU | Who::AUTO)
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Placed(placement) => placement.fmt(f),
            Who::Omitted => f.write_str("none"),
        }
    }
}

/// What a GPU did meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Done {
    pub(super) jobs: u64,
    pub(super) bytes: u64,
    pub(super) undone: u64,
    pub(super) sampled: u64,
}

impl Done {
    /// This, and what was done between two looks.
    pub(super) fn and(self, before: &Figures, after: &Figures) -> Done {
        Done {
            jobs: self.jobs + (after.jobs - before.jobs),
            bytes: self.bytes + (after.bytes - before.bytes),
            undone: self.undone + (after.undone - before.undone),
            sampled: self.sampled + (after.sampled - before.sampled),
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { jobs, bytes, undone, sampled } = self;
        write!(f, "{jobs} jobs ({bytes} bytes) by the GPU, {undone} undone, {sampled} compared")
    }
}

/// One workload's rounds: a sample for each side in each, by the order of `whos`.
pub(super) struct Found {
    pub(super) workload: &'static Workload,
    pub(super) whos: Vec<Who>,
    pub(super) rounds: Vec<Vec<Sample>>,
    pub(super) done: Vec<Done>,
    /// Of the GPU, when it was over.
    pub(super) fence: Option<Fence>,
}

/// A side's samples.
type Samples = Vec<Sample>;

impl Found {
    /// The samples of a side, or why they don't count.
    fn samples(&self, who: Who) -> Result<Samples, String> {
        if let Some(fence) = self.fence.as_ref().filter(|_| who.needs_gpu()) {
            return Err(fence.to_string());
        }
        let at = self.whos.iter().position(|known| *known == who);
        let at = at.ok_or_else(|| "it was not measured".to_owned())?;
        let samples: Samples = self.rounds.iter().map(|round| round[at]).collect();
        if who == Who::GPU {
            self.was_done(&samples, self.done[at])?;
        }
        Ok(samples)
    }

    /// Whether the GPU did all that was placed there; else what it did.
    fn was_done(&self, samples: &[Sample], done: Done) -> Result<(), String> {
        let requests: u64 = samples.iter().map(|sample| sample.operations).sum();
        let least = self.workload.computed * requests as f64 * self.workload.bytes as f64;
        if done.undone > 0 || (done.bytes as f64) < least {
            return Err(format!("of {requests} requests: {done}; the CPU did the rest"));
        }
        Ok(())
    }

    /// `auto` round by round over the better one of the others: the one whose median is higher, as
    /// the higher of two noisy samples would be more than either gives.
    fn auto_vs_best(&self) -> Result<Option<Spread>, String> {
        let [cpu, gpu, auto] = [Who::CPU, Who::GPU, Who::AUTO].map(|who| self.samples(who));
        let (cpu, gpu, auto) = (cpu?, gpu?, auto?);
        let median = |samples: &Samples| Spread::of(samples.iter().map(Sample::rate));
        let of = |samples| median(samples).map_or(0.0, |rate| rate.median);
        let best = if of(&cpu) >= of(&gpu) { &cpu } else { &gpu };
        Ok(Spread::of(auto.iter().zip(best).map(|(auto, best)| auto.rate() / best.rate())))
    }

    /// What parity costs the CPU in place, in microseconds a request: what the CPU's array spends
    /// more than the one without parity. And the share of it that a GPU saves, round by round.
    fn saved(&self) -> Result<(Spread, Option<Spread>), String> {
        let [cpu, none, gpu] = [Who::CPU, Who::Omitted, Who::GPU].map(|who| self.samples(who));
        let (cpu, none, gpu) = (cpu?, none?, gpu?);
        let less = |from: &Samples, what: &Samples| -> Vec<f64> {
            from.iter().zip(what).map(|(a, b)| a.cpu_micros() - b.cpu_micros()).collect()
        };
        let parity = Spread::of(less(&cpu, &none)).filter(|cost| cost.median > 0.0);
        let parity = parity.ok_or("what parity costs the CPU is lost in the rounds' noise")?;
        let saved = less(&cpu, &gpu).into_iter().map(|saved| saved / parity.median);
        Ok((parity, Spread::of(saved)))
    }

    /// The figures of one side.
    fn side(&self, who: Who, report: &mut Report) {
        let name = format!("{}-{who}", self.workload.name);
        let samples = match self.samples(who) {
            Ok(samples) => samples,
            Err(reason) => {
                let parts = ["iops", "gbps", "cpu-us"];
                parts.iter().for_each(|part| report.leave_open(&format!("{name}-{part}"), &reason));
                return;
            }
        };
        let rate = Spread::of(samples.iter().map(Sample::rate));
        report.add(&format!("{name}-iops"), "iops", rate, None);
        let bytes = rate.map(|rate| rate.scaled(self.workload.bytes as f64 / 1e9));
        report.add(&format!("{name}-gbps"), "GB/s", bytes, None);
        let cpu = Spread::of(samples.iter().map(Sample::cpu_micros));
        report.add(&format!("{name}-cpu-us"), "us", cpu, None);
    }
}

/// All workloads.
pub(super) struct Findings<'a> {
    /// What was asked for.
    pub(super) parity: Placement,
    /// Why there is no GPU.
    pub(super) gpu: Result<(), &'a str>,
    /// That it computed something wrong: then nothing that it did counts.
    pub(super) wrong: Option<Fence>,
    pub(super) found: Vec<Found>,
}

impl Findings<'_> {
    /// Writes them down.
    pub(super) fn report(mut self, report: &mut Report, progress: &dyn Fn(&str)) {
        if self.wrong.is_some() {
            self.found.iter_mut().for_each(|found| found.fence = self.wrong.clone());
        }
        let placements = placements(self.parity, self.gpu.is_ok());
        for found in &self.found {
            placements.iter().for_each(|one| found.side(Who::Placed(*one), report));
            if found.whos.contains(&Who::Omitted) {
                found.side(Who::Omitted, report);
            }
            for (who, done) in found.whos.iter().zip(&found.done).filter(|(w, _)| w.needs_gpu()) {
                let note = format!("{}-{who}: {done}", found.workload.name);
                progress(&note);
                report.notes.push(note);
            }
        }
        self.auto_vs_best(report);
        self.saved(report);
    }

    /// Why a goal is not measured at all, if so.
    fn unasked(&self, by: &[Placement], words: &str) -> Option<String> {
        match self.gpu {
            _ if !by.contains(&self.parity) => Some(format!("{words} measures it")),
            Err(reason) => Some(reason.to_owned()),
            Ok(()) => None,
        }
    }

    /// Of each workload, and the worst of these.
    fn auto_vs_best(&self, report: &mut Report) {
        let (name, goal) = ("auto-vs-best", Some(Goal::AtLeast(AUTO_GOAL)));
        if let Some(reason) = self.unasked(&[Placement::Auto], "only --parity auto") {
            return report.leave_open(name, &reason);
        }
        let mut worst: Result<Option<Spread>, String> = Ok(None);
        for found in &self.found {
            let of_best = found.auto_vs_best();
            let own = format!("{}-{name}", found.workload.name);
            put(report, &own, of_best.clone(), None);
            worst = match (worst, of_best) {
                (Err(reason), _) | (_, Err(reason)) => Err(reason),
                (_, Ok(None)) => Err(format!("nothing was completed in some round of {own}")),
                (Ok(Some(worst)), Ok(Some(next))) if worst.median <= next.median => Ok(Some(worst)),
                (Ok(_), Ok(next)) => Ok(next),
            };
        }
        put(report, name, worst, goal);
    }

    fn saved(&self, report: &mut Report) {
        let (name, goal) = ("parity-cpu-saved", Some(Goal::AtLeast(SAVED_GOAL)));
        let by = [Placement::Gpu, Placement::Auto];
        if let Some(reason) = self.unasked(&by, "only --parity gpu or auto") {
            return report.leave_open(name, &reason);
        }
        let whole = self.found.iter().find(|found| found.workload.name == WHOLE.name);
        let saved = whole.expect("it is one of them").saved();
        let saved = saved.map(|(parity, saved)| {
            report.add("parity-cpu-us", "us", Some(parity), None);
            saved
        });
        put(report, name, saved, goal);
    }
}

/// Adds a result, or leaves it open.
fn put(report: &mut Report, name: &str, found: Result<Option<Spread>, String>, goal: Option<Goal>) {
    match found {
        Ok(Some(spread)) => report.add(name, "ratio", Some(spread), goal),
        Ok(None) => report.leave_open(name, "nothing was completed in some round"),
        Err(reason) => report.leave_open(name, &reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Whole-stripe writes of all sides, at these requests a second and microseconds of CPU time.
    fn found(rounds: &[[(u64, u64); 4]]) -> Found {
        let sample = |&(operations, micros): &(u64, u64)| {
            let cpu = Duration::from_micros(operations * micros);
            Sample { operations, elapsed: Duration::from_secs(1), cpu }
        };
        let rounds: Vec<Samples> =
            rounds.iter().map(|round| round.iter().map(sample).collect()).collect();
        let whos = vec![Who::CPU, Who::Omitted, Who::GPU, Who::AUTO];
        let done = Done { jobs: 1, bytes: u64::MAX >> 8, ..Done::default() };
        Found { workload: &WHOLE, whos, rounds, done: vec![done; 4], fence: None }
    }

    #[test]
    fn the_better_side_is_chosen_once() {
        // As fast as both on the whole, whose noise goes opposite ways.
        let noisy = [
            [(90, 10), (100, 10), (110, 10), (100, 10)],
            [(110, 10), (100, 10), (90, 10), (100, 10)],
            [(100, 10), (100, 10), (100, 10), (100, 10)],
        ];
        let ratio = found(&noisy).auto_vs_best().unwrap().unwrap();
        assert!((ratio.median - 1.0).abs() < 1e-9, "{ratio:?}");
        let slow = [[(50, 10), (100, 10), (100, 10), (80, 10)]];
        let ratio = found(&slow).auto_vs_best().unwrap().unwrap();
        assert!((ratio.median - 0.8).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn what_is_saved_is_of_what_parity_costs_in_place() {
        let found = found(&[[(10, 500), (10, 400), (10, 420), (10, 420)]]);
        let (parity, saved) = found.saved().unwrap();
        assert!((parity.median - 100.0).abs() < 1e-6 && (saved.unwrap().median - 0.8).abs() < 1e-9);
    }

    #[test]
    fn noise_is_no_cost_of_parity() {
        let found = found(&[[(10, 400), (10, 410), (10, 300), (10, 300)]]);
        assert!(found.saved().unwrap_err().contains("noise"));
    }

    #[test]
    fn what_the_cpu_did_is_no_figure_of_the_gpu() {
        let mut found = found(&[[(10, 500), (10, 400), (10, 420), (10, 420)]]);
        found.done[2].undone = 3;
        assert!(found.samples(Who::GPU).unwrap_err().contains("3 undone"));
        found.done[2] = Done { jobs: 1, bytes: 10 * (1 << 20) - 1, ..Done::default() };
        assert!(found.samples(Who::GPU).unwrap_err().contains("the CPU did the rest"));
        found.done[2].bytes += 1;
        assert!(found.samples(Who::GPU).is_ok());
        found.fence = Some(Fence::Hung);
        let open = [Who::GPU, Who::AUTO].map(|who| found.samples(who).unwrap_err());
        assert_eq!(open, [Fence::Hung.to_string(), Fence::Hung.to_string()]);
        assert!(found.samples(Who::CPU).is_ok() && found.samples(Who::Omitted).is_ok());
    }
}
