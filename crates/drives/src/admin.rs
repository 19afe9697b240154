//! Asking a drive itself: its controller takes admin commands, and answers.
//!
//! Purpose: what a drive says of its health, its temperature and its power states is told by no one
//! else. [`KernelAdmin`] has the kernel carry the commands; [`StandIn`] answers as a drive would,
//! for tests and benchmarks. What the bytes mean is the crate `nvme`'s matter.
//!
//! Invariants
//! - An asker waits until the drive has answered or the kernel has given it up, which takes
//!   [`KernelAdmin::GIVES_UP`]: no core ever asks, nor a thread that has anything else to do.
//! - Nothing here keeps others from the drive, or changes what is stored on it.

mod kernel;
mod stand_in;

pub use kernel::KernelAdmin;
pub use stand_in::{StandIn, Standing};

use core::fmt;
use nvme::drive::{Controller, Namespace};
use nvme::power::Power;
use nvme::request::Request;
use nvme::smart::Smart;
use nvme::status::Status;
use nvme::{identify, smart};
use rustix::io::Errno;

/// Why a drive did not answer what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdminError {
    /// This process may not ask: the kernel wants `CAP_SYS_ADMIN`.
    NotAllowed,
    /// This process may not open the device: its owner and mode, or the unit's `DeviceAllow=`, are
    /// for others.
    NotOpened,
    /// The drive is not there, or not any more.
    Gone,
    /// There is no NVMe drive.
    NotNvme,
    /// The drive refused, and says why.
    Refused(Status),
    /// The kernel has waited for an answer in vain, or reset the controller meanwhile. Whether the
    /// drive did what was asked is not known.
    TimedOut,
    /// The kernel could not ask, for another reason.
    Io(Errno),
}

impl AdminError {
    /// The one of a system call that failed.
    fn of(error: Errno) -> Self {
        match error {
            Errno::ACCESS | Errno::PERM => Self::NotAllowed,
            Errno::NODEV | Errno::NOENT | Errno::NXIO => Self::Gone,
            Errno::NOTTY => Self::NotNvme,
            // Signals don't interrupt a request: the kernel has cancelled it, as it does after its
            // time (`nvme_execute_rq` in linux/drivers/nvme/host/core.c).
            Errno::INTR | Errno::TIMEDOUT => Self::TimedOut,
            other => Self::Io(other),
        }
    }

    /// The one of a status that a drive, or the kernel in its place, gave; `None`: it did what it
    /// was asked.
    fn of_status(status: Status) -> Option<Self> {
        // "Command Aborted By Host": older kernels say so of what they cancelled.
        const CANCELLED: u16 = 0x371;
        match status.0 & 0x7ff {
            0 => None,
            CANCELLED => Some(Self::TimedOut),
            _ => Some(Self::Refused(status)),
        }
    }
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => write!(f, "the kernel does not allow it without CAP_SYS_ADMIN"),
            Self::NotOpened => write!(f, "the daemon may not open the drive's device file"),
            Self::Gone => write!(f, "the drive is gone"),
            Self::NotNvme => write!(f, "it is not an NVMe drive"),
            Self::Refused(status) => {
                write!(f, "the drive refused: {} ({:#06x})", status.words(), status.0)
            }
            Self::TimedOut => write!(f, "the drive did not answer the kernel"),
            Self::Io(error) => write!(f, "the kernel could not ask: {error}"),
        }
    }
}

impl core::error::Error for AdminError {}

/// Whoever takes admin commands to a drive's controller.
pub trait Admin: Send + Sync {
    /// Has the drive do what is asked, and waits for it. What the drive sends is the beginning of
    /// `into`, which has room for [`Request::bytes`]; the result is dword 0 of the completion.
    ///
    /// # Errors
    /// The drive could not be asked, did not answer, or refused.
    fn ask(&self, request: &Request, into: &mut [u8]) -> Result<u32, AdminError>;

    /// What the controller is.
    ///
    /// # Errors
    /// As [`Self::ask`].
    fn controller(&self) -> Result<Controller, AdminError> {
        let mut bytes = [0; identify::BYTES];
        self.ask(&Request::identify_controller(), &mut bytes)?;
        Ok(Controller::decode(&bytes))
    }

    /// What the namespace of this number is.
    ///
    /// # Errors
    /// As [`Self::ask`].
    fn namespace(&self, number: u32) -> Result<Namespace, AdminError> {
        let mut bytes = [0; identify::BYTES];
        self.ask(&Request::identify_namespace(number), &mut bytes)?;
        Ok(Namespace::decode(&bytes))
    }

    /// How the drive is.
    ///
    /// # Errors
    /// As [`Self::ask`].
    fn smart(&self) -> Result<Smart, AdminError> {
        let mut bytes = [0; smart::BYTES];
        self.ask(&Request::smart_log(), &mut bytes)?;
        Ok(Smart::decode(&bytes))
    }

    /// The power state that it is in.
    ///
    /// # Errors
    /// As [`Self::ask`].
    fn power_state(&self) -> Result<u8, AdminError> {
        Ok(Power::decode(self.ask(&Request::get_power_state(), &mut [])?).state)
    }

    /// Has it be in another power state, until it is told another or loses power.
    ///
    /// # Errors
    /// As [`Self::ask`]. A state that no drive can have is refused as a drive would.
    fn set_power_state(&self, state: u8) -> Result<(), AdminError> {
        let request = Request::set_power_state(state);
        let request = request.ok_or(AdminError::Refused(Status::INVALID_FIELD))?;
        self.ask(&request, &mut []).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_told_apart() {
        let table = [
            (Errno::ACCESS, AdminError::NotAllowed),
            (Errno::PERM, AdminError::NotAllowed),
            (Errno::NODEV, AdminError::Gone),
            (Errno::NOENT, AdminError::Gone),
            (Errno::NXIO, AdminError::Gone),
            (Errno::NOTTY, AdminError::NotNvme),
            (Errno::INTR, AdminError::TimedOut),
            (Errno::TIMEDOUT, AdminError::TimedOut),
            (Errno::AGAIN, AdminError::Io(Errno::AGAIN)),
        ];
        for (errno, error) in table {
            assert_eq!(AdminError::of(errno), error, "{errno}");
        }
        assert_eq!(AdminError::of_status(Status::SUCCESS), None);
        // More information, which is no refusal.
        assert_eq!(AdminError::of_status(Status(0x2000)), None);
        assert_eq!(AdminError::of_status(Status(0x371)), Some(AdminError::TimedOut));
        assert_eq!(AdminError::of_status(Status(0x4371)), Some(AdminError::TimedOut));
    }

    #[test]
    fn a_refusal_is_told_in_the_drives_words() {
        let error = AdminError::of_status(Status::FEATURE_NOT_CHANGEABLE).expect("a refusal");
        assert_eq!(error.to_string(), "the drive refused: Feature Not Changeable (0x410e)");
        let reserved = AdminError::Refused(Status(0x17)).to_string();
        assert_eq!(reserved, "the drive refused: a status that is reserved (0x0017)");
    }
}
