//! Arrays that other servers have, and take over: pages of another server's are written to drives.

use super::*;
use crate::config::Fabrics as Says;
use crate::renewal::tests::{array, drives, named, run_with};
use ::nvme::nqn::Nqn;
use format::limits::OWNER_AT;
use format::owner::{self, OwnerPage};
use redfish::change::Change;
use redfish::view::{ArrayState, AssembleArray, WipeDrive};
use std::os::unix::fs::FileExt;
use std::time::Instant;
use units::Nanos;

/// The other server.
const OTHER: Owner = Owner { host: Uuid([5; 16]), boot: Uuid([6; 16]) };

/// Long for what takes some heartbeats.
const LONG: Duration = Duration::from_secs(60);

/// Makes this daemon a host of its own, with a heartbeat every 100 ms.
fn is_host(manager: &Manager) -> Uuid {
    is_host_with(manager, 100)
}

/// The same with a heartbeat every so many milliseconds.
fn is_host_with(manager: &Manager, heartbeat_ms: u64) -> Uuid {
    let host = crate::snapshot::random_uuid();
    let hostnqn = Nqn::new(&format!("nqn.2014-08.org.nvmexpress:uuid:{host}")).ok();
    let heartbeat = Nanos::from_millis(heartbeat_ms);
    let says = Says { hostnqn, hostid: Some(host), heartbeat, ..Says::default() };
    manager.data.fabrics().set(says, None);
    host
}

/// A shared array on these drives, which runs.
async fn shared(manager: &Manager, paths: &[String]) -> view::Array {
    let request = view::CreateArray { shared: true, ..array(manager, paths) };
    manager.create(&request).await.expect("created")
}

/// The same once the daemon has started, and stopped again.
async fn stopped(manager: &Manager, paths: &[String]) -> view::Array {
    manager.start(Duration::ZERO).await;
    let made = shared(manager, paths).await;
    manager.stop(&made.uuid).await.expect("stopped");
    made
}

fn write_pages(paths: &[String], page: &OwnerPage) {
    for path in paths {
        let file = std::fs::File::options().write(true).open(path).expect("opened");
        file.write_all_at(&owner::encode(page), OWNER_AT).expect("written");
    }
}

/// The other server says on drives that it has an array, and that it has said so just now.
fn takes(paths: &[String], array: &str, term: u64) {
    let page = OwnerPage {
        owner: Some(OTHER),
        term,
        heartbeat: 1,
        unix_millis: now_millis(),
        period_ms: 100,
        name: "srv2".to_owned(),
        ..OwnerPage::nobody(array.parse().expect("a UUID"))
    };
    write_pages(paths, &page);
}

fn the_array(manager: &Manager) -> view::Array {
    manager.view().status.arrays[0].clone()
}

#[test]
fn an_array_has_an_owner_while_it_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 4);
    run_with(false, paths.clone(), |manager| async move {
        let host = is_host(&manager);
        manager.start(Duration::ZERO).await;
        let made = shared(&manager, &paths[..2]).await;
        let owner = made.owner.expect("there is one");
        assert!(made.shared && owner.own && owner.host_id == host.to_string(), "{owner:?}");
        assert_eq!(owner.name, manager.view().server.name);
        assert!(owner.heartbeat_age_ms.is_some_and(|age| age < 10_000), "{owner:?}");
        manager.stop(&made.uuid).await.expect("stopped");
        let stopped = the_array(&manager);
        assert!(stopped.shared && stopped.owner.is_none(), "{stopped:?}");
        let started = manager.assemble(&made.uuid, AssembleArray::default()).await;
        assert!(started.expect("started").owner.is_some_and(|owner| owner.own));
        let plain = array(&manager, &paths[2..]);
        let plain = view::CreateArray { name: "plain".to_owned(), ..plain };
        let plain = manager.create(&plain).await.expect("created");
        assert!(!plain.shared && plain.owner.is_none(), "{plain:?}");
    });
}

/// The engine waits for some heartbeats meanwhile.
#[test]
fn an_array_that_is_being_started_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), |manager| async move {
        is_host_with(&manager, 2_000);
        let made = stopped(&manager, &paths).await;
        let starting = tokio::spawn({
            let (manager, uuid) = (manager.clone(), made.uuid.clone());
            async move { manager.assemble(&uuid, AssembleArray::default()).await }
        });
        let mut refused = 0;
        while !starting.is_finished() {
            manager.renew().await;
            assert_eq!(manager.view().status.arrays.len(), 1);
            if manager.refuse_starting(made.uuid.parse().expect("a UUID")).is_err() {
                let told = manager.delete(&made.uuid).await.expect_err("it is being started");
                assert!(told.is(&say::DRIVE_RESERVED), "{told:?}");
                refused += 1;
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(refused, 1, "it takes a heartbeat");
        starting.await.expect("ran").expect("started");
        assert_eq!(the_array(&manager).state, ArrayState::Optimal);
    });
}

#[test]
fn what_another_server_has_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), |manager| async move {
        is_host(&manager);
        let made = stopped(&manager, &paths).await;
        takes(&paths, &made.uuid, 1);
        manager.find_drives(&[]).await.expect("found");
        let owner = the_array(&manager).owner.expect("there is one");
        assert!(!owner.own && owner.name == "srv2", "{owner:?}");
        assert_eq!(owner.host_id, OTHER.host.to_string());
        assert!(owner.heartbeat_age_ms.is_some_and(|age| age < 60_000), "{owner:?}");
        let drive = named(&manager, &paths)[0].clone();
        let refused = |outcome: Result<(), Error>, entry| {
            let error = outcome.expect_err("another has it");
            assert!(error.is(entry) && error.error.contains("srv2 ("), "{error:?}");
            assert!(!error.hint.contains("NAME"), "{error:?}");
        };
        let wipe = WipeDrive { drive, overwrite: true };
        refused(manager.wipe(&wipe).await.map(drop), &say::DRIVE_OF_SERVER);
        refused(manager.plan(&Change::Wipe(wipe)).await.map(drop), &say::DRIVE_OF_SERVER);
        let over = array(&manager, &paths);
        let over = view::CreateArray { overwrite: over.drives.clone(), ..over };
        refused(manager.create(&over).await.map(drop), &say::DRIVE_OF_SERVER);
        let delete = Change::DeleteArray { array: made.uuid.clone() };
        refused(manager.plan(&delete).await.map(drop), &say::ARRAY_OF_SERVER);
        refused(manager.delete(&made.uuid).await.map(drop), &say::ARRAY_OF_SERVER);
        let start = AssembleArray::default();
        refused(manager.assemble(&made.uuid, start).await.map(drop), &say::ARRAY_OWNED);
        let shown = the_array(&manager).problem.expect("is told why");
        assert!(shown.contains("in use by host srv2"), "{shown}");
        let takes_over = AssembleArray { take_over: true, ..start };
        let needs = manager.assemble(&made.uuid, takes_over).await.expect_err("may be in use");
        assert!(needs.is(&say::NEEDS_OTHERS_OFF), "{needs:?}");
        let takes_over = AssembleArray { other_server_is_off: true, ..takes_over };
        let planned = Change::Assemble { array: made.uuid.clone(), request: takes_over };
        let planned = manager.plan(&planned).await.expect("planned").plan;
        assert!(planned.steps[0].contains("host srv2") && planned.lost.is_empty(), "{planned:?}");
        let started = manager.assemble(&made.uuid, takes_over).await.expect("started");
        assert!(started.owner.is_some_and(|owner| owner.own) && started.problem.is_none());
        manager.delete(&made.uuid).await.expect("it is this server's");
    });
}

#[test]
fn what_another_server_stopped_is_nobodys() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), |manager| async move {
        is_host(&manager);
        let made = stopped(&manager, &paths).await;
        takes(&paths, &made.uuid, 1);
        let refused = manager.assemble(&made.uuid, AssembleArray::default()).await;
        assert!(refused.is_err_and(|error| error.is(&say::ARRAY_OWNED)));
        manager.see_owners().await;
        manager.renew().await;
        assert!(the_array(&manager).problem.is_some(), "it has it still");
        write_pages(&paths, &OwnerPage::nobody(made.uuid.parse().expect("a UUID")));
        manager.see_owners().await;
        manager.renew().await;
        let free = the_array(&manager);
        assert_eq!((free.problem, free.owner), (None, None));
        manager.assemble(&made.uuid, AssembleArray::default()).await.expect("started");
    });
}

#[test]
fn an_array_that_is_taken_over_is_let_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(true, paths.clone(), |manager| async move {
        is_host(&manager);
        manager.start(Duration::ZERO).await;
        let keeping = tokio::spawn(manager.clone().keep_owned());
        let made = shared(&manager, &paths).await;
        let begun = Instant::now();
        for term in 1.. {
            assert!(begun.elapsed() < LONG, "{:?}", manager.view().status.arrays);
            // A page that this server writes at the same moment is written over it.
            takes(&paths, &made.uuid, term);
            tokio::time::sleep(Duration::from_millis(20)).await;
            manager.renew().await;
            // Between its stop and the look at its drives it is not shown.
            let view = manager.view();
            if view.status.arrays.first().is_some_and(|own| own.state == ArrayState::Stopped) {
                break;
            }
        }
        let taken = the_array(&manager);
        assert_eq!(taken.problem.as_deref(), Some("taken over by srv2"));
        assert!(taken.owner.is_some_and(|owner| !owner.own && owner.name == "srv2"));
        assert!(manager.in_hand().contains(&made.uuid.parse().expect("a UUID")));
        let next = manager.view().status.next.clone();
        let told = next.iter().find(|next| next.what.contains("taken over by srv2"));
        assert!(told.is_some_and(|told| told.action.contains("assemble data")), "{next:?}");
        let events = manager.view().events.clone();
        let is_told = events.entries.iter().any(|event| event.is(&say::ARRAY_TAKEN_OVER));
        assert!(is_told, "{events:?}");
        keeping.abort();
    });
}
