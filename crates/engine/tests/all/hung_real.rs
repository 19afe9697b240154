//! A drive that hangs on the real runtime: reads and writes end, the drive is out and held back
//! until what hung has ended. Waits for events, measures no time.

use drives::{Faults, SharedDrive};
use engine::core::{Core, Settings};
use engine::mail::Mail;
use engine::manage::command::{
    ArrayState, ArrayStatus, DriveRef, ManageError, NewArray, Reply, Request, SlotHealth,
};
use engine::volume::Volume;
use io::{Blocks, DriveError, Env as _, Pool};
use layout::Level;
use std::sync::{Arc, Mutex};
use units::{CoreId, MIB, Nanos, Slot};

type Env = drives::Env<Mail<SharedDrive>>;

async fn ask<T: Send + 'static>(
    env: &Env,
    request: impl FnOnce(Reply<T>) -> Request<SharedDrive>,
) -> Result<T, ManageError> {
    let answer = Arc::new(Mutex::new(None));
    let slot = answer.clone();
    let reply = Box::new(move |result| *slot.lock().unwrap() = Some(result));
    env.post(CoreId(0), Mail::Request(request(reply)));
    loop {
        if let Some(result) = answer.lock().unwrap().take() {
            return result;
        }
        env.sleep(Nanos::from_micros(50)).await;
    }
}

async fn status(env: &Env) -> ArrayStatus {
    ask(env, Request::Status).await.unwrap().remove(0)
}

fn reference(shared: &SharedDrive, i: usize) -> DriveRef<SharedDrive> {
    let (path, serial) = (format!("memory{i}"), format!("M{i}"));
    DriveRef { shared: shared.clone(), path, serial, is_file: true }
}

async fn start(env: &Env, drives: Vec<DriveRef<SharedDrive>>) -> Volume<Env> {
    let settings = Settings { deadline: Nanos::from_millis(500), ..Settings::default() };
    let core = Core::start_with(env.clone(), settings, None);
    let (level, strip_bytes, block_bytes) = (Level::Raid5, 65536, None);
    let new = NewArray { shared: false, name: "a".into(), level, strip_bytes, block_bytes };
    let made = ask(env, |r| Request::Create(new, drives, r)).await.unwrap();
    let volume = |r| Request::VolumeCreate("a".into(), "v".into(), MIB, r);
    let uuid = ask(env, volume).await.unwrap().uuid;
    Volume::new(core.array(made.id).unwrap(), uuid)
}

fn filled(byte: u8) -> io::Buf {
    let mut data = Pool::single(MIB as usize);
    data.fill(byte);
    data.freeze()
}

async fn reads_as(volume: &Volume<Env>, byte: u8) {
    let (result, got) = volume.read(0, Pool::single(MIB as usize)).await;
    assert_eq!(result, Ok(()));
    assert!(got.iter().all(|found| *found == byte));
}

async fn hang_and_come_back(env: Env, drives: Vec<SharedDrive>, faults: Faults) {
    let references = drives.iter().enumerate().map(|(i, d)| reference(d, i)).collect();
    let volume = start(&env, references).await;
    volume.write(0, filled(1), false).await.unwrap();
    faults.hold();
    volume.write(0, filled(2), true).await.unwrap();
    reads_as(&volume, 2).await;
    let out = status(&env).await;
    assert_eq!((out.state, out.slots[1].health), (ArrayState::Degraded, SlotHealth::Failed));
    assert_eq!(out.slots[1].errors.reason, Some(DriveError::Timeout));
    assert!(out.slots[1].quarantined && faults.held() > 0);
    let again = |r| Request::Replace("a".into(), Slot(1), reference(&drives[1], 1), r);
    assert!(matches!(ask(&env, again).await, Err(ManageError::Quarantined(_))));
    // What hung is carried out now, over content that is older than the present one.
    faults.release();
    while status(&env).await.slots[1].quarantined {}
    ask(&env, again).await.unwrap();
    while status(&env).await.state != ArrayState::Optimal {}
    ask(&env, |r| Request::Fail("a".into(), vec!["slot:0".into()], r)).await.unwrap();
    reads_as(&volume, 2).await;
}

#[test]
fn a_drive_that_hangs_is_taken_out_and_may_come_back() {
    let mut drives: Vec<_> = (0..4).map(|_| SharedDrive::memory(6 * MIB, 512, false)).collect();
    let (faulty, faults) = drives[1].faulty();
    drives[1] = faulty;
    runtime::run_single(async move |env: Env| hang_and_come_back(env, drives, faults).await);
}
