//! Remote drives: connecting, losing and finding them, over TCP.

#[path = "support/remote.rs"]
mod support;

use io::{Buf, Controller, Drive as _, DriveError, Env as _, Pool};
use palisade_drives::remote::host::{PathState, Problem};
use palisade_drives::remote::{FabricError, Name, Place, Wishes};
use palisade_drives::{Env, SharedDrive};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{SUBSYSTEM, Shelf, drive, drive_of, fabric, nqn, short_fabric};
use units::Nanos;

const BYTES: usize = 4 << 20;
const LIMIT: Duration = Duration::from_secs(60);

fn buffer(seed: u8, bytes: usize) -> Buf {
    let mut buffer = Pool::single(bytes);
    buffer.fill(seed);
    buffer.freeze()
}

fn read_at(drive: &SharedDrive, offset: u64) -> Result<u8, DriveError> {
    let mut into = Pool::single(4096);
    drive.read_blocking(offset, &mut into).map(|()| into[17])
}

#[test]
fn a_namespace_is_a_drive_for_callers_that_wait() {
    let own = drive(BYTES, 512, true);
    let drive = &own.drive;
    assert_eq!(drive.path(), Path::new("nvme://nqn.2026-11.example:shelf/1"));
    assert_eq!(drive.serial(), "uuid.09090909-0909-0909-0909-090909090909");
    assert_eq!((drive.info().bytes, drive.info().block_bytes), (BYTES as u64, 512));
    assert!(!drive.is_file() && drive.is_direct() && drive.device().is_none());
    drive.write_blocking(8192, &[buffer(5, 4096), buffer(6, 512)]).unwrap();
    drive.flush_blocking().unwrap();
    assert_eq!((read_at(drive, 8192), read_at(drive, 12288)), (Ok(5), Ok(6)));
    drive.zero_blocking(8192, 4096).unwrap();
    assert_eq!(read_at(drive, 8192), Ok(0));
    assert_eq!(read_at(drive, BYTES as u64), Err(DriveError::Bounds));
    // The same drive again, and no other.
    let name: Name = format!("nvme+tcp://{}/*/*", own.shelf.place).parse().unwrap();
    let found = own.fabric.find(&name, &Wishes::default()).unwrap();
    assert_eq!(found, [drive.path()]);
    let again = own.fabric.open(&nqn(SUBSYSTEM), 1).unwrap();
    assert!(!again.is_last() && again.path() == drive.path());
    let none = own.fabric.open(&nqn(SUBSYSTEM), 2);
    assert!(matches!(none, Err(FabricError::NoNamespace(_, 2))), "{none:?}");
}

#[test]
fn what_is_where_is_told() {
    let (shelf, fabric) = (Shelf::start(BYTES, 4096), fabric(2, false));
    let (generation, places) = fabric.discover(&shelf.place, &Wishes::default()).unwrap();
    assert!(generation > 0);
    let subsystems: Vec<_> = places.iter().map(|own| own.subsystem.to_string()).collect();
    assert!(subsystems.contains(&SUBSYSTEM.to_owned()), "{subsystems:?}");
    assert!(fabric.status().is_empty());
    fabric.connect(&shelf.place, &nqn(SUBSYSTEM)).unwrap();
    // Once more: it is there.
    fabric.connect(&shelf.place, &nqn(SUBSYSTEM)).unwrap();
    let status = fabric.status();
    assert_eq!(status.len(), 1);
    assert_eq!(status[0].paths.len(), 1);
    assert_eq!(status[0].paths[0].state, PathState::Live);
    assert_eq!(status[0].namespaces[&1].info.block_bytes, 4096);
    // Who uses it does not lose it.
    let drive = fabric.open(&nqn(SUBSYSTEM), 1).unwrap();
    let refused = fabric.disconnect(&nqn(SUBSYSTEM), Some(&shelf.place));
    assert!(matches!(refused, Err(FabricError::InUse(_))), "{refused:?}");
    let elsewhere: Place = "127.0.0.1:1".parse().unwrap();
    let refused = fabric.disconnect(&nqn(SUBSYSTEM), Some(&elsewhere));
    assert!(matches!(refused, Err(FabricError::NoPath(..))), "{refused:?}");
    drop(drive);
    fabric.disconnect(&nqn(SUBSYSTEM), None).unwrap();
    assert!(fabric.status().is_empty());
    let refused = fabric.disconnect(&nqn(SUBSYSTEM), None);
    assert!(matches!(refused, Err(FabricError::NotConnected(_))), "{refused:?}");
}

#[test]
fn why_it_is_not_connected_is_told() {
    let (shelf, fabric) = (Shelf::start(BYTES, 512), fabric(1, false));
    let refused = fabric.connect(&shelf.place, &nqn("nqn.2026-11.example:other")).unwrap_err();
    let told = refused.to_string();
    assert!(told.contains("Connect refused"), "{told}");
    // Nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = Place { host: "127.0.0.1".to_owned(), port: free };
    let refused = fabric.connect(&place, &nqn(SUBSYSTEM)).unwrap_err();
    assert!(refused.to_string().contains("refused"), "{refused}");
    assert!(matches!(refused, FabricError::Problem { problem: Problem::NoLine(_), .. }));
    assert!(fabric.status().is_empty(), "what was tried in vain is forgotten");
    let nowhere: Place = "no-such-host.invalid:4420".parse().unwrap();
    let refused = fabric.connect(&nowhere, &nqn(SUBSYSTEM));
    assert!(matches!(refused, Err(FabricError::NoAddress { .. })), "{refused:?}");
}

/// Waits until that is so.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_drive_whose_target_goes_is_gone_and_comes_back() {
    let own = drive_of(short_fabric(), BYTES, 512);
    let (mut shelf, fabric, drive) = (own.shelf, own.fabric, own.drive);
    drive.write_blocking(0, &[buffer(1, 4096)]).unwrap();
    let place = shelf.place.clone();
    shelf.stop();
    let state = |fabric: &palisade_drives::remote::Fabric| fabric.status()[0].paths[0].state;
    assert_eq!(read_at(&drive, 0), Err(DriveError::Gone));
    wait_for("the end of the fence", || state(&fabric) == PathState::Connecting);
    assert_eq!(drive.write_blocking(0, &[buffer(2, 4096)]), Err(DriveError::Gone));
    let listener = TcpListener::bind((place.host.as_str(), place.port)).unwrap();
    let _shelf = Shelf::at(listener, BYTES, 512);
    wait_for("the path", || state(&fabric) == PathState::Live);
    // It does not say that it has no cache: what that had may be lost.
    let again = || fabric.open(&nqn(SUBSYSTEM), 1).unwrap();
    wait_for("the drive", || read_at(&again(), 0).is_ok());
    assert_eq!(read_at(&drive, 0), Err(DriveError::Gone));
    let status = fabric.status();
    assert!(status[0].paths[0].reconnects >= 1, "{status:?}");
    // A drive of a fabric that has ended is gone.
    let drive = again();
    drop(fabric);
    assert_eq!(read_at(&drive, 0), Err(DriveError::Gone));
}

/// Also behind what makes faults; a drive of this machine's is not reached by connections.
#[test]
fn how_it_is_reached_is_told() {
    let own = drive(BYTES, 512, false);
    let drive = own.drive.clone();
    runtime::run_single(async move |env: Env<()>| {
        let (faulty, _faults) = drive.faulty();
        for bound in [env.bind(&drive), env.bind(&faulty)] {
            let reached = bound.reached().expect("others may reach it");
            let [controller] = reached.controllers()[..] else { panic!("it has one path") };
            assert_ne!(controller.uniquifier, 0);
            assert_eq!(reached.fence(), Nanos::from_millis(6_000));
            assert!(!reached.end(Controller { uniquifier: 0, ..controller }).await);
        }
        let (memory, _faults) = SharedDrive::memory(BYTES as u64, 512, false).faulty();
        assert!(env.bind(&memory).reached().is_none());
    });
}

#[test]
fn a_core_that_serves_no_fabric_has_no_remote_drives() {
    let own = drive(BYTES, 512, false);
    let drive = own.drive.clone();
    runtime::run_single(async move |env: Env<()>| {
        let bound = env.bind(&drive);
        let (result, _) = bound.read(0, Pool::single(512)).await;
        assert_eq!(result, Err(DriveError::Gone));
    });
}
