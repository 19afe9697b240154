//! Devices of ublk, by the kernel's commands for them (`ublk::wire::control`).
//!
//! Each of ours says by what its server keeps there whose it is: the export's id and the folder of
//! the process that made it, as a number.

use crate::{blocks, hash_of, modprobe};
use runtime::Errand;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use ublk::limits::{DEPTH, REQUEST_BYTES_MAX, ZEROED_BYTES_MAX};
use ublk::wire::control::{self, Code, DeviceState, INFO, Info, NONE, Parameters, feature};

const CONTROL: &str = "/dev/ublk-control";
/// Where the kernel lists what servers open of devices.
const LIST: &str = "/sys/class/ublk-char";
/// How long a command may take that waits for nobody, and one that waits for a server.
const SOON: Duration = Duration::from_secs(10);
const SERVED: Duration = Duration::from_secs(15);
/// How long a server that ends may take to let go of a device, and how often it is looked: where it
/// had all requests of a queue, Linux 6.12 takes notice when they time out.
const LETS_GO: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(20);
/// How long a flush may take before a device ends.
const FLUSHED: Duration = Duration::from_secs(20);

/// What the number of a device of ours begins with.
const OURS: u64 = 0x7064 << 48;

/// The number of an export's device, of those that the process with this folder makes: 48 bits of
/// that of both names.
pub fn own(folder: &Path, id: &str) -> u64 {
    let names = folder.as_os_str().as_encoded_bytes().iter().chain(&[0]).chain(id.as_bytes());
    let hash = hash_of(names);
    OURS | (hash ^ hash >> 48) & ((1 << 48) - 1)
}

/// Whether a device was made by a process of this program.
pub const fn is_ours(info: &Info) -> bool {
    info.own >> 48 == OURS >> 48
}

/// The device of this number.
pub fn device(number: u32) -> String {
    format!("/dev/ublkb{number}")
}

/// The number of a device, if it is one of ublk.
pub fn number(device: &str) -> Option<u32> {
    device.strip_prefix("/dev/ublkb")?.parse().ok()
}

/// What a volume's device is to be like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Its bytes.
    pub bytes: u64,
    /// Its smallest unit.
    pub block_bytes: u32,
    /// What requests are best aligned to.
    pub best_bytes: u32,
    /// What is given up as a whole.
    pub discard_bytes: u32,
}

/// The kernel's driver.
pub struct Driver(File);

impl Driver {
    /// The driver, if the kernel has one; one that can be loaded is. None where the environment's
    /// `PALISADE_UBLK` is `off`.
    ///
    /// # Errors
    /// It can't be used, or lacks something.
    pub fn load() -> io::Result<Option<Self>> {
        if std::env::var_os("PALISADE_UBLK").is_some_and(|how| how == "off") {
            return Ok(None);
        }
        if let Some(driver) = Self::open()? {
            return Ok(Some(driver));
        }
        modprobe(&["ublk_drv"]);
        Self::open()
    }

    /// The driver, if it is there.
    ///
    /// # Errors
    /// It can't be used, or lacks something.
    pub fn open() -> io::Result<Option<Self>> {
        let driver = match File::options().read(true).write(true).open(CONTROL) {
            Ok(file) => Self(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io::Error::other(format!("{CONTROL}: {error}"))),
        };
        let told = driver.ask(Code::Features, NONE, &[0; 8], 0, SOON)?;
        let features = told.first_chunk().map_or(0, |own| u64::from_le_bytes(*own));
        match features & feature::NEEDED == feature::NEEDED {
            true => Ok(Some(driver)),
            false => {
                Err(io::Error::other("this kernel's ublk lacks what is needed; use Linux 6.12"))
            }
        }
    }

    fn ask(
        &self,
        code: Code,
        device: u32,
        memory: &[u8],
        data: u64,
        limit: Duration,
    ) -> io::Result<Vec<u8>> {
        let says = |address| control::command(device, (address, memory.len() as u16), data);
        let mut errand = Errand::command(self.0.as_fd(), code.number(), memory, says)?;
        errand.end(limit)?;
        Ok(errand.told().unwrap_or_default().to_vec())
    }

    fn tell(&self, code: Code, device: u32, data: u64, limit: Duration) -> io::Result<()> {
        self.ask(code, device, &[], data, limit).map(drop).map_err(|error| named(code, &error))
    }

    /// What is told of a device; none: there is no such device.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn info(&self, device: u32) -> io::Result<Option<Info>> {
        match self.ask(Code::Info, device, &[0; INFO], 0, SOON) {
            Ok(told) => Ok(told.first_chunk().map(Info::decode)),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => Ok(None),
            Err(error) => Err(named(Code::Info, &error)),
        }
    }

    /// The devices of this number of ours.
    pub fn find(&self, own: u64) -> Vec<Info> {
        let mut found = Vec::new();
        for name in std::fs::read_dir(LIST).into_iter().flatten().flatten() {
            let name = name.file_name().into_string().unwrap_or_default();
            let Some(number) = name.strip_prefix("ublkc").and_then(|own| own.parse().ok()) else {
                continue;
            };
            // What is refused is of others: those of users are asked for otherwise.
            found.extend(self.info(number).ok().flatten().filter(|info| info.own == own));
        }
        found
    }

    /// Makes a device with a queue of each core, which is not shown yet.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add(&self, own: u64, cores: u16, shape: Shape) -> io::Result<Info> {
        let wanted = Info {
            queues: cores,
            depth: DEPTH,
            state: DeviceState::Dead,
            bytes_most: REQUEST_BYTES_MAX as u32,
            device: NONE,
            server: std::process::id() as i32,
            features: feature::NEEDED,
            own,
        };
        let told = self.ask(Code::Add, NONE, &wanted.encode(), 0, SOON);
        let told = told.map_err(|error| named(Code::Add, &error))?;
        let info = told.first_chunk().map(Info::decode).ok_or(ErrorKind::InvalidData)?;
        let parameters = Parameters {
            bytes: shape.bytes,
            block_bytes: shape.block_bytes,
            best_bytes: shape.best_bytes,
            bytes_most: info.bytes_most,
            // A drive that has one may join at any time.
            volatile_cache: true,
            discard_bytes: shape.discard_bytes,
            zeroed_most: ZEROED_BYTES_MAX,
        };
        let set = self.ask(Code::SetParameters, info.device, &parameters.encode(), 0, SOON);
        if let Err(error) = set {
            let _ = self.end(info.device);
            return Err(named(Code::SetParameters, &error));
        }
        Ok(info)
    }

    /// Opens what a server serves a device by.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn server_side(&self, info: &Info) -> io::Result<OwnedFd> {
        let path = format!("/dev/ublkc{}", info.device);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|error| io::Error::other(format!("{path}: {error}")))
    }

    /// Shows a device, once its server asks for all its requests.
    ///
    /// # Errors
    /// It does not, or what the kernel says.
    pub fn start(&self, info: &Info) -> io::Result<()> {
        self.tell(Code::Start, info.device, std::process::id().into(), SERVED)
    }

    /// A server is to come for a device whose server has gone, or is about to.
    ///
    /// # Errors
    /// That one does not go, or what the kernel says.
    pub fn begin_recovery(&self, info: &Info) -> io::Result<()> {
        let end = Instant::now() + LETS_GO;
        loop {
            let told = self.tell(Code::BeginRecovery, info.device, 0, SOON);
            match told.as_ref().err().and_then(number_of) {
                // A process that has ended closes what it had one after the other.
                Some(Errno::BUSY) if Instant::now() < end => std::thread::sleep(LOOK),
                // It was begun before.
                Some(Errno::INVAL) => return Ok(()),
                _ => return told,
            }
        }
    }

    /// A server has come for a device, by what this process has opened, and asks for all its
    /// requests.
    ///
    /// # Errors
    /// It does not, or what the kernel says.
    pub fn end_recovery(&self, info: &Info, opener: u32) -> io::Result<()> {
        self.tell(Code::EndRecovery, info.device, opener.into(), SERVED)
    }

    /// Waits until the server that a device had is known to have gone; how the device is then.
    ///
    /// # Errors
    /// It does not go, or what the kernel says.
    pub fn left(&self, mut info: Info) -> io::Result<Info> {
        let end = Instant::now() + LETS_GO;
        while info.state == DeviceState::Live {
            if Instant::now() >= end {
                let why = "is still served by a daemon before this one";
                return Err(io::Error::other(format!("{} {why}", device(info.device))));
            }
            std::thread::sleep(LOOK);
            info = self.info(info.device)?.ok_or(ErrorKind::NotFound)?;
        }
        Ok(info)
    }

    /// Ends a device, whoever uses it: requests that wait get errors. It is forgotten when nobody
    /// has it open any more.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn end(&self, number: u32) -> io::Result<()> {
        self.tell(Code::Stop, number, 0, SOON).or_else(is_gone)?;
        self.tell(Code::Delete, number, 0, SOON).or_else(is_gone)
    }

    /// Ends a device that nobody uses, once all that was written to it is durable.
    ///
    /// # Errors
    /// Somebody uses it, or what the kernel says.
    pub fn end_if_idle(&self, info: &Info) -> io::Result<()> {
        let device = device(info.device);
        if info.state == DeviceState::Dead {
            return self.end(info.device);
        }
        // Nobody mounts it from here on until it is ended.
        let claim = blocks::claim(&device).map_err(io::Error::other)?;
        flush(&claim).map_err(|error| io::Error::other(format!("{device}: a flush: {error}")))?;
        if let Some(user) = blocks::opened(&device) {
            return Err(io::Error::other(user));
        }
        self.end(info.device)
    }
}

/// Makes all that was written to a device durable.
///
/// # Errors
/// It does not become so in time, or what the kernel says.
pub fn flush(device: &OwnedFd) -> io::Result<()> {
    Errand::sync(device.as_fd())?.end(FLUSHED).map(drop)
}

/// What is gone needs no end.
fn is_gone(error: io::Error) -> io::Result<()> {
    if number_of(&error) == Some(Errno::NODEV) { Ok(()) } else { Err(error) }
}

/// The kernel's number of a command's error.
fn number_of(error: &io::Error) -> Option<Errno> {
    let own = error.get_ref().and_then(|own| own.downcast_ref::<Refused>());
    own.and_then(|own| own.number)
}

/// A command that failed.
#[derive(Debug)]
struct Refused {
    code: Code,
    number: Option<Errno>,
    why: String,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ublk: {:?}: {}", self.code, self.why)
    }
}

impl core::error::Error for Refused {}

fn named(code: Code, error: &io::Error) -> io::Error {
    let number = Errno::from_io_error(error);
    io::Error::other(Refused { code, number, why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_export_of_each_process_has_a_number_of_its_own() {
        let (one, other) = (Path::new("/run/one"), Path::new("/run/other"));
        let all = [own(one, "a"), own(one, "b"), own(other, "a"), own(Path::new("/run/one\0"), "")];
        for (at, own) in all.iter().enumerate() {
            assert_eq!(own >> 48, 0x7064);
            assert!(all[at + 1..].iter().all(|next| next != own), "{all:x?}");
        }
    }

    #[test]
    fn devices_have_numbers() {
        assert_eq!(number(&device(12)), Some(12));
        for other in ["/dev/loop1", "/dev/ublkb", "/dev/ublkb1p1", "ublkb1", ""] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_number() {
        let error = named(Code::Start, &Errno::BUSY.into());
        assert_eq!(number_of(&error), Some(Errno::BUSY));
        assert!(error.to_string().starts_with("ublk: Start: "), "{error}");
        assert_eq!(number_of(&io::Error::other("else")), None);
    }
}
