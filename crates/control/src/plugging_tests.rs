//! Tests of what is told and done of drives that go and come back.

use super::*;
use crate::renewal::tests::{array, drives, run_with};
use redfish::view::SlotState;

/// The messages of all events so far.
fn told(manager: &Manager) -> Vec<String> {
    let shown = manager.events().shown();
    shown.entries.iter().map(|event| event.name.clone()).collect()
}

#[test]
fn a_drive_that_is_back_is_shown_with_the_command_that_uses_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), async move |manager| {
        manager.start(Duration::ZERO).await;
        manager.find_drives(&[]).await.expect("are found");
        let made = manager.create(&array(&manager, &paths)).await.expect("created");
        manager.fail(&made.uuid, &paths[1]).await.expect("failed");
        let mut arrays = manager.running().await.expect("runs");
        manager.tell_returned(&arrays);
        assert!(!told(&manager).iter().any(|name| name == "DriveReturned"));
        // It is pulled out, and looked for.
        let away = format!("{}-away", paths[1]);
        std::fs::rename(&paths[1], &away).expect("moved");
        for _ in 0..2 {
            let _ = manager.look_again(true).await.expect("looked");
        }
        // What is plugged in is a new device: the engine has the old one open.
        std::fs::copy(&away, &paths[1]).expect("copied");
        for _ in 0..2 {
            let _ = manager.look_again(true).await.expect("looked");
        }
        manager.tell_returned(&arrays);
        assert!(!told(&manager).iter().any(|name| name == "DriveReturned"), "it is another one");
        // A drive has its serial number wherever it is; a file that is copied has another.
        let about = manager.inventory().at(&paths[1]).and_then(|known| known.about.clone());
        arrays[0].slots[1].serial = about.expect("is there").serial;
        manager.tell_returned(&arrays);
        manager.tell_returned(&arrays);
        let count = told(&manager).iter().filter(|own| *own == "DriveReturned").count();
        assert_eq!(count, 1, "{:?}", told(&manager));
        let view = manager.view();
        assert_eq!(view.status.arrays[0].slots[1].state, SlotState::Failed);
    });
}

#[test]
fn drives_that_are_not_failed_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), async move |manager| {
        manager.start(Duration::ZERO).await;
        manager.find_drives(&[]).await.expect("are found");
        manager.create(&array(&manager, &paths)).await.expect("created");
        let arrays = manager.running().await.expect("runs");
        let opening = |slot: u16| Opening { path: paths[usize::from(slot)].clone(), device: 9 };
        let place = |slot: u16| (opening(slot), Place { array: arrays[0].uuid, slot });
        let in_use: InUse = [place(0), place(1)].into();
        manager.tell_held(&[opening(0), opening(1)], (&in_use, &arrays));
        manager.tell_waited(&[opening(1)], (&in_use, &arrays));
        let told = told(&manager);
        let last: Vec<&str> = told.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(last, ["DrivePathGone", "DrivesGoneTogether"]);
    });
}

#[test]
fn a_drive_that_went_is_failed_and_says_why() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), async move |manager| {
        manager.start(Duration::ZERO).await;
        manager.find_drives(&[]).await.expect("are found");
        manager.create(&array(&manager, &paths)).await.expect("created");
        let arrays = manager.running().await.expect("runs");
        let opening = |slot: u16| Opening { path: paths[usize::from(slot)].clone(), device: 9 };
        let place = |slot: u16| (opening(slot), Place { array: arrays[0].uuid, slot });
        let in_use: InUse = [place(0), place(1)].into();
        let fail = async |slot: u16| {
            for to_fail in by_array(&[opening(slot)], &in_use) {
                manager.plugs.failing(to_fail.array, &to_fail.openings, &in_use);
                let outcome = manager.data.ask(|reply| to_fail.request(reply)).await;
                manager.ended_failing(&to_fail, outcome.is_ok()).await;
            }
        };
        fail(0).await;
        let slot = manager.view().status.arrays[0].slots[0].clone();
        assert_eq!(slot.state, SlotState::Failed);
        assert_eq!(slot.reason.as_deref(), Some(crate::plugs::PULLED));
        // The array can't do without the other one: it stays, and says nothing of that kind.
        fail(1).await;
        let slot = manager.view().status.arrays[0].slots[1].clone();
        assert_eq!((slot.state, slot.reason), (SlotState::InSync, None));
    });
}
