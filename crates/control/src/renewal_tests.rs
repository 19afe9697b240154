//! The view is there whatever else is not.

use super::*;
use crate::config::Config;
use crate::counters::Ledger;
use crate::data;
use crate::gpu::Parity;
use core::future::Future;
use engine::Settings;
use redfish::view::{self, NamedDrive};
use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;
use tokio::time::timeout;

/// Long for somebody who waits for nothing, short for a test.
const SOON: Duration = Duration::from_secs(5);

/// Runs a test beside a daemon of one core that knows drives of these patterns, and keeps its view.
fn run<F: Future<Output = ()>>(patterns: Vec<String>, test: impl FnOnce(Arc<Manager>) -> F) {
    run_with(true, patterns, test);
}

/// The same, or with a view that nobody keeps.
pub(crate) fn run_with<F: Future<Output = ()>>(
    keeps: bool,
    patterns: Vec<String>,
    test: impl FnOnce(Arc<Manager>) -> F,
) {
    let config: Config = toml::from_str("drives = []").expect("a configuration");
    let kernel = parity::select_kernel().expect("a kernel");
    let parity = Arc::new(Parity::open(kernel, config.parity, config.parity_check));
    let ledger = Arc::new(Ledger::new(true, 0));
    let started = data::start(1, Settings::default(), parity.clone(), ledger);
    let (cores, data) = started.expect("cores");
    let manager = Arc::new(Manager::new(data, parity, view::Memory::default(), patterns, true));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let keeping = tokio::spawn({
            let manager = manager.clone();
            async move {
                if keeps {
                    manager.keep_view().await;
                }
            }
        });
        test(manager.clone()).await;
        keeping.abort();
        manager.shut_down().await;
    });
    runtime.shutdown_background();
    assert!(cores.stop());
}

pub(crate) fn drives(dir: &Path, count: usize) -> Vec<String> {
    let path = |i| {
        let path = dir.join(format!("d{i}"));
        std::fs::File::create(&path).expect("created").set_len(96 << 20).expect("sized");
        path.to_str().expect("text").to_owned()
    };
    (0..count).map(path).collect()
}

/// Drives as the view has them.
pub(crate) fn named(manager: &Manager, paths: &[String]) -> Vec<NamedDrive> {
    let view = manager.view();
    let known = |path: &String| view.drives.iter().find(|known| known.drive.path == *path);
    paths.iter().map(|path| known(path).expect("is known").into()).collect()
}

pub(crate) fn array(manager: &Manager, drives: &[String]) -> view::CreateArray {
    view::CreateArray {
        name: "data".to_owned(),
        level: "1".to_owned(),
        drives: named(manager, drives),
        strip_bytes: 64 << 10,
        block_bytes: None,
        overwrite: Vec::new(),
        same_drive: false,
        shared: false,
    }
}

/// Holds the engine's core until what this gives is dropped.
async fn hold_core(manager: &Manager) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (tell, holds) = tokio::sync::oneshot::channel();
    manager.data.run_on_manager(move || {
        let _ = tell.send(());
        // Ends when the sender is gone.
        let _ = held.recv();
    });
    holds.await.expect("the core runs");
    release
}

#[test]
fn the_view_is_there_while_the_engine_a_drive_and_an_export_hang() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 3);
    run(paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let made = manager.create(&array(&manager, &paths[..2])).await.expect("created");
        // A look at the third drive never ends, nor does the export that is being made.
        let hung = manager.inventory().begin(&paths[2], false).expect("can begin");
        let _turn = manager.looking.lock().await;
        let _exports = manager.exports.lock().await;
        let release = hold_core(&manager).await;
        let changing = tokio::spawn({
            let manager = manager.clone();
            async move {
                let check = view::ScrubArray { repair: false, trust_data: false };
                manager.scrub(&made.uuid, check).await
            }
        });
        tokio::time::sleep(2 * AGAIN).await;
        let (begin, before) = (Instant::now(), manager.view());
        assert!(begin.elapsed() < SOON);
        assert_eq!((before.status.arrays.len(), before.drives.len()), (1, 3));
        assert!(!changing.is_finished(), "the engine answers nothing");
        // What does not depend on the engine is as new as ever.
        manager.ready.store(false, std::sync::atomic::Ordering::Release);
        assert!(manager.refresh() && !manager.view().status.ready);
        drop((hung, release));
        let scrubbed = timeout(SOON, changing).await.expect("is done").expect("ran");
        assert!(scrubbed.is_ok());
    });
}

#[test]
fn who_changes_something_reads_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 3);
    run(paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let ids = manager.find_drives(&paths).await.expect("found");
        let view = manager.view();
        let known: Vec<&String> = view.drives.iter().map(|drive| &drive.id).collect();
        assert_eq!(known, ids.iter().collect::<Vec<_>>());
        let made = manager.create(&array(&manager, &paths[..2])).await.expect("created");
        let view = manager.view();
        assert_eq!(view.status.arrays[0].name, "data");
        let states: Vec<view::DriveState> = view.drives.iter().map(|d| d.drive.state).collect();
        assert_eq!(
            states,
            [view::DriveState::InUse, view::DriveState::InUse, view::DriveState::Free]
        );
        let same: Vec<&String> = view.drives.iter().map(|drive| &drive.id).collect();
        assert_eq!(same, ids.iter().collect::<Vec<_>>(), "an array that takes it renames no drive");
        for number in 0..20 {
            let name = format!("v{number}");
            let new = view::CreateVolume { array: made.uuid.clone(), name, size_bytes: 4096 };
            manager.create_volume(&new).await.expect("created");
            assert_eq!(manager.view().status.arrays[0].volumes.len(), number + 1);
        }
        let first = manager.view().status.arrays[0].volumes[0].uuid.clone();
        manager.delete_volume(&made.uuid, &first).await.expect("deleted");
        assert_eq!(manager.view().status.arrays[0].volumes.len(), 19);
        manager.stop(&made.uuid).await.expect("stopped");
        assert_eq!(manager.view().status.arrays[0].state, view::ArrayState::Stopped);
        assert_eq!(manager.view().drives[0].drive.state, view::DriveState::Found);
        manager.delete(&made.uuid).await.expect("deleted");
        assert_eq!(manager.view().status.arrays, []);
    });
}

#[test]
fn a_reader_that_missed_something_asks_for_all() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let status = manager.create_array(&array(&manager, &paths)).await.expect("created");
        // More than the ring holds, while nobody reads.
        for _ in 0..engine::limits::FEED_RING {
            let new = |reply| Request::VolumeCreate(status.uuid.clone(), "v".into(), 4096, reply);
            manager.data.ask(new).await.expect("created");
            let gone = |reply| Request::VolumeDelete(status.uuid.clone(), "v".into(), reply);
            manager.data.ask(gone).await.expect("deleted");
        }
        let before = manager.view();
        assert!(!manager.refresh(), "something is missing");
        assert_eq!(manager.view().status.arrays, before.status.arrays, "as it was known last");
        manager.renew().await;
        assert!(manager.view().status.arrays[0].volumes.is_empty());
        let (array, name) = (status.uuid.clone(), "w".to_owned());
        let new = view::CreateVolume { array, name, size_bytes: 4096 };
        manager.create_volume(&new).await.expect("created");
        assert_eq!(manager.view().status.arrays[0].volumes.len(), 1);
    });
}

#[test]
fn a_scrub_is_a_job_to_its_end_and_behind_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run_with(false, paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let made = manager.create(&array(&manager, &paths)).await.expect("created");
        let check = view::ScrubArray { repair: false, trust_data: false };
        let mut ids = Vec::new();
        for number in 0..3 {
            manager.scrub(&made.uuid, check).await.expect("asked");
            let ended = async {
                while manager.view().jobs.iter().filter(|job| job.ended.is_some()).count() <= number
                {
                    manager.snapshot.news.notified().await;
                    if !manager.refresh() {
                        // The engine told something while the ring was taken from.
                        manager.renew().await;
                    }
                }
            };
            timeout(SOON, ended).await.expect("a scrub ends");
            let job = manager.view().jobs[0].clone();
            assert_eq!(job.ended.map(|(_, end)| end), Some(view::JobEnd::Completed));
            assert!(!ids.contains(&job.id));
            ids.push(job.id);
        }
        assert_eq!(manager.view().jobs.len(), 3);
    });
}

#[test]
fn a_look_that_hangs_delays_neither_a_get_nor_another_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 3);
    run(paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let hung = manager.inventory().begin(&paths[2], false).expect("can begin");
        let finding = tokio::spawn({
            let manager = manager.clone();
            async move { manager.find_drives(&[]).await }
        });
        // Until it waits for the look.
        while manager.scanning.try_lock().is_ok() {
            tokio::task::yield_now().await;
        }
        let made = manager.create(&array(&manager, &paths[..2])).await.expect("created");
        manager.stop(&made.uuid).await.expect("stopped");
        assert_eq!(manager.view().status.arrays.len(), 1);
        assert!(!finding.is_finished());
        // What hangs is refused to who wants it, and holds nobody up meanwhile.
        let [third] = named(&manager, &paths[2..]).try_into().expect("one drive");
        let wipe = view::WipeDrive { drive: third, overwrite: true };
        let (wiped, other) = tokio::join!(manager.wipe(&wipe), manager.delete(&made.uuid));
        assert!(wiped.expect_err("hangs").error.contains("did not answer"));
        other.expect("deleted");
        drop(hung);
        finding.await.expect("ran").expect("found");
    });
}

#[test]
fn a_drive_that_hangs_costs_one_thread() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 2);
    run(paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let hung = manager.inventory().begin(&paths[1], false).expect("can begin");
        let _ = manager.inventory().finish(&paths[1], None, false);
        let threads = || std::fs::read_dir("/proc/self/task").expect("is read").count();
        manager.find_drives(&paths).await.expect("found");
        let before = threads();
        for _ in 0..50 {
            manager.find_drives(&paths).await.expect("found");
        }
        // Other tests come and go beside this one; a thread for each look would be more.
        assert!(threads() < before + 50, "{before} {}", threads());
        let silent = manager.view().drives[1].drive.problem.clone().expect("a problem");
        assert!(silent.contains("did not answer"), "{silent}");
        drop(hung);
        manager.find_drives(&paths).await.expect("found");
        assert_eq!(manager.view().drives[1].drive.state, view::DriveState::Free);
    });
}

#[test]
fn another_drive_at_a_path_is_not_taken_for_the_one_that_was_meant() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = drives(dir.path(), 4);
    run_with(false, paths.clone(), |manager| async move {
        manager.start(Duration::ZERO).await;
        let made = manager.create(&array(&manager, &paths[2..])).await.expect("created");
        manager.fail(&made.uuid, "slot:1").await.expect("failed");
        let meant = named(&manager, &paths);
        let swap = |path: &String| {
            let other = format!("{path}.other");
            std::fs::File::create(&other).expect("created").set_len(96 << 20).expect("sized");
            std::fs::rename(&other, path).expect("is there now");
        };
        let is_refused = |outcome: Result<(), Error>| {
            let refused = outcome.expect_err("is refused");
            assert_eq!(refused.code, view::ErrorCode::Refused);
            assert!(refused.error.contains("another drive is at"), "{}", refused.error);
        };
        swap(&paths[0]);
        let wipe = view::WipeDrive { drive: meant[0].clone(), overwrite: true };
        is_refused(manager.wipe(&wipe).await.map(drop));
        // Who has seen which it is may have it.
        let wipe = view::WipeDrive { drive: named(&manager, &paths)[0].clone(), overwrite: true };
        manager.wipe(&wipe).await.expect("wiped");
        let first_two = view::CreateArray {
            name: "new".to_owned(),
            drives: meant[..2].to_vec(),
            ..array(&manager, &paths[..2])
        };
        is_refused(manager.create(&first_two).await.map(drop));
        swap(&paths[1]);
        let overwrite = Vec::new();
        let replace = view::ReplaceDrive { slot: 1, with: meant[1].clone(), overwrite };
        is_refused(manager.replace(&made.uuid, &replace).await.map(drop));
        let states = manager.view().drives.iter().map(|d| d.drive.state).collect::<Vec<_>>();
        assert_eq!(states[..2], [view::DriveState::Free; 2], "nothing was taken");
        // In the place of a drive that failed, whoever asks for its path sees what is there.
        swap(&paths[3]);
        manager.find_drives(&paths[3..]).await.expect("found");
        let [with] = named(&manager, &paths[3..]).try_into().expect("one drive");
        let replace = view::ReplaceDrive { slot: 1, with, overwrite: Vec::new() };
        manager.replace(&made.uuid, &replace).await.expect("replaced");
    });
}
