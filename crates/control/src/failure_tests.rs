//! Each failure of the engine as people are told it.

use super::*;
use engine::manage::command::{ArrayState, TaskKind};
use format::{FormatError, Missing};
use io::DriveError;
use layout::Level;
use redfish::view::ErrorCode;
use std::collections::BTreeSet;
use units::{GroupNo, Slot, Uuid};

/// One of each kind, and of each kind within it.
fn samples() -> Vec<ManageError> {
    use ManageError as E;
    let text = |text: &str| text.to_owned();
    let mut all = vec![
        E::NoArray(text("a")),
        E::NoVolume(text("a"), text("v")),
        E::NoExport(text("a"), 3),
        E::NameTaken(text("a")),
        E::BadName(text("/")),
        E::Layout(LayoutError::Drives { level: Level::Raid10, drives: 3 }),
        E::Layout(LayoutError::Strip(5000)),
        E::Layout(LayoutError::DataBytes(7)),
        E::Layout(LayoutError::RangeCount(0)),
        E::Layout(LayoutError::Range { index: 1, problem: "it overlaps" }),
        E::BadBlock(1),
        E::BadSize(5, 512),
        E::NoSpace { wanted: 5 << 30, free: 3 << 20 },
        E::NoDrive(text("a"), text("/dev/x")),
        E::NoSlot(text("a"), Slot(9)),
        E::SlotInUse(Slot(3)),
        E::WouldLose(Slot(1)),
        E::WouldShrink(4096),
        E::LeftBehind(Slot(2)),
        E::NotAsItWent { path: text("/dev/x"), slot: Slot(2) },
        E::TooSmall { path: text("/dev/x"), has: 5, needs: 1 << 20 },
        E::BlockSize { path: text("/dev/x"), drive: 4096, array: 512 },
        E::Cancelled(text("a")),
        E::Impossible(FormatError::Invalid("too many volumes")),
        E::TooManyCores { name: text("a"), cores: 9, fit: 4 },
        E::TooManyCores { name: text("a"), cores: 9, fit: 0 },
        E::BeingMade(text("a")),
        E::Busy(TaskKind::Rebuild),
        E::NoTask(TaskKind::Scrub),
        E::NeededResync,
        E::State(ArrayState::Failed),
        E::NoRedundancy,
        E::Exported(text("v")),
        E::Drive(text("/dev/x"), DriveError::Gone),
        E::Quarantined(text("/dev/x")),
        E::JournalGap { lane: 1, first: 2, last: 3 },
        E::NothingFound,
        E::NoIdentity(text("a")),
        owned("srv2", Some(1_299)),
        owned("", None),
        E::NeedsOthersOff(text("a")),
        E::Meanwhile(text("a")),
        E::Unconfirmed(text("a")),
    ];
    all.extend(not_assembled_samples().into_iter().map(E::Assemble));
    all
}

fn owned(host: &str, heartbeat_age_ms: Option<u64>) -> ManageError {
    let (array, host, id) = ("a".to_owned(), host.to_owned(), Uuid([7; 16]));
    ManageError::Owned { array, host, id, heartbeat_age_ms }
}

fn missing(set_back: bool) -> Missing {
    let drive = Uuid([7; 16]);
    Missing { slot: Slot(2), drive, serial: "S1".to_owned(), set_back }
}

fn not_assembled_samples() -> Vec<AssembleError> {
    use AssembleError as E;
    let [a, b] = ["/dev/a", "/dev/b"].map(str::to_owned);
    let uuid = Uuid([7; 16]);
    let tail = |instead: Option<E>| {
        let instead = instead.map(Box::new);
        E::TailMissing { paths: vec!["/dev/a".to_owned(), "/dev/b".to_owned()], instead }
    };
    let lacking = |set_back| E::TooManyMissing {
        group: GroupNo(1),
        tolerated: 1,
        lacking: vec![missing(false), missing(set_back)],
    };
    vec![
        E::NoRecord,
        E::Foreign { first: a.clone(), second: b.clone() },
        E::Cloned { first: a.clone(), second: b.clone(), drive: uuid },
        E::Diverged { newest: vec![a.clone()], others: vec![b.clone(), a.clone()] },
        E::Swapped { path: a.clone(), own: Slot(1), named: Slot(2) },
        E::Inconsistent { path: a.clone(), newest: b },
        E::BlockSize { path: a.clone(), drive: 4096, array: 512 },
        E::ReadOnly { path: a },
        E::CreationInterrupted { name: "a".to_owned() },
        lacking(false),
        lacking(true),
        E::NeedsStartDegraded { missing: vec![missing(false), missing(true)] },
        E::NeedsAcceptLoss { groups: vec![GroupNo(0), GroupNo(2)] },
        tail(None),
        tail(Some(E::NeedsStartDegraded { missing: vec![missing(false)] })),
        tail(Some(E::NoRecord)),
    ]
}

#[test]
fn every_failure_of_the_engine_is_told_as_it_says_itself() {
    let mut names = BTreeSet::new();
    for error in samples() {
        let told = told(&error);
        assert_eq!(told.error, error.to_string());
        assert!(!told.hint.is_empty() && !told.hint.contains('%'), "{told:?}");
        names.insert(told.name.into_owned());
    }
    for entry in say::ENGINE.iter().chain(say::START) {
        assert!(names.contains(entry.name), "{} is told of nothing", entry.name);
    }
}

#[test]
fn codes_follow_the_kind() {
    for (error, code) in [
        (ManageError::NoArray("x".into()), ErrorCode::Failed),
        (ManageError::BadName("/".into()), ErrorCode::Usage),
        (ManageError::WouldLose(Slot(1)), ErrorCode::Refused),
        (owned("srv2", None), ErrorCode::Refused),
        (ManageError::NeedsOthersOff("a".into()), ErrorCode::Refused),
        (ManageError::NoIdentity("a".into()), ErrorCode::Refused),
        (ManageError::Meanwhile("a".into()), ErrorCode::Refused),
        (ManageError::Unconfirmed("a".into()), ErrorCode::Refused),
    ] {
        assert_eq!(told(&error).code, code);
    }
}

#[test]
fn advice_is_a_whole_command_that_keeps_what_was_said_already() {
    let degraded = StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
    let accepted = StartOptions { start_degraded: false, accept_loss: true, ..StartOptions::NONE };
    let hint = |why: AssembleError, options| not_started(&ManageError::Assemble(why), options).hint;
    let both = "palisade array assemble NAME --start-degraded --accept-loss";
    let loss = || AssembleError::NeedsAcceptLoss { groups: vec![] };
    assert!(hint(loss(), degraded).ends_with(both));
    let alone = hint(loss(), StartOptions::default());
    assert!(alone.ends_with("palisade array assemble NAME --accept-loss"), "{alone}");
    let error = not_started(&ManageError::Assemble(loss()), degraded).about("data");
    assert!(error.hint.contains(" assemble data --start"), "{}", error.hint);
    let missing = || AssembleError::NeedsStartDegraded { missing: vec![] };
    assert!(hint(missing(), accepted).ends_with(both));
    let needed = |instead| AssembleError::TailMissing { paths: vec![], instead };
    assert!(hint(needed(None), degraded).ends_with(both));
    let hint_of = hint(needed(Some(missing().into())), StartOptions::default());
    assert!(hint_of.ends_with("palisade array assemble NAME --start-degraded"), "{hint_of}");
    let hint_of = hint(needed(Some(AssembleError::NoRecord.into())), degraded);
    assert!(hint_of.contains("former size") && !hint_of.contains("--accept-loss"), "{hint_of}");
    let gap = ManageError::JournalGap { lane: 0, first: 1, last: 2 };
    let hint_of = not_started(&gap, degraded).hint;
    assert!(hint_of.contains("assemble NAME --start-degraded --accept-loss ("), "{hint_of}");
}

#[test]
fn who_takes_an_array_over_is_told_all_that_has_to_be_said() {
    let hint = |error: &ManageError, options| not_started(error, options).about("data").hint;
    let alone = hint(&owned("srv2", Some(300)), StartOptions::NONE);
    assert!(alone.starts_with("stop it on that server: palisade array stop data; "), "{alone}");
    assert!(alone.ends_with("array assemble data --take-over"), "{alone}");
    let degraded = StartOptions { start_degraded: true, ..StartOptions::NONE };
    let alone = hint(&owned("srv2", Some(300)), degraded);
    assert!(alone.ends_with("assemble data --start-degraded --take-over"), "{alone}");
    let needs = ManageError::NeedsOthersOff("data".into());
    let taking = StartOptions { take_over: true, ..StartOptions::NONE };
    let off = hint(&needs, taking);
    assert!(off.ends_with("assemble data --take-over --other-server-is-off"), "{off}");
    let off = hint(&needs, degraded);
    assert!(off.ends_with("assemble data --start-degraded --other-server-is-off"), "{off}");
    let unconfirmed = hint(&ManageError::Unconfirmed("data".into()), taking);
    assert!(unconfirmed.ends_with("then: palisade array assemble data"), "{unconfirmed}");
}

#[test]
fn advice_has_the_numbers_that_are_known() {
    let told_of = |fit| told(&ManageError::TooManyCores { name: "data".into(), cores: 9, fit });
    assert!(told_of(4).hint.contains("cores = 4"), "{:?}", told_of(4));
    assert!(!told_of(0).hint.contains("cores = 0"), "{:?}", told_of(0));
    let error = told(&ManageError::SlotInUse(Slot(3))).about("data");
    assert!(error.hint.ends_with("palisade array fail data --drive slot:3"), "{}", error.hint);
}
