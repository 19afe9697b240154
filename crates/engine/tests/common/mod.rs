//! A simulated machine with an engine on it, and what tests ask of it.
#![allow(dead_code, missing_docs)]

pub mod oracle;

use engine::core::Core;
use engine::mail::Mail;
use engine::manage::command::{
    ArrayStatus, DriveRef, ManageError, NewArray, Repair, Reply, Request, SlotHealth, StartOptions,
};
use engine::volume::Volume;
use io::{BlockError, Blocks, Env, Pool};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive, Stopped, World, WorldConfig};
use std::sync::{Arc, Mutex};
use units::{CoreId, MIB, Nanos, Slot};

pub use trials::machine::Message;
pub use trials::rig::{reference, references_in_order as references};

/// One virtual core, whose drives are its own.
pub type Machine = sim::SimEnv<Message>;

/// Where the answer to a request comes.
pub type Answer<T> = Arc<Mutex<Option<Result<T, ManageError>>>>;

/// Bytes of every simulated drive: head, region map, journal, four bands of data, tail.
pub const DRIVE_BYTES: u64 = 8 * MIB;

pub struct Rig {
    pub world: World<Message>,
    pub cores: Vec<Core<Machine>>,
}

pub fn drives(count: usize, seed: u64, cache: bool) -> Vec<SharedSimDrive> {
    let config = |i| DriveConfig::new(DRIVE_BYTES, seed * 100 + i as u64).with_cache(cache);
    (0..count).map(|i| SharedSimDrive::new(config(i))).collect()
}

/// Reads from core 0.
pub fn read(
    rig: &Rig,
    volume: &Volume<Machine>,
    at: u64,
    bytes: u64,
) -> Result<Vec<u8>, BlockError> {
    let volume = volume.clone();
    rig.world.block_on(CoreId(0), async move {
        let (result, got) = volume.read(at, Pool::single(bytes as usize)).await;
        result.map(|()| got.to_vec())
    })
}

/// Flushes from core 0.
pub fn flush(rig: &Rig, volume: &Volume<Machine>) -> Result<(), BlockError> {
    let volume = volume.clone();
    rig.world.block_on(CoreId(0), async move { volume.flush().await })
}

/// Writes from core 0, not durably.
pub fn write(rig: &Rig, volume: &Volume<Machine>, at: u64, data: &[u8]) -> Result<(), BlockError> {
    let (volume, mut buffer) = (volume.clone(), Pool::single(data.len()));
    buffer.copy_from_slice(data);
    rig.world.block_on(CoreId(0), async move { volume.write(at, buffer.freeze(), false).await })
}

/// Agrees to everything.
pub const FORCE: StartOptions =
    StartOptions { start_degraded: true, accept_loss: true, ..StartOptions::NONE };

/// The record that counts on a drive.
pub fn record(drive: &SharedSimDrive) -> format::ArrayRecord {
    let bytes = format::SLOT_BYTES;
    let image = |offset| drive.peek(offset, bytes);
    let images = format::slot_offsets(drive.info().bytes).map(image);
    format::newest([&images[0], &images[1], &images[2], &images[3]]).unwrap().1
}

/// Overwrites all of a drive's region map.
pub fn spoil_map(drive: &SharedSimDrive) {
    let areas = record(drive).areas;
    drive.overwrite(areas.map_start, &vec![7; areas.map_bytes as usize]);
}

/// Makes the journal area of drives that crashed unreadable: in-flight pages may be hidden there,
/// so the next start of a whole group owes its dirty regions.
pub fn hide_pages(drives: &[SharedSimDrive]) {
    for drive in drives {
        let areas = record(drive).areas;
        drive.fail_range(areas.journal_start, areas.journal_bytes);
    }
}

/// Drives with the same content, for another course of events.
pub fn duplicates(drives: &[SharedSimDrive]) -> Vec<SharedSimDrive> {
    drives.iter().map(SharedSimDrive::duplicate).collect()
}

impl Rig {
    pub fn new(seed: u64, cores: u16) -> Self {
        Self::with(WorldConfig::new(seed).with_cores(cores))
    }

    pub fn with(config: WorldConfig) -> Self {
        let world = World::new(config);
        let cores = world.envs().into_iter().map(Core::start).collect();
        Self { world, cores }
    }

    /// A machine of two cores whose mail is slow, and whose steps are late.
    pub fn slow(seed: u64) -> Self {
        let mut config = WorldConfig::new(seed).with_cores(2);
        config.mail_delay_most = Nanos::from_micros([20, 200, 1_000][seed as usize % 3]);
        config.late_percent = 20;
        Self::with(config)
    }

    pub fn env(&self) -> Machine {
        self.world.env(CoreId(0))
    }

    /// Sends a request of the control plane and runs the machine until it is answered.
    pub fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request<SharedSimDrive>,
    ) -> Result<T, ManageError> {
        self.try_ask(request).unwrap_or_else(|stopped| panic!("{stopped}"))
    }

    /// The same on a machine whose power may fail.
    pub fn try_ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request<SharedSimDrive>,
    ) -> Result<Result<T, ManageError>, Stopped> {
        let answer = self.send(request);
        let env = self.env();
        self.world.try_block_on(CoreId(0), async move {
            loop {
                if let Some(result) = answer.lock().unwrap().take() {
                    return result;
                }
                env.sleep(Nanos::from_micros(50)).await;
            }
        })
    }

    /// Sends a request and does not wait for its answer.
    pub fn send<T: Send + 'static>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request<SharedSimDrive>,
    ) -> Answer<T> {
        let answer = Arc::new(Mutex::new(None));
        let slot = answer.clone();
        let reply = Box::new(move |result| *slot.lock().unwrap() = Some(result));
        self.env().post(CoreId(0), Mail::Request(request(reply)));
        answer
    }

    /// Runs the machine until a request that was sent is answered.
    pub fn answered<T>(&self, answer: &Answer<T>) -> Result<T, ManageError> {
        for _ in 0..100_000 {
            if let Some(result) = answer.lock().unwrap().take() {
                return result;
            }
            self.world.run_for(Nanos::from_micros(100));
        }
        panic!("seed {}: a request is never answered", self.world.seed());
    }

    pub fn fail(&self, slot: usize) -> Result<ArrayStatus, ManageError> {
        self.ask(|r| Request::Fail("a".into(), vec![format!("slot:{slot}")], r))
    }

    /// Asks for a slot's own drive to be put back, and does not wait.
    pub fn put_back(&self, slot: usize, drive: &SharedSimDrive) -> Answer<ArrayStatus> {
        let back = reference(drive, slot);
        self.send(|r| Request::Replace("a".into(), Slot(slot as u16), back, r))
    }

    /// Puts a slot's own drive back, if it is as it went.
    pub fn give_back(
        &self,
        slot: usize,
        drive: &SharedSimDrive,
    ) -> Result<ArrayStatus, ManageError> {
        let back = reference(drive, slot);
        self.ask(|r| Request::Return("a".into(), Slot(slot as u16), back, r))
    }

    pub fn replace(&self, slot: usize, with: &SharedSimDrive) -> Result<ArrayStatus, ManageError> {
        let spare = reference(with, 90 + slot);
        self.ask(|r| Request::Replace("a".into(), Slot(slot as u16), spare, r))
    }

    pub fn create(
        &self,
        level: Level,
        drives: &[SharedSimDrive],
        strip_bytes: u32,
    ) -> Result<ArrayStatus, ManageError> {
        let block_bytes = None;
        let new = NewArray { shared: false, name: "a".into(), level, strip_bytes, block_bytes };
        self.ask(|reply| Request::Create(new, references(drives), reply))
    }

    pub fn assemble(
        &self,
        drives: &[DriveRef<SharedSimDrive>],
        options: StartOptions,
    ) -> Result<ArrayStatus, ManageError> {
        let drives = drives.to_vec();
        self.ask(|reply| Request::Assemble(None, drives, options, reply)).map(|mut a| a.remove(0))
    }

    pub fn status(&self) -> ArrayStatus {
        self.ask(Request::Status).unwrap().remove(0)
    }

    /// Makes a volume and gives it as each core sees it.
    pub fn volume(&self, bytes: u64) -> Vec<Volume<Machine>> {
        let made = |reply| Request::VolumeCreate("a".into(), "v".into(), bytes, reply);
        self.ask(made).unwrap();
        self.open_volume()
    }

    pub fn open_volume(&self) -> Vec<Volume<Machine>> {
        let status = self.status();
        let uuid = status.volumes[0].uuid;
        let open = |core: &Core<Machine>| Volume::new(core.array(status.id).unwrap(), uuid);
        self.cores.iter().map(open).collect()
    }

    /// Makes a volume of the rest of the array and writes to every band of it: tasks go over the
    /// whole array then.
    pub fn fill_rest(&self) {
        let status = self.status();
        let make = |r| Request::VolumeCreate("a".into(), "rest".into(), status.free_bytes, r);
        let rest = self.ask(make).unwrap();
        let volume = Volume::new(self.cores[0].array(status.id).unwrap(), rest.uuid);
        for at in (0..rest.bytes).step_by(MIB as usize) {
            write(self, &volume, at, &[0; 4096]).unwrap();
        }
        flush(self, &volume).unwrap();
    }

    /// Waits until no task runs; one that is stuck or paused does not.
    pub fn wait(&self) {
        for _ in 0..100_000 {
            let status = self.status();
            // The keeper may not have seen yet that it owes a rebuild.
            let owes = status.slots.iter().any(|slot| slot.health == SlotHealth::Rebuilding);
            let is_seen = !owes || !status.tasks.is_empty();
            if is_seen && status.tasks.iter().all(|task| task.stuck.is_some() || task.paused) {
                return;
            }
            self.world.run_for(Nanos::from_millis(1));
        }
        panic!("seed {}: a task never ends", self.world.seed());
    }

    pub fn stop(&self) {
        self.ask(|reply| Request::Stop("a".into(), reply)).unwrap();
    }

    pub fn scrub(&self, repair: bool) -> format::LastScrub {
        self.scrub_as(if repair { Repair::Known } else { Repair::Nothing })
    }

    pub fn scrub_as(&self, repair: Repair) -> format::LastScrub {
        self.ask(|reply| Request::Scrub("a".into(), repair, reply)).unwrap();
        self.wait();
        self.status().last_scrub.unwrap()
    }
}
