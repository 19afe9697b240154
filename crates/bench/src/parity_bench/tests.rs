//! Tests that wrong outputs are never timed, and that goals are claimed only where they stand.

use super::*;
use contest::{Pairs, PairsMut};

/// ISA-L, if it is there; the tests of the program insist on it where tools are required.
fn isal() -> Option<Isal> {
    let isal = Isal::load(SONAME.as_ref());
    isal.inspect_err(|error| println!("without ISA-L: {error}")).ok()
}

/// What is wrong with a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// Does nothing, on outputs that a pass of both sides has made right before.
    Idle(Side),
    /// Neither side does anything.
    AllIdle,
    /// Palisade leaves the last byte of the last output wrong.
    LastByte,
}

/// A contest with a fault.
struct Faulty<'a>(Box<dyn Contest<'a> + 'a>, Fault);

impl<'a> Contest<'a> for Faulty<'a> {
    fn ours(&mut self) {
        if ![Fault::Idle(Side::Ours), Fault::AllIdle].contains(&self.1) {
            self.0.ours();
        }
        if self.1 == Fault::LastByte {
            let (ours, _) = self.0.outputs_mut().pop().expect("an output");
            *ours.last_mut().expect("a byte") ^= 1;
        }
    }

    fn theirs(&mut self, isal: &Isal) {
        if ![Fault::Idle(Side::Theirs), Fault::AllIdle].contains(&self.1) {
            self.0.theirs(isal);
        }
    }

    fn plain(&mut self) {
        if ![Fault::Idle(Side::Theirs), Fault::AllIdle].contains(&self.1) {
            self.0.plain();
        }
    }

    fn outputs(&self) -> Pairs<'_> {
        self.0.outputs()
    }

    fn outputs_mut(&mut self) -> PairsMut<'_> {
        self.0.outputs_mut()
    }

    fn spoil(&mut self) {
        self.0.spoil();
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        self.0.yardstick()
    }
}

/// Every work of `place`, sound and with every fault, compared with ISA-L or plainly.
fn only_sound_works_pass(place: Place, isal: Option<&Isal>) {
    let mut arena = Arena::new(HOT_BYTES);
    let (ours, theirs) = (Fault::Idle(Side::Ours), Fault::Idle(Side::Theirs));
    let faults = [ours, theirs, Fault::LastByte, Fault::AllIdle];
    for work in WORKS.iter().filter(|work| work.is_at(place)) {
        let name = work.name(place);
        let mut contest = Faulty(work.contest(place, &mut arena, isal), Fault::None);
        compare(&mut contest, isal, &name).unwrap_or_else(|error| panic!("{error}"));
        // Outputs that are inputs too begin alike: there the last fault can't show.
        let shown = if name.starts_with("delta") { &faults[..3] } else { &faults };
        for &fault in shown {
            contest.1 = fault;
            let found = compare(&mut contest, isal, &name);
            let Err(BenchError::Different { operation, .. }) = found else {
                panic!("{name} with {fault:?} passes");
            };
            assert_eq!(operation, name);
            // What the next fault could hide behind.
            contest.1 = Fault::None;
            compare(&mut contest, isal, &name).expect("right again");
        }
    }
}

#[test]
fn faults_show_against_isal() {
    let Some(isal) = isal() else { return };
    only_sound_works_pass(Place::Hot, Some(&isal));
    only_sound_works_pass(Place::Memory, Some(&isal));
}

#[test]
fn faults_show_without_isal() {
    only_sound_works_pass(Place::Hot, None);
    only_sound_works_pass(Place::Memory, None);
}

#[test]
fn goals_are_those_promised() {
    let usual = ParityBench::default();
    let goals = |place| {
        let goals =
            WORKS.iter().filter_map(move |work| Some((work.name(place), work.goal(place)?)));
        goals.collect::<Vec<_>>()
    };
    let promised = [
        ("p", 1.15, 1.0),
        ("pq", 1.10, 1.0),
        ("pqr", 2.7, 1.8),
        ("delta4k-pq", 8.0, 1.5),
        ("recover1-8p2", 1.2, 1.0),
        ("recover2-8p2", 1.2, 1.0),
        ("k16m4", 1.3, 1.0),
    ];
    let hot = promised.map(|(name, hot, _)| (format!("{name}-hot"), Goal::AtLeast(hot)));
    let memory = promised.map(|(name, _, goal)| (format!("{name}-memory"), Goal::AtLeast(goal)));
    assert_eq!(goals(Place::Hot), hot);
    assert_eq!(goals(Place::Memory), memory);
    for (work, place) in [(&WORKS[0], Place::Hot), (&WORKS[0], Place::Memory)] {
        assert_eq!(usual.goal(work, place), work.goal(place));
    }
}

#[test]
fn smaller_runs_have_no_goals_and_say_why() {
    let usual = ParityBench { span: Duration::from_secs_f64(0.02), ..ParityBench::default() };
    let fewer = ParityBench { rounds: 14, ..usual.clone() };
    let quicker = ParityBench { span: Duration::from_millis(19), ..usual.clone() };
    let shorter = ParityBench { memory_bytes: MEMORY_BYTES - 4096, ..usual.clone() };
    let more = ParityBench { rounds: 31, memory_bytes: 2 * MEMORY_BYTES, ..usual.clone() };
    let found = |options: &ParityBench| {
        let goal = |place| options.goal(&WORKS[0], place).is_some();
        (goal(Place::Hot), goal(Place::Memory), options.notes()[1..].join("; "))
    };
    assert_eq!(found(&usual), (true, true, String::new()));
    assert_eq!(found(&more), (true, true, String::new()));
    assert_eq!(found(&fewer), (false, false, "no goals: fewer than 15 rounds".to_owned()));
    assert_eq!(found(&quicker), (false, false, "no goals: turns shorter than 20 ms".to_owned()));
    let why = "no goals from memory: strips from memory shorter than 16 MiB";
    assert_eq!(found(&shorter), (true, false, why.to_owned()));
}

#[test]
fn a_whole_run_has_its_goal_in_the_report() {
    let Some(isal) = isal() else { return };
    let (mut arena, mut report) = (Arena::new(HOT_BYTES), Report::new("1.2.3", "palisade bench"));
    let options = ParityBench::default();
    measure(&WORKS[0], Place::Hot, &mut arena, &options, Some(&isal), &mut report).expect("P");
    let ratio = report.results.iter().find(|r| r.name == "p-hot").expect("the ratio");
    assert_eq!((ratio.goal, ratio.met), (Some(1.15), Some(ratio.value >= 1.15)));
    report.notes.extend(options.notes());
    let table = parity_table(&report);
    let row = table.lines().find(|line| line.starts_with("p-hot ")).expect("its row");
    let rounds = format!(" {:.2}..{:.2} ", ratio.low, ratio.high);
    assert!(row.contains(&rounds) && row.ends_with("xor_gen"), "{table}");
}
