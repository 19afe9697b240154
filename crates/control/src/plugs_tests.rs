//! Tests of what becomes of drives that were pulled out.

use super::*;
use drives::sysfs::{Controller, Identity, Kind, Transport};
use health::departures::{LONGEST, QUIET};

const TANK: Uuid = Uuid([1; 16]);
const POOL: Uuid = Uuid([2; 16]);

fn opening(number: u32) -> Opening {
    let device = rustix::fs::makedev(259, number);
    Opening { path: format!("/dev/nvme{number}n1"), device }
}

fn device(number: u32, transport: Transport) -> Device {
    let controller = Controller {
        name: format!("nvme{number}"),
        transport: Some(transport),
        ..Controller::default()
    };
    Device {
        name: format!("nvme{number}n1"),
        number: Some((259, number)),
        diskseq: Some(u64::from(number)),
        identity: Identity { serial: Some(format!("S{number}")), ..Identity::default() },
        kind: Kind::Nvme,
        controllers: vec![controller],
        ..Device::default()
    }
}

/// Drives 0 to 3 are `tank`'s, 4 and 5 `pool`'s, each in the slot of its number.
fn in_use() -> InUse {
    let place = |number: u32| {
        let array = if number < 4 { TANK } else { POOL };
        (opening(number), Place { array, slot: number as u16 })
    };
    (0..6).map(place).collect()
}

/// What the kernel says while these are gone; the last two are reached by a network.
fn kernel(gone: &[u32]) -> Kernel {
    let transport = |number| if number < 4 { Transport::Pcie } else { Transport::Tcp };
    let there = (0..6).filter(|number| !gone.contains(number));
    Kernel {
        devices: there.map(|number| device(number, transport(number))).collect(),
        missing: gone.iter().map(|number| opening(*number).device).collect(),
    }
}

fn after(moment: Duration) -> Duration {
    moment + QUIET
}

/// The engine says that `tank` can spare one drive.
fn one_of_tank(plugs: &Plugs, in_use: &InUse) -> Coverage {
    let mut coverage = Coverage::default();
    for (array, slots) in plugs.to_ask(in_use) {
        let can_spare = array == TANK && slots.len() <= 1;
        coverage.heard(array, slots, can_spare);
    }
    coverage
}

fn settled(plugs: &Plugs, in_use: &InUse, at: Duration) -> Vec<Verdict<Opening>> {
    plugs.settle(at, in_use, &one_of_tank(plugs, in_use))
}

#[test]
fn a_drive_that_goes_is_failed_once() {
    let (plugs, in_use) = (Plugs::default(), in_use());
    let at = Duration::from_secs(5);
    assert!(!plugs.saw(&in_use, kernel(&[]), at), "the first look is no news");
    assert!(!plugs.saw(&in_use, kernel(&[]), at));
    assert_eq!(plugs.due(), None);
    assert!(plugs.saw(&in_use, kernel(&[2]), at), "one went");
    assert_eq!(plugs.due(), plugs.start.checked_add(after(at)));
    assert_eq!(settled(&plugs, &in_use, at), [], "more may go");
    assert_eq!(settled(&plugs, &in_use, after(at)), [Verdict::Fail(vec![opening(2)])]);
    // It is missing still at the next look, until its array is told of it.
    assert!(!plugs.saw(&in_use, kernel(&[2]), after(at)));
    assert_eq!((plugs.due(), settled(&plugs, &in_use, at + LONGEST * 2)), (None, vec![]));
}

#[test]
fn where_more_go_than_can_be_spared_none_is_failed() {
    let (plugs, in_use) = (Plugs::default(), in_use());
    let at = Duration::from_secs(5);
    plugs.saw(&in_use, kernel(&[]), at);
    plugs.saw(&in_use, kernel(&[2]), at);
    plugs.saw(&in_use, kernel(&[2, 3]), at + QUIET / 2);
    assert_eq!(settled(&plugs, &in_use, after(at)), [], "another has just gone");
    let gone = vec![opening(2), opening(3)];
    assert_eq!(settled(&plugs, &in_use, at + QUIET * 2), [Verdict::Hold(gone)]);
    // The engine is asked of all that are gone when a third one goes.
    plugs.saw(&in_use, kernel(&[0, 2, 3]), at + QUIET * 3);
    assert_eq!(plugs.to_ask(&in_use), [(TANK, [0, 2, 3].into())].into());
    assert_eq!(settled(&plugs, &in_use, at + QUIET * 5), [Verdict::Hold(vec![opening(0)])]);
}

#[test]
fn what_went_with_its_path_or_was_never_seen_is_waited_for() {
    let (plugs, in_use) = (Plugs::default(), in_use());
    let at = Duration::from_secs(5);
    plugs.saw(&in_use, kernel(&[]), at);
    plugs.saw(&in_use, kernel(&[5]), at);
    let arrays = [status(POOL, &[4, 5])];
    assert_eq!(plugs.absent(&arrays), [], "it is not settled");
    assert_eq!(settled(&plugs, &in_use, after(at)), [Verdict::Wait(vec![opening(5)])]);
    let path = opening(5).path;
    let absent = Absent { array: POOL, slot: 5, path, is_waited_for: true };
    assert_eq!(plugs.absent(&arrays), [absent]);
    // Its paths go before it does.
    let plugs = Plugs::default();
    plugs.saw(&in_use, kernel(&[]), at);
    let mut without = kernel(&[]);
    without.devices.iter_mut().for_each(|device| device.controllers.clear());
    plugs.saw(&in_use, without, at);
    plugs.saw(&in_use, kernel(&[5]), at);
    assert_eq!(settled(&plugs, &in_use, after(at)), [Verdict::Wait(vec![opening(5)])]);
    // Nobody knows how this one was reached.
    let plugs = Plugs::default();
    plugs.saw(&in_use, kernel(&[1]), at);
    assert_eq!(settled(&plugs, &in_use, after(at)), [Verdict::Wait(vec![opening(1)])]);
}

#[test]
fn what_the_engine_does_not_say_is_not_covered() {
    let (plugs, in_use) = (Plugs::default(), in_use());
    let at = Duration::from_secs(5);
    plugs.saw(&in_use, kernel(&[]), at);
    plugs.saw(&in_use, kernel(&[1]), at);
    let mut coverage = one_of_tank(&plugs, &in_use);
    // One more goes behind the question.
    plugs.saw(&in_use, kernel(&[1, 2]), at);
    let gone = vec![opening(1), opening(2)];
    assert_eq!(plugs.settle(after(at), &in_use, &coverage), [Verdict::Hold(gone)]);
    let plugs = Plugs::default();
    plugs.saw(&in_use, kernel(&[]), at);
    plugs.saw(&in_use, kernel(&[1]), at);
    coverage = Coverage::default();
    assert_eq!(plugs.settle(after(at), &in_use, &coverage), [Verdict::Hold(vec![opening(1)])]);
}

#[test]
fn who_could_not_be_failed_is_absent_until_its_array_has_it_no_more() {
    let (plugs, in_use) = (Plugs::default(), in_use());
    let at = Duration::from_secs(5);
    plugs.saw(&in_use, kernel(&[]), at);
    plugs.saw(&in_use, kernel(&[3]), at);
    assert_eq!(settled(&plugs, &in_use, after(at)), [Verdict::Fail(vec![opening(3)])]);
    plugs.refused(&opening(3));
    let mut arrays = [status(TANK, &[0, 1, 2, 3])];
    let absent: Vec<u16> = plugs.absent(&arrays).iter().map(|absent| absent.slot).collect();
    assert_eq!(absent, [3]);
    arrays[0].slots[3].health = SlotHealth::Failed;
    assert_eq!(plugs.absent(&arrays), []);
    // Its array was assembled with the same drive under another number.
    let mut anew = in_use.clone();
    let place = anew.remove(&opening(3)).expect("is in use");
    anew.insert(Opening { device: rustix::fs::makedev(259, 9), ..opening(3) }, place);
    assert!(plugs.to_ask(&anew).is_empty());
    arrays[0].slots[3].health = SlotHealth::InSync;
    assert_eq!(plugs.absent(&arrays), [], "it is there");
}

#[test]
fn a_drive_that_is_back_is_told_once() {
    let plugs = Plugs::default();
    let back = |path: &str| BTreeMap::from([((TANK, 3), path.to_owned())]);
    assert_eq!(plugs.returned(back("/dev/nvme4n1")), back("/dev/nvme4n1"));
    assert!(plugs.returned(back("/dev/nvme4n1")).is_empty());
    assert_eq!(plugs.returned(back("/dev/nvme5n1")), back("/dev/nvme5n1"));
    assert!(plugs.returned(BTreeMap::new()).is_empty());
    assert_eq!(plugs.returned(back("/dev/nvme5n1")), back("/dev/nvme5n1"), "it went again");
}

/// An array that uses the drives of these numbers, in the slots of their numbers.
pub(crate) fn status(uuid: Uuid, numbers: &[u32]) -> ArrayStatus {
    use engine::manage::command::{ArrayState, ErrorCounts, SlotStatus};
    let slot = |number: u32| SlotStatus {
        slot: units::Slot(number as u16),
        path: numbers.contains(&number).then(|| opening(number).path),
        serial: format!("S{number}"),
        health: SlotHealth::InSync,
        errors: ErrorCounts::default(),
        left_behind: false,
        quarantined: false,
    };
    ArrayStatus {
        id: engine::array::message::ArrayId(1),
        name: "tank".to_owned(),
        uuid,
        level: layout::Level::Raid5,
        state: ArrayState::Optimal,
        strip_bytes: 65536,
        block_bytes: 512,
        discard_bytes: 1 << 20,
        size_bytes: 0,
        free_bytes: 0,
        epoch: 1,
        unclean: false,
        crash_safe: true,
        slots: (0..=5).map(slot).collect(),
        tasks: Vec::new(),
        unended: Vec::new(),
        ended: Vec::new(),
        last_scrub: None,
        uncompared_bytes: None,
        unreadable: Vec::new(),
        region_map: engine::manage::command::RegionMapStatus {
            written_bytes: 0,
            dirty_regions: 0,
            lost_pages: 0,
            parts: Vec::new(),
        },
        volumes: Vec::new(),
        exports: Vec::new(),
        owner: None,
    }
}
