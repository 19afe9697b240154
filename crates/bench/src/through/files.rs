//! Volumes as files of this machine: mounted, served by the data cores as the daemon does, and
//! opened by cores of hosts as drives.
//!
//! Invariant: nothing is left mounted for longer than it takes to open it. What is open goes on;
//! the last that closes it ends it, and so does the end of this process, however that comes.

use super::Through;
use crate::error::BenchError;
use crate::fio_load;
use crate::rig::{Env, Rig};
use drives::{OpenOptions, SharedDrive};
use engine::Core;
use fuse::{ConnectionMemory, Fence, Look};
use io::{Blocks, Env as _, Priority};
use rustix::process::geteuid;
use services::mounts::{self, Fresh};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use tempfile::TempDir;
use units::CoreId;

/// The id that mounts say.
const ID: &str = "bench";
const DEVICE: &str = "/dev/fuse";

/// Mounted files, until this is dropped.
pub struct Mounted {
    /// Where they are.
    pub paths: Vec<PathBuf>,
    folder: TempDir,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for path in &self.paths {
            if let Err(error) = mounts::detach(path) {
                eprintln!("palisade: {}: it could not be unmounted: {error}", path.display());
            }
        }
    }
}

/// Why a volume can't be a file of this machine, if it can't.
///
/// # Errors
/// What is missing.
pub fn check(through: Through) -> Result<(), BenchError> {
    let missing = if !geteuid().is_root() {
        "root, who alone mounts files".to_owned()
    } else if !Path::new(DEVICE).exists() {
        format!("{DEVICE}: load the kernel's module fuse")
    } else {
        return Ok(());
    };
    Err(BenchError::Process(format!("--through {through} needs {missing}")))
}

/// What cores serve of a file: one of their descriptors of each.
type Served = Vec<(OwnedFd, Look, Arc<Fence>)>;

/// Mounts a file for each of `count` volumes, and has the data cores serve them; `behind` is the
/// volume of a number, on a core.
///
/// # Errors
/// When the kernel does not let one be mounted.
pub fn mount<V: Blocks + 'static>(
    rig: &Rig,
    count: usize,
    behind: impl Fn(&Core<Env>, usize) -> V + Clone + Send + 'static,
) -> Result<Mounted, BenchError> {
    let folder = fio_load::temporary()?;
    // As the kernel lists it.
    let within = folder.path().canonicalize();
    let within =
        within.map_err(|error| BenchError::System { path: folder.path().into(), error })?;
    let mut mounted = Mounted { paths: Vec::new(), folder };
    let mut cores: Vec<Served> = (0..rig.cores()).map(|_| Vec::new()).collect();
    for number in 0..count {
        let path = within.join(crate::served::name(number));
        let made = mounts::make(&path, (ID, mounted.folder.path()), rig.cores());
        let Fresh { look, descriptors, .. } = made.map_err(|error| {
            let why = format!("a volume could not be mounted as {}: {error}", path.display());
            BenchError::Process(why)
        })?;
        mounted.paths.push(path);
        let look = Look { uid: look.uid, gid: look.gid, mode: look.mode, seconds: look.seconds };
        let fence = Arc::<Fence>::default();
        for (own, fd) in cores.iter_mut().zip(descriptors) {
            own.push((fd, look, fence.clone()));
        }
    }
    for (core, own) in cores.into_iter().enumerate() {
        let behind = behind.clone();
        rig.on_core(CoreId(core as u16), move |env, engine| {
            serve(env, own, |number| behind(engine, number));
        });
    }
    Ok(mounted)
}

/// Serves files on this core.
fn serve<V: Blocks + 'static>(env: &Env, files: Served, behind: impl Fn(usize) -> V) {
    let memory = ConnectionMemory::reached(fuse::MEMORY, None);
    for (number, (fd, look, fence)) in files.into_iter().enumerate() {
        // One that can't be had is closed: who waits for it has an error.
        let Ok(kernel) = control::Kernel::new(env.reactor(), fd) else { continue };
        let (volume, memory, own) = (behind(number), memory.clone(), env.clone());
        env.spawn(Priority::First, async move {
            fuse::serve(own, Rc::new(kernel), (volume, look), (&fence, &memory)).await;
        });
    }
}

impl Mounted {
    /// Opens all of them for direct I/O.
    ///
    /// # Errors
    /// When one can't be opened so.
    pub fn open(&self) -> Result<Vec<SharedDrive>, BenchError> {
        self.paths.iter().map(|path| open(path)).collect()
    }
}

/// Opens a volume that this machine has as a file or device, for direct I/O.
///
/// # Errors
/// When it can't be opened so.
pub fn open(path: &Path) -> Result<SharedDrive, BenchError> {
    let drive = SharedDrive::open(path, &OpenOptions::default())?;
    match drive.is_direct() {
        true => Ok(drive),
        false => {
            let why = format!("{}: the kernel takes no direct I/O of it", path.display());
            Err(BenchError::Process(why))
        }
    }
}
