//! Tests of what becomes of drives and arrays, step by step.

use super::*;
use crate::plugs::tests::status;
use engine::manage::command::ErrorCounts;

const ARRAY: Uuid = Uuid([7; 16]);

/// What is looked at: an array, and which drives are reached.
struct Scene {
    returns: Returns,
    array: ArrayStatus,
    runs: bool,
    reached: BTreeSet<String>,
    found: BTreeMap<Seat, String>,
    now: Instant,
}

impl Scene {
    /// Three drives behind a fabric, and one that is not.
    fn new() -> Self {
        let mut array = status(ARRAY, &[0, 1, 2, 3]);
        array.state = ArrayState::Optimal;
        let slot = |number: u16| SlotStatus {
            slot: Slot(number),
            path: Some(if number == 3 { "/dev/d3".to_owned() } else { format!("nvme://{number}") }),
            serial: format!("S{number}"),
            health: SlotHealth::InSync,
            errors: ErrorCounts::default(),
            left_behind: false,
            quarantined: false,
        };
        array.slots = (0..4).map(slot).collect();
        let reached = (0..3).map(|number| format!("nvme://{number}")).collect();
        let (returns, now) = (Returns::default(), Instant::now());
        Self { returns, array, runs: true, reached, found: BTreeMap::new(), now }
    }

    fn look(&self) -> (Vec<Step>, bool) {
        let arrays = if self.runs { core::slice::from_ref(&self.array) } else { &[] };
        let is_reached =
            |path: &str, serial: &str| serial.starts_with('S') && self.reached.contains(path);
        let version = self.returns.version();
        let seen = Seen { is_reached: &is_reached, found: &self.found };
        let (steps, goes_on) = self.returns.look((arrays, version), &seen, self.now);
        assert!(steps.iter().all(|(array, _)| *array == ARRAY));
        (steps.into_iter().map(|(_, step)| step).collect(), goes_on)
    }

    /// The steps that are begun, all of which are done at once.
    fn steps(&self) -> Vec<Step> {
        let steps = self.look().0;
        steps.iter().for_each(|_| self.returns.did(ARRAY, true, self.now));
        steps
    }

    /// A slot's drive is out for that.
    fn is_out(&mut self, slot: usize, why: DriveError) {
        self.array.slots[slot].health = SlotHealth::Failed;
        self.array.slots[slot].errors.reason = Some(why);
        self.array.state = ArrayState::Degraded;
    }

    /// The same of one that the array can't do without.
    fn is_lacking(&mut self, slot: usize, why: DriveError) {
        self.is_out(slot, why);
        self.array.slots[slot].left_behind = true;
        self.array.state = ArrayState::Failed;
    }

    fn pull(&mut self, slot: usize) {
        self.reached.remove(&format!("nvme://{slot}"));
    }

    fn restore(&mut self, slot: usize) {
        self.reached.insert(format!("nvme://{slot}"));
    }

    fn returns_slot(&self, slot: u16) -> Vec<Step> {
        vec![Step::Return(format!("nvme://{slot}"), Slot(slot))]
    }
}

#[test]
fn a_drive_that_is_reached_again_takes_its_slot() {
    let mut scene = Scene::new();
    assert_eq!(scene.look(), (vec![], false), "nothing is out, and nothing is looked for");
    scene.pull(1);
    assert_eq!(scene.look(), (vec![], false), "no request has failed");
    scene.is_out(1, DriveError::Gone);
    assert_eq!(scene.look(), (vec![], true));
    assert_eq!(scene.returns.gone(), [(ARRAY, 1)].into());
    scene.restore(1);
    assert_eq!(scene.look(), (scene.returns_slot(1), true));
    assert_eq!(scene.look(), (vec![], true), "that is being done");
    scene.returns.did(ARRAY, false, scene.now);
    assert_eq!(scene.look(), (vec![], true), "it is not tried again at once");
    scene.now += AGAIN;
    assert_eq!(scene.steps(), scene.returns_slot(1));
    scene.array.slots[1].health = SlotHealth::Rebuilding;
    assert_eq!(scene.look(), (vec![], false));
    assert!(scene.returns.gone().is_empty());
}

#[test]
fn a_drive_that_is_out_for_anything_else_stays_out() {
    for why in [DriveError::Fault, DriveError::Media, DriveError::Timeout] {
        let mut scene = Scene::new();
        scene.is_out(1, why);
        assert_eq!(scene.look(), (vec![], false), "{why:?}");
        // Its paths go later, for another reason.
        scene.pull(1);
        assert_eq!(scene.look().0, vec![], "{why:?}");
        scene.restore(1);
        assert_eq!(scene.look().0, vec![], "{why:?}");
        // That was the first error of one whose paths went: a request may not have waited for that.
        let mut scene = Scene::new();
        scene.pull(1);
        scene.is_out(1, why);
        assert_eq!(scene.look(), (vec![], true), "{why:?}");
        scene.restore(1);
        assert_eq!(scene.look().0, scene.returns_slot(1), "{why:?}");
    }
    // One that is no drive behind a fabric, and one that is held as requests may be under way.
    let mut scene = Scene::new();
    scene.is_out(3, DriveError::Gone);
    assert_eq!(scene.look(), (vec![], false));
    scene.is_out(1, DriveError::Gone);
    scene.array.slots[1].quarantined = true;
    assert_eq!(scene.look(), (vec![], true));
    scene.array.slots[1].quarantined = false;
    assert_eq!(scene.steps(), scene.returns_slot(1));
}

#[test]
fn a_drive_that_its_array_had_to_start_without_takes_its_slot_when_it_is_there() {
    let mut scene = Scene::new();
    scene.array.slots[1].health = SlotHealth::Missing;
    let path = scene.array.slots[1].path.take().expect("it has one");
    assert_eq!(scene.look(), (vec![], false));
    scene.found.insert((ARRAY, 1), path);
    assert_eq!(scene.steps(), scene.returns_slot(1));
    // Its array has lost others before it was there, and was started again: that has recorded it as
    // failed.
    let mut scene = Scene::new();
    scene.array.slots[1].health = SlotHealth::Missing;
    scene.array.slots[1].path = None;
    assert_eq!(scene.look(), (vec![], false));
    scene.pull(0);
    scene.is_lacking(0, DriveError::Gone);
    assert_eq!(scene.steps(), [Step::Wait(1)]);
    scene.restore(0);
    assert_eq!(scene.steps(), [Step::Restart]);
    scene.array.slots[0] = Scene::new().array.slots[0].clone();
    (scene.array.slots[1].health, scene.array.state) = (SlotHealth::Failed, ArrayState::Degraded);
    assert_eq!(scene.steps(), [Step::Resume]);
    assert!(scene.returns.concerns(core::slice::from_ref(&scene.array)));
    scene.found.insert((ARRAY, 1), "nvme://1".to_owned());
    assert_eq!(scene.steps(), scene.returns_slot(1));
    // One that was failed before is found, too, and one that is no drive behind a fabric.
    let mut scene = Scene::new();
    scene.found = [((ARRAY, 1), "nvme://1".to_owned()), ((ARRAY, 3), "/dev/d3".to_owned())].into();
    scene.array.slots[1].health = SlotHealth::Failed;
    scene.array.slots[3].health = SlotHealth::Missing;
    (1..4).for_each(|slot| scene.array.slots[slot].path = None);
    assert_eq!(scene.look(), (vec![], false));
}

#[test]
fn drives_are_late_until_all_of_them_were_found() {
    let now = Instant::now();
    let mut none = Late::default();
    assert!(!none.goes_on(false, true, now), "the start-up waits for them itself");
    assert!(none.goes_on(true, false, now), "what was reached just now is looked at");
    assert!(!none.goes_on(true, false, now + FOUND));
    assert!(!none.goes_on(true, true, now + FOUND), "a person connects others");
    let mut late = Late::default();
    assert!(late.goes_on(true, true, now) && late.goes_on(true, true, now + 10 * FOUND));
    let reached = now + 10 * FOUND;
    assert!(late.goes_on(true, false, reached + FOUND / 2));
    assert!(!late.goes_on(true, false, reached + FOUND));
    assert!(!late.goes_on(true, true, reached + FOUND));
}

#[test]
fn what_a_person_fails_stays_out_until_the_slot_is_used_again() {
    let mut scene = Scene::new();
    let slots = [Slot(1)];
    scene.returns.failing(ARRAY, &slots);
    scene.look();
    // Requests that were under way fail later.
    scene.is_out(1, DriveError::Gone);
    scene.returns.failed(ARRAY, &slots, true);
    assert_eq!(scene.look(), (vec![], false));
    // Another takes its place, and goes.
    scene.array.slots[1].health = SlotHealth::InSync;
    scene.look();
    scene.is_out(1, DriveError::Gone);
    assert_eq!(scene.steps(), scene.returns_slot(1));
    // One that is gone already is failed, so that it stays away.
    scene.returns.failing(ARRAY, &slots);
    scene.returns.failed(ARRAY, &slots, true);
    assert_eq!(scene.look(), (vec![], false));
    // A second request that is refused changes nothing of that.
    scene.returns.failing(ARRAY, &slots);
    scene.returns.failed(ARRAY, &slots, false);
    assert_eq!(scene.look(), (vec![], false));
    // One that was refused has failed nothing.
    let mut scene = Scene::new();
    scene.returns.failing(ARRAY, &slots);
    scene.returns.failed(ARRAY, &slots, false);
    scene.is_out(1, DriveError::Gone);
    assert_eq!(scene.look().0, scene.returns_slot(1));
    // Who fails it while it is about to be put back is first.
    scene.returns.failing(ARRAY, &slots);
    assert!(!scene.returns.begin_return(ARRAY, Slot(1)));
}

#[test]
fn a_slot_that_is_tried_in_vain_keeps_no_other_away() {
    let mut scene = Scene::new();
    scene.is_out(0, DriveError::Gone);
    scene.is_out(2, DriveError::Gone);
    let mut tried = Vec::new();
    for _ in 0..4 {
        tried.extend(scene.look().0);
        scene.returns.did(ARRAY, false, scene.now);
        scene.now += AGAIN;
    }
    let each = [scene.returns_slot(0), scene.returns_slot(2)].concat();
    assert_eq!(tried, [each.clone(), each].concat());
}

#[test]
fn a_drive_that_is_not_as_it_went_is_asked_for_once_each_time() {
    let mut scene = Scene::new();
    scene.is_out(1, DriveError::Gone);
    assert_eq!(scene.look().0, scene.returns_slot(1));
    scene.returns.refused(ARRAY, Slot(1));
    scene.returns.did(ARRAY, true, scene.now);
    assert_eq!(scene.look(), (vec![], true));
    assert!(scene.returns.gone().is_empty(), "it does not come back by itself");
    scene.pull(1);
    assert_eq!(scene.look().0, vec![]);
    scene.restore(1);
    assert_eq!(scene.steps(), scene.returns_slot(1));
}

#[test]
fn an_array_that_lost_too_many_starts_again_with_all_of_them() {
    let mut scene = Scene::new();
    scene.pull(0);
    scene.is_out(0, DriveError::Gone);
    assert_eq!(scene.steps(), vec![]);
    for slot in [1, 2] {
        scene.pull(slot);
        scene.is_lacking(slot, DriveError::Gone);
    }
    assert_eq!(scene.steps(), vec![Step::Wait(2)]);
    assert!(scene.returns.is_waiting(ARRAY));
    scene.restore(0);
    assert_eq!(scene.look(), (vec![], true), "its slot is taken when the array runs");
    scene.restore(1);
    assert_eq!(scene.look(), (vec![], true));
    scene.restore(2);
    assert_eq!(scene.look().0, vec![Step::Restart]);
    let before = scene.array.clone();
    scene.returns.stops(&before);
    scene.runs = false;
    assert_eq!(scene.look(), (vec![], true), "it is being started");
    // That failed, as one was gone again.
    scene.pull(2);
    scene.returns.did(ARRAY, false, scene.now);
    scene.now += AGAIN;
    assert_eq!(scene.look(), (vec![], true));
    assert_eq!(scene.returns.stopped().len(), 1);
    scene.restore(2);
    assert_eq!(scene.look().0, vec![Step::Start]);
    // The engine tells of an array that has just started nothing of what was before.
    scene.runs = true;
    for slot in [1, 2] {
        scene.array.slots[slot].left_behind = false;
        scene.array.slots[slot].health = SlotHealth::InSync;
    }
    scene.array.slots[0].errors.reason = None;
    scene.array.slots[0].path = None;
    scene.array.state = ArrayState::Degraded;
    let version = scene.returns.version();
    scene.returns.settled(ARRAY);
    scene.returns.did(ARRAY, true, scene.now);
    let is_reached = |_: &str, _: &str| true;
    let seen = Seen { is_reached: &is_reached, found: &scene.found };
    let late = scene.returns.look((&[], version), &seen, scene.now);
    assert_eq!(late, (vec![], true), "what was asked before it ran says nothing");
    assert_eq!(scene.steps(), scene.returns_slot(0));
    assert!(!scene.returns.is_waiting(ARRAY));
}

#[test]
fn an_array_that_a_person_has_in_hand_is_left_alone() {
    let lost = || {
        let mut scene = Scene::new();
        (0..3).for_each(|slot| scene.pull(slot));
        scene.is_lacking(1, DriveError::Gone);
        assert_eq!(scene.steps(), vec![Step::Wait(1)]);
        (0..3).for_each(|slot| scene.restore(slot));
        scene
    };
    // It is stopped.
    let mut scene = lost();
    scene.runs = false;
    assert_eq!(scene.look(), (vec![], false));
    // It was stopped here, and a person starts it.
    let scene = lost();
    scene.returns.stops(&scene.array);
    assert_eq!(scene.look(), (vec![Step::Wait(1)], true), "what runs is another start of it");
    // It lacks another one by now, or is another start of the array: it is served as it is.
    let mut scene = lost();
    scene.is_lacking(3, DriveError::Fault);
    assert_eq!(scene.look().0, vec![Step::Resume]);
    let mut scene = lost();
    scene.array = Scene::new().array;
    assert_eq!(scene.look(), (vec![Step::Resume], true));
    assert!(!scene.returns.is_waiting(ARRAY));
    // It lacks a drive that is none of these.
    let mut scene = Scene::new();
    scene.is_lacking(1, DriveError::Gone);
    scene.is_lacking(3, DriveError::Gone);
    assert_eq!(scene.look().0, vec![]);
    assert!(!scene.returns.is_waiting(ARRAY));
}

/// Its drives are out, and come back; they are another server's now.
#[test]
fn an_array_that_was_taken_over_is_left_alone() {
    let mut scene = Scene::new();
    scene.is_lacking(0, DriveError::Gone);
    let identity = engine::manage::command::Identity {
        host: ARRAY,
        boot: ARRAY,
        name: String::new(),
        heartbeat: units::Nanos(1),
    };
    let owner = |taken_by| engine::manage::command::OwnerStatus {
        identity: identity.clone().into(),
        lease: std::sync::Arc::new(engine::watch::Lease::new(units::Nanos(1))),
        is_held: false,
        taken_by,
    };
    scene.array.owner = Some(owner(Some("srv2".to_owned())));
    assert_eq!(scene.steps(), []);
    scene.array.owner = Some(owner(None));
    assert_eq!(scene.steps(), [Step::Wait(1)]);
}
