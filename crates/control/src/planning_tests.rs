//! What was planned is what is done, whatever drives come and go meanwhile.

use super::*;
use crate::renewal::tests::{array, drives, run_with};
use redfish::messages as say;
use redfish::view::{ArrayState, DriveState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Long for somebody who waits for nothing.
const LONG: Duration = Duration::from_secs(2);

/// An array on the first two of these drives, stopped.
async fn stopped(manager: &Arc<Manager>, paths: &[String]) -> String {
    manager.start(Duration::ZERO).await;
    let made = manager.create(&array(manager, &paths[..2])).await.expect("created");
    manager.stop(&made.uuid).await.expect("stopped");
    made.uuid
}

fn states(manager: &Manager) -> Vec<DriveState> {
    manager.view().drives.iter().map(|known| known.drive.state).collect()
}

#[test]
fn a_plans_look_takes_no_drive_from_an_array() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), |manager| async move {
        let uuid = stopped(&manager, &paths).await;
        let looked = &paths[1..];
        manager.inventory().reserve_for_plan(looked);
        manager.renew().await;
        assert_eq!(states(&manager), [DriveState::Found; 2]);
        let (own, array) = (manager.clone(), uuid.clone());
        let mut starting = tokio::spawn(async move {
            let request = view::AssembleArray { start_degraded: true, ..Default::default() };
            own.assemble(&array, request).await
        });
        assert!(timeout(LONG, &mut starting).await.is_err(), "it waits for the look");
        manager.inventory().reserve(looked, false);
        let started = starting.await.expect("ran").expect("started");
        assert_eq!(started.state, ArrayState::Optimal);
        manager.stop(&uuid).await.expect("stopped");
        manager.inventory().reserve_for_plan(looked);
        let own = manager.clone();
        let mut deleting = tokio::spawn(async move { own.delete(&uuid).await });
        assert!(timeout(LONG, &mut deleting).await.is_err(), "it waits for the look");
        manager.inventory().reserve(looked, false);
        assert_eq!(deleting.await.expect("ran").expect("deleted").left, Vec::<String>::new());
        assert_eq!(states(&manager), [DriveState::Free; 2]);
    });
}

#[test]
fn a_deletion_erases_the_drives_that_its_plan_shows() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 4);
    run_with(false, paths.clone(), |manager| async move {
        let array = stopped(&manager, &paths).await;
        let delete = Change::DeleteArray { array: array.clone() };
        let before = manager.plan(&delete).await.expect("planned");
        let shown = |planned: &Planned| {
            planned.plan.drives.iter().map(|drive| drive.path.clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&before), paths[..2]);
        // No slot counts on a copy.
        std::fs::copy(&paths[0], &paths[2]).expect("copied");
        let planned = manager.plan(&delete).await.expect("planned");
        assert_eq!(shown(&planned), paths[..3]);
        assert_ne!(planned.state, before.state);
        assert_eq!(manager.plan(&delete).await.expect("planned"), planned, "nothing changed");
        std::fs::copy(&paths[1], &paths[3]).expect("copied");
        let deleted = manager.delete_planned(&array, &planned).await.expect("deleted");
        assert!(matches!(&deleted.left[..], [left] if left.starts_with(&paths[3])), "{deleted:?}");
        let [free, found] = [DriveState::Free, DriveState::Found];
        assert_eq!(states(&manager), [free, free, free, found]);
        manager.delete(&array).await.expect("deleted");
        assert_eq!(states(&manager), [free; 4]);
    });
}

#[test]
fn a_running_array_is_deleted_with_all_drives_that_were_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 3);
    run_with(false, paths.clone(), |manager| async move {
        let array = stopped(&manager, &paths).await;
        std::fs::copy(&paths[0], &paths[2]).expect("copied");
        let request = view::AssembleArray::default();
        let gone = format!("{}.gone", paths[2]);
        std::fs::rename(&paths[2], &gone).expect("is away");
        manager.assemble(&array, request).await.expect("started");
        std::fs::rename(&gone, &paths[2]).expect("is there");
        let delete = Change::DeleteArray { array: array.clone() };
        let planned = manager.plan(&delete).await.expect("planned");
        assert_eq!(planned.plan.drives.len(), 3);
        assert_eq!(manager.plan(&delete).await.expect("planned"), planned, "nothing changed");
        let deleted = manager.delete_planned(&array, &planned).await.expect("deleted");
        assert_eq!(deleted.left, Vec::<String>::new());
        assert_eq!(states(&manager), [DriveState::Free; 3]);
    });
}

#[test]
fn loss_is_accepted_with_the_drives_that_were_seen_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), |manager| async move {
        let array = stopped(&manager, &paths).await;
        let request =
            view::AssembleArray { start_degraded: true, accept_loss: true, ..Default::default() };
        let start = Change::Assemble { array: array.clone(), request };
        let planned = manager.plan(&start).await.expect("planned");
        let gone = format!("{}.gone", paths[1]);
        std::fs::rename(&paths[1], &gone).expect("is away");
        let refused = manager.assemble_planned(&array, request, &planned).await;
        let changed = Error::new(&say::PLAN_CHANGED, &[]);
        assert_eq!(refused.expect_err("is refused").error, changed.error);
        assert_eq!(manager.view().status.arrays[0].state, ArrayState::Stopped);
        assert_ne!(manager.plan(&start).await.expect("planned").state, planned.state);
        std::fs::rename(&gone, &paths[1]).expect("is there");
        let planned = manager.plan(&start).await.expect("planned");
        let started = manager.assemble_planned(&array, request, &planned).await.expect("started");
        assert_eq!(started.state, ArrayState::Optimal);
    });
}
