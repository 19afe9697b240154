//! Volumes as ublk devices of this machine: made, served by the data cores as the daemon does, and
//! opened by cores of hosts as drives.
//!
//! Invariant: a device that was made here ends when [`Devices`] is dropped, whoever uses it.

use super::files;
use crate::error::BenchError;
use crate::rig::Rig;
use control::{DeviceKernel, DeviceQueue, KnownDevice};
use drives::SharedDrive;
use engine::Volume;
use engine::array::message::ArrayId;
use engine::manage::command::ArrayStatus;
use io::{Env as _, Priority};
use services::ublk::{Driver, Shape, device, own};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use ublk::{ConnectionMemory, Fence};
use units::{CoreId, Uuid};

/// What devices say whose they are, beside the number of this process.
const ID: &str = "bench";

/// Why a volume can't be a device of this machine.
fn not_here(error: std::io::Error) -> BenchError {
    BenchError::Process(format!("a volume could not be a ublk device: {error}"))
}

/// The kernel's driver.
///
/// # Errors
/// There is none that can be used.
pub fn driver() -> Result<Driver, BenchError> {
    let missing = "this kernel has no ublk; load ublk_drv (Linux 6.12)";
    Driver::load().map_err(not_here)?.ok_or_else(|| BenchError::Process(missing.to_owned()))
}

/// Devices that were made.
pub struct Devices {
    driver: Driver,
    /// Their numbers.
    made: Vec<u32>,
}

impl Drop for Devices {
    fn drop(&mut self) {
        for number in &self.made {
            if let Err(error) = self.driver.end(*number) {
                eprintln!("palisade: {} could not be ended: {error}", device(*number));
            }
        }
    }
}

impl Devices {
    /// Makes a device of each volume of an array, of so many bytes, serves it on all cores, and
    /// opens it for direct I/O.
    ///
    /// # Errors
    /// When the kernel has no ublk, or does not make a device.
    pub fn make(
        rig: &Rig,
        (array, status): (ArrayId, &ArrayStatus),
        volumes: &[(Uuid, u64)],
    ) -> Result<(Self, Vec<SharedDrive>), BenchError> {
        let mut all = Self { driver: driver()?, made: Vec::new() };
        let mut drives = Vec::new();
        let folder = format!("bench-{}", std::process::id());
        for (number, (volume, bytes)) in volumes.iter().enumerate() {
            let shape = Shape {
                bytes: *bytes,
                block_bytes: status.block_bytes,
                best_bytes: status.strip_bytes,
                discard_bytes: status.discard_bytes,
            };
            let own = own(Path::new(&folder), &format!("{ID}-{number}"));
            let info = all.driver.add(own, rig.cores(), shape).map_err(not_here)?;
            all.made.push(info.device);
            let side = Arc::new(all.driver.server_side(&info).map_err(not_here)?);
            let known = KnownDevice::new((array, *volume), info.queues, Arc::default(), ());
            let (known, fence) = (Arc::new(known), Arc::<Fence>::default());
            for queue in 0..info.queues {
                let queue = DeviceQueue::map(side.clone(), queue, info.depth).map_err(not_here)?;
                serve(rig, queue, (array, *volume), (known.clone(), fence.clone()));
            }
            drop(side);
            all.driver.start(&info).map_err(not_here)?;
            drives.push(files::open(Path::new(&device(info.device)))?);
        }
        Ok((all, drives))
    }
}

/// Serves a queue on the core of its number.
fn serve(
    rig: &Rig,
    queue: DeviceQueue,
    (array, volume): (ArrayId, Uuid),
    (known, fence): (Arc<KnownDevice>, Arc<Fence>),
) {
    rig.on_core(CoreId(queue.number), move |env, core| {
        // Where there is no array any more nobody asks for the queue, and no device starts.
        let Some(array) = core.array(array) else { return };
        let kernel = Rc::new(DeviceKernel::new(env.reactor(), queue, known));
        let memory = ConnectionMemory::reached(ublk::MEMORY, None);
        let (own, volume) = (env.clone(), Volume::new(array, volume));
        env.spawn(Priority::First, async move {
            ublk::serve(own, kernel, volume, (&fence, &memory)).await;
        });
    });
}
