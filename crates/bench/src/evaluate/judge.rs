//! What a workload's figures are compared with in each state: the bare drives, the bound of their
//! model, and what drives should be asked for.

use super::course::Course;
use super::figures::{self, Against};
use super::group;
use super::options::Options;
use super::shelf::Shelf;
use pace::bound::{self, Drives, Group, State, Work};
use workload::Workload;

/// The bare drives.
pub const BASELINE: &str = "baseline";
/// From the array's creation on.
pub const INITIALISING: &str = "initialising";
/// All drives are there.
pub const NOMINAL: &str = "nominal";
/// One is not.
pub const DEVICE_DOWN: &str = "device-down";
/// One is being filled.
pub const DEVICE_REBUILD: &str = "device-rebuild";

/// The state as the count of requests knows it.
fn counted(state: &str) -> Option<State> {
    match state {
        NOMINAL => Some(State::Nominal),
        DEVICE_DOWN => Some(State::DeviceDown),
        _ => None,
    }
}

fn work(options: &Options, workload: &Workload) -> Work {
    let Workload { reads, bytes, .. } = *workload;
    Work::of(workload.is_sequential(), reads, bytes as u64, options.strip.into())
}

/// The bound of a workload, as a part of what the bare drives give, where their model is known.
fn bound_of(
    options: &Options,
    shelf: &Shelf,
    group: Group,
    state: State,
    own: &Workload,
) -> Option<f64> {
    let (model, slower) = shelf.model?;
    let count = shelf.drives.len() as u32;
    let drives = Drives { model, slower: slower.into(), count };
    let work = work(options, own);
    Some(drives.bound(group, state, work) / drives.baseline(work))
}

/// Reads and writes of drives for one request of a workload.
fn plan(options: &Options, group: Group, state: State, own: &Workload) -> (f64, f64) {
    let demand = group.demand(state, work(options, own));
    // Sequential work is counted in strips there.
    let strips = own.bytes as f64 / f64::from(options.strip);
    let times = if own.is_sequential() { strips } else { 1.0 };
    (demand.reads * times, demand.writes * times)
}

/// The goal of a workload, of its bound, where this is what goals are for.
fn goal(options: &Options, shelf: &Shelf, state: State, own: &Workload) -> Option<f64> {
    let is_meant = options.is_whole()
        && shelf.model.is_some_and(|(model, _)| model.name == "sn840")
        && (options.level, shelf.drives.len()) == (layout::Level::Raid5, 8);
    bound::goal(state, &own.name).filter(|_| is_meant)
}

/// What a workload's figures are compared with; `on_bare` is the bare drives' course of it.
pub fn against(
    options: &Options,
    shelf: &Shelf,
    state: &str,
    workload: &Workload,
    on_bare: &Course,
) -> Against {
    let count = shelf.drives.len();
    // Of a group of several one drive is down, and the others are whole: that is not counted.
    let is_one = |group: &Group| group.data + group.parities == count as u32;
    let known = counted(state)
        .zip(group(options, count).ok())
        .filter(|(state, group)| *state == State::Nominal || is_one(group));
    Against {
        baseline: Some(on_bare.value()),
        is_bare_unplanned: !figures::is_as_planned(on_bare, plan_of_bare(workload)),
        bound: known.and_then(|(state, group)| bound_of(options, shelf, group, state, workload)),
        goal: known.and_then(|(state, _)| goal(options, shelf, state, workload)),
        plan: known.map(|(state, group)| plan(options, group, state, workload)),
    }
}

/// What bare drives are compared with: each request is one of theirs.
pub fn bare(workload: &Workload) -> Against {
    Against { plan: Some(plan_of_bare(workload)), ..Against::default() }
}

fn plan_of_bare(workload: &Workload) -> (f64, f64) {
    let reads = f64::from(workload.reads) / 100.0;
    (reads, 1.0 - reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::options::{Profile, Source};
    use crate::scale::Scale;

    #[test]
    fn only_whole_runs_of_the_paced_array_have_goals() {
        let model = pace::by_name("sn840").expect("is there");
        let source = Source::Model { model, count: 8, scale: Scale::Part(1) };
        let options = Options::new(source);
        let shelf = Shelf::paced(model, 1, 8, 16 << 20);
        let own = &workload::workloads(70)[3];
        let bare = Course {
            workload: own.clone(),
            steadiness: workload::Steadiness::Few,
            windows: Vec::new(),
            all: Vec::new(),
            counted: 0,
        };
        let found = against(&options, &shelf, NOMINAL, own, &bare);
        assert_eq!(found.goal, Some(0.97));
        let (reads, writes) = found.plan.expect("is counted");
        assert!((reads - 1.3).abs() < 1e-9 && (writes - 0.6).abs() < 1e-9, "{reads} {writes}");
        assert!((found.bound.expect("is known") - 0.516).abs() < 0.001);
        let down = against(&options, &shelf, DEVICE_DOWN, own, &bare);
        assert_eq!(
            (down.goal, against(&options, &shelf, INITIALISING, own, &bare).goal),
            (Some(0.8), None)
        );
        let quick = Options { profile: Profile::Quick, ..options.clone() };
        assert_eq!(against(&quick, &shelf, NOMINAL, own, &bare).goal, None);
        let few = Shelf::paced(model, 1, 4, 16 << 20);
        assert_eq!(against(&options, &few, NOMINAL, own, &bare).goal, None);
        // A request of 128 KiB is two strips: of seven that are written with one of parity.
        let write = &workload::workloads(70)[1];
        let (reads, writes) =
            against(&options, &shelf, NOMINAL, write, &bare).plan.expect("counted");
        assert!(reads == 0.0 && (writes - 16.0 / 7.0).abs() < 1e-9, "{reads} {writes}");
    }
}
