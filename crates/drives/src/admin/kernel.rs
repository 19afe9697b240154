//! Admin commands by the kernel: its passthrough of NVMe (linux/nvme_ioctl.h).
//!
//! Invariants
//! - Only a device that the kernel calls NVMe is sent a command: the number of the call means
//!   something else to other drivers.
//! - What the kernel is given to write to is this process's own for as long as the call lasts.

#![allow(unsafe_code)]

use super::{Admin, AdminError};
use core::ffi::c_void;
use core::time::Duration;
use nvme::request::Request;
use nvme::status::Status;
use rustix::io::Errno;
use rustix::ioctl::{Direction, Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where the kernel names devices by their numbers.
const DEVICES: &str = "/sys/dev";

/// `struct nvme_passthru_cmd64`. `struct nvme_passthru_cmd` is the same up to and with
/// [`Self::short_result`].
#[repr(C)]
#[derive(Default)]
struct Passthrough {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    dwords_2_and_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    dwords: [u32; 6],
    timeout_ms: u32,
    /// The result of [`ADMIN`]; nothing to [`ADMIN64`].
    short_result: u32,
    /// The result of [`ADMIN64`].
    result: u64,
}

const _: () = assert!(core::mem::size_of::<Passthrough>() == 80);
const _: () = assert!(core::mem::offset_of!(Passthrough, address) == 24);
const _: () = assert!(core::mem::offset_of!(Passthrough, dwords) == 40);
const _: () = assert!(core::mem::offset_of!(Passthrough, result) == 72);

/// `NVME_IOCTL_ADMIN64_CMD`, of Linux 5.5 and later.
const ADMIN64: Opcode = opcode::from_components(Direction::ReadWrite, b'N', 0x47, 80);
/// `NVME_IOCTL_ADMIN_CMD`.
const ADMIN: Opcode = opcode::from_components(Direction::ReadWrite, b'N', 0x41, 72);

/// A command on its way.
struct Call<'a> {
    opcode: Opcode,
    command: &'a mut Passthrough,
}

// SAFETY: both calls read and write a structure that is [`Passthrough`] or its beginning, which is
// borrowed for as long as this lives; they return a status, which is no pointer.
unsafe impl Ioctl for Call<'_> {
    type Output = Status;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut *self.command).cast()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> rustix::io::Result<Status> {
        // 15 bits of it are the drive's.
        Ok(Status(out as u16))
    }
}

/// A controller, or the one behind a namespace, by the kernel.
pub struct KernelAdmin {
    file: File,
}

impl KernelAdmin {
    /// How long the kernel waits for an answer. It is the kernel's own time for admin commands, and
    /// never shorter: the kernel resets a controller that lets it pass, which fails or delays all
    /// I/O of the drive. Who does not want to wait that long lets a thread do it.
    pub const GIVES_UP: Duration = Duration::from_secs(60);

    /// Opens a controller's character device (`/dev/nvme0`) or a namespace's block device
    /// (`/dev/nvme0n1`), to ask only: others may have it at the same time.
    ///
    /// # Errors
    /// It is not there, not NVMe, or may not be opened.
    pub fn open(path: &Path) -> Result<Self, AdminError> {
        if !is_nvme(Path::new(DEVICES), path)? {
            return Err(AdminError::NotNvme);
        }
        File::open(path).map(|file| Self { file }).map_err(|error| of_io(&error))
    }

    /// Carries a command by one of the calls.
    fn call(&self, opcode: Opcode, command: &mut Passthrough) -> Result<Status, Errno> {
        // SAFETY: `open` made sure that the kernel calls this device NVMe, to which these calls
        // mean a `Passthrough`. The address and the length in it are of a slice that `ask` borrows
        // until this has returned, and the kernel does not return before the drive is done with it.
        unsafe { ioctl(&self.file, Call { opcode, command }) }
    }
}

impl Admin for KernelAdmin {
    fn ask(&self, request: &Request, into: &mut [u8]) -> Result<u32, AdminError> {
        let into = into.get_mut(..request.bytes() as usize).ok_or(AdminError::Io(Errno::INVAL))?;
        let mut command = Passthrough {
            opcode: request.opcode,
            namespace: request.namespace,
            address: if into.is_empty() { 0 } else { into.as_mut_ptr().expose_provenance() as u64 },
            data_bytes: request.bytes(),
            dwords: request.dwords,
            timeout_ms: Self::GIVES_UP.as_millis() as u32,
            ..Passthrough::default()
        };
        let outcome = carry(&mut command, |opcode, command| self.call(opcode, command));
        let (status, result) = outcome.map_err(AdminError::of)?;
        AdminError::of_status(status).map_or(Ok(result), Err)
    }
}

/// Carries a command by the newer call, or by the older one where the kernel does not know that;
/// status and result.
fn carry(
    command: &mut Passthrough,
    call: impl Fn(Opcode, &mut Passthrough) -> Result<Status, Errno>,
) -> Result<(Status, u32), Errno> {
    match call(ADMIN64, command) {
        Err(Errno::NOTTY) => call(ADMIN, command).map(|status| (status, command.short_result)),
        // Dword 1 says nothing of what is asked here.
        other => other.map(|status| (status, command.result as u32)),
    }
}

/// Whether the kernel calls what is at a path NVMe: its name, by the number of the device.
fn is_nvme(devices: &Path, path: &Path) -> Result<bool, AdminError> {
    let found = std::fs::metadata(path).map_err(|error| of_io(&error))?;
    let kind = found.file_type();
    let kind = match (kind.is_char_device(), kind.is_block_device()) {
        (true, _) => "char",
        (_, true) => "block",
        _ => return Ok(false),
    };
    Ok(names_nvme(devices.join(kind), found.rdev()))
}

/// Whether the device of this number is called `nvme` and a number.
fn names_nvme(devices: PathBuf, device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // Where it can't be read, nobody knows: nothing is sent.
    let place = std::fs::canonicalize(devices.join(format!("{major}:{minor}")));
    let is_nvme = |place: &PathBuf| {
        let name = place.file_name()?.to_str()?;
        let number = name.strip_prefix("nvme")?;
        number.starts_with(|c: char| c.is_ascii_digit()).then_some(())
    };
    place.is_ok_and(|place| is_nvme(&place).is_some())
}

/// The error of what comes before any command: there the kernel asks for no right but that to the
/// file.
fn of_io(error: &std::io::Error) -> AdminError {
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM) => AdminError::NotOpened,
        errno => AdminError::of(errno.unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that a C compiler makes of linux/nvme_ioctl.h.
    #[test]
    fn calls_have_the_kernels_numbers() {
        assert_eq!((ADMIN64, ADMIN), (0xc050_4e47, 0xc048_4e41));
    }

    #[test]
    fn a_kernel_that_knows_the_older_call_only_is_asked_by_that() {
        let kernel = |knows: Opcode| {
            move |opcode, command: &mut Passthrough| {
                (command.result, command.short_result) = (1 << 32 | 7, 5);
                if opcode == knows { Ok(Status::SUCCESS) } else { Err(Errno::NOTTY) }
            }
        };
        let ask = |knows| carry(&mut Passthrough::default(), kernel(knows));
        assert_eq!(ask(ADMIN64), Ok((Status::SUCCESS, 7)));
        assert_eq!(ask(ADMIN), Ok((Status::SUCCESS, 5)));
        assert_eq!(ask(0), Err(Errno::NOTTY));
    }

    #[test]
    fn only_nvme_devices_are_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("a");
        std::fs::write(&file, "a").expect("written");
        let open = |path: &Path| KernelAdmin::open(path).err();
        assert_eq!(open(&file), Some(AdminError::NotNvme));
        assert_eq!(open(dir.path()), Some(AdminError::NotNvme));
        assert_eq!(open(Path::new("/dev/null")), Some(AdminError::NotNvme));
        assert_eq!(open(&dir.path().join("b")), Some(AdminError::Gone));
    }

    #[test]
    fn a_device_file_of_others_is_told_apart_from_a_right_that_is_lacking() {
        for errno in [Errno::ACCESS, Errno::PERM] {
            assert_eq!(of_io(&errno.into()), AdminError::NotOpened, "{errno}");
            assert_eq!(AdminError::of(errno), AdminError::NotAllowed, "{errno}");
        }
        assert_eq!(of_io(&Errno::NOENT.into()), AdminError::Gone);
    }

    #[test]
    fn a_device_is_nvme_by_the_kernels_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let names = ["nvme0", "nvme12n1p3", "nvme-fabrics", "sda", "ng0n1", "nvme"];
        for (minor, name) in names.iter().enumerate() {
            std::fs::create_dir(dir.path().join(name)).expect("made");
            let link = dir.path().join(format!("239:{minor}"));
            std::os::unix::fs::symlink(name, link).expect("linked");
        }
        let is_nvme = |minor| names_nvme(dir.path().to_owned(), rustix::fs::makedev(239, minor));
        assert_eq!([0, 1, 2, 3, 4, 5].map(is_nvme), [true, true, false, false, false, false]);
        assert!(!is_nvme(6), "nobody knows");
    }

    /// What is no NVMe device refuses the calls, the older one too.
    #[test]
    fn a_device_that_knows_no_such_call_is_not_nvme() {
        let admin = KernelAdmin { file: File::open("/dev/null").expect("it is there") };
        assert_eq!(admin.controller(), Err(AdminError::NotNvme));
        let short = admin.ask(&Request::smart_log(), &mut [0; 511]);
        assert_eq!(short, Err(AdminError::Io(Errno::INVAL)), "no room");
    }
}
