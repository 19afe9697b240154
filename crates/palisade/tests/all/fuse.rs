//! The file as the kernel shows it: mounted, written and read by fio, with many requests at a time.

use crate::common::loops::Loop;
use crate::common::tools_are_there;
use crate::filesystem::{can_mount, verify};
use control::Kernel;
use fuse::{ConnectionMemory, Fence, Look, MEMORY, serve};
use runtime::{CoreEnv, NoDrive, Runtime};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use sim::volume::MemoryVolume;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use units::CoreId;

const BYTES: usize = 64 << 20;

type Env = CoreEnv<(), NoDrive>;

/// A volume in memory that is mounted over a file.
struct Mounted {
    path: PathBuf,
    _folder: tempfile::TempDir,
    runtime: Option<Runtime<(), NoDrive>>,
}

impl Mounted {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        File::create(&path).unwrap();
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let data = format!(
            "fd={},rootmode=100600,user_id=0,group_id=0,allow_other,default_permissions,\
             max_read=1048576",
            device.as_raw_fd()
        );
        let (data, flags) = (CString::new(data).unwrap(), MountFlags::NOSUID | MountFlags::NODEV);
        mount("palisade", &path, "fuse.palisade", flags, Some(&*data)).unwrap();
        let runtime = Runtime::start(1, false, |_| ());
        let device: OwnedFd = device.into();
        let call = Box::new(move |env: &Env| {
            let own = env.clone();
            let kernel = Kernel::new(env.reactor(), device).unwrap();
            io::Env::spawn(env, io::Priority::First, async move {
                let look = Look { uid: 0, gid: 0, mode: 0o600, seconds: 0 };
                let (fence, memory) = (Arc::<Fence>::default(), ConnectionMemory::new(MEMORY));
                let volume = MemoryVolume::new(BYTES, 4096);
                serve(own, Rc::new(kernel), (volume, look), (&fence, &memory)).await;
            });
        });
        runtime.handle().run_on(CoreId(0), call);
        Self { path, _folder: folder, runtime: Some(runtime) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        if let Some(runtime) = self.runtime.take() {
            runtime.stop();
        }
    }
}

#[test]
fn fio_verifies_a_file_that_the_front_end_serves_and_a_loop_device_over_it() {
    if !tools_are_there(&["fio", "losetup"]) || !can_mount() {
        return;
    }
    let own = Mounted::new();
    assert_eq!(std::fs::metadata(&own.path).expect("is there").len(), BYTES as u64);
    for block in ["4k", "64k", "1m"] {
        verify(&own.path, block, "64m");
    }
    for device in [Loop::new(&own.path, "512"), Loop::direct(&own.path, "512")] {
        for block in ["512", "4k", "64k", "1m"] {
            let size = if block == "512" { "1m" } else { "64m" };
            verify(Path::new(&device.0), block, size);
        }
    }
}
