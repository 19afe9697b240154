//! What the daemon and `palisade services` say to each other, on a Unix socket.
//!
//! A frame is the number of its bytes (4, little-endian), and so many bytes of JSON: an [`Order`]
//! of the daemon's, or a [`Word`] to it. Descriptors come with the first byte of their frame
//! (unix(7), `SCM_RIGHTS`); a reader never reads beyond a frame, so that they belong to it.
//!
//! Invariant: a frame has at most [`FRAME_MAX`] bytes and [`DESCRIPTORS_MAX`] descriptors.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most bytes of a frame.
pub const FRAME_MAX: usize = 4 << 20;
/// Most descriptors of a frame: one for each data core.
pub const DESCRIPTORS_MAX: usize = 64;
/// Bytes that say how many follow.
const COUNT: usize = 4;

/// What the daemon says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// All exports that there are to be.
    Wanted {
        /// Data cores: so many descriptors are wanted of each file.
        cores: u16,
        /// They have io_uring, without which they serve no ublk device.
        rings: bool,
        /// The exports.
        exports: Vec<Wanted>,
    },
    /// How it went with descriptors.
    Attached {
        /// The export's [`Wanted::id`].
        id: String,
        /// What is wanted of it from then on, or why they were not taken.
        outcome: Result<Wanted, String>,
    },
    /// A user of a file system's shares changes.
    User {
        /// The export's [`Wanted::id`].
        id: String,
        /// Tells what is asked from what was before.
        number: u64,
        /// The user's name.
        user: String,
        /// What changes.
        change: UserChange,
    },
    /// Nothing more comes: why.
    Refused(String),
}

/// What changes of a user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum UserChange {
    /// It comes, with a password.
    Add(Hidden),
    /// It has another password.
    Password(Hidden),
    /// It goes.
    Delete,
}

/// An export that is to be there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// Names it as long as it is there: its array's UUID and its number.
    pub id: String,
    /// Grows whenever something of it changes.
    pub revision: u64,
    /// The array's name.
    pub array: String,
    /// The volume's name.
    pub volume: String,
    /// As what.
    pub kind: Kind,
    /// The volume's bytes.
    pub bytes: u64,
    /// Its smallest unit.
    pub block_bytes: u32,
    /// What requests are best aligned to.
    pub best_bytes: u32,
    /// What is given up as a whole.
    pub discard_bytes: u32,
    /// Whether the daemon has descriptors of its file, or its device.
    pub attached: bool,
    /// It is to go, unless somebody uses it.
    pub leaving: bool,
    /// Its array does not run: what is there of it stays, and whoever uses that has errors.
    pub suspended: bool,
}

/// As what a volume is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// A block device: of ublk, where it can be, else a loop device.
    Device,
    /// A block device of ublk.
    Ublk,
    /// A file at this path.
    File(String),
    /// The unit of an iSCSI target.
    Iscsi(Box<Iscsi>),
    /// A logical unit at a Fibre Channel port, by FCP.
    Fc(Box<Fc>),
    /// A namespace at a Fibre Channel port, by NVMe.
    NvmeFc(Box<NvmeFc>),
    /// A file system, of which clients have shares.
    Shares(Box<Shares>),
}

/// A logical unit that is to be there at a Fibre Channel port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fc {
    /// The port's name: eight pairs of digits.
    pub port: String,
    /// The unit's number, by which all initiators have it.
    pub unit: u16,
    /// The unit's serial number.
    pub serial: String,
    /// Who may have it: names of ports.
    pub initiators: Vec<String>,
}

/// A subsystem of one namespace that is to be there at a Fibre Channel port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NvmeFc {
    /// The port's name: eight pairs of digits.
    pub port: String,
    /// The subsystem's qualified name.
    pub subsystem: String,
    /// The volume's UUID, which the namespace is known by.
    pub uuid: String,
    /// Qualified names of the hosts that may have it.
    pub hosts: Vec<String>,
}

/// A Fibre Channel port of this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FcPort {
    /// Its name: eight pairs of digits.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// How it is, in the kernel's words, such as `Online`.
    pub state: String,
    /// Its speed, in the kernel's words, such as `16 Gbit`.
    pub speed: String,
}

/// A file system that is to be shared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shares {
    /// It is to be made: which, and whether what is there may go.
    pub make: Option<(String, bool)>,
    /// Where SMB is to be reached.
    pub smb: String,
    /// Where NFS is to be reached.
    pub nfs: String,
    /// The shares.
    pub shares: Vec<Share>,
}

/// A share that is to be there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Share {
    /// What it is called.
    pub name: String,
    /// By SMB.
    pub smb: bool,
    /// By NFS.
    pub nfs: bool,
    /// Nobody may write.
    pub read_only: bool,
    /// Who may have it by SMB, and whether only to read; all users, if it names none.
    pub users: Vec<(String, bool)>,
    /// Who may have it by NFS, and whether only to read.
    pub clients: Vec<(String, bool)>,
}

/// An iSCSI target that is to be there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Iscsi {
    /// What it is called.
    pub target: String,
    /// The unit's serial number.
    pub serial: String,
    /// The unit's identifier: NAA, as 32 hexadecimal digits.
    pub naa: String,
    /// Where it is to be reached.
    pub portals: Vec<SocketAddr>,
    /// Who may log in.
    pub initiators: Vec<String>,
    /// By what they prove who they are.
    pub account: Option<Known>,
    /// Who is to serve it; whoever can.
    pub server: Option<Server>,
}

/// Who serves iSCSI targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Server {
    /// The kernel's LIO.
    Lio,
    /// tgt.
    Tgt,
}

/// A user, and the secret of that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Known {
    /// The name.
    pub user: String,
    /// The secret; without it nobody is let in.
    pub secret: Option<Hidden>,
}

/// A text that is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden(String);

impl Hidden {
    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(…)")
    }
}

/// What the daemon is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Word {
    /// These descriptors of `/dev/fuse` are an export's file.
    Attach {
        /// The export's [`Wanted::id`].
        id: String,
        /// What the file is to look like.
        look: FileLook,
    },
    /// This descriptor is that by which a server serves an export's ublk device.
    AttachDevice {
        /// The export's [`Wanted::id`].
        id: String,
        /// The device's queues.
        queues: u16,
        /// Requests of each.
        depth: u16,
    },
    /// How exports are.
    Are(Vec<Standing>),
    /// What came of a user's change: [`Order::User`].
    User {
        /// Which.
        number: u64,
        /// Why it could not be.
        outcome: Result<(), String>,
    },
}

/// What a file looks like, but for its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileLook {
    /// Whose it is.
    pub uid: u32,
    /// Whose group's.
    pub gid: u32,
    /// Who may read and write it: nine bits.
    pub mode: u32,
    /// When it was made, in seconds of Unix time.
    pub seconds: u64,
}

/// How an export is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Standing {
    /// Its [`Wanted::id`].
    pub id: String,
    /// What was wanted: [`Wanted::revision`].
    pub revision: u64,
    /// How.
    pub state: State,
    /// What is wrong; of one that is [`State::Ok`], what is other than it is wanted.
    pub problem: Option<String>,
    /// The block device.
    pub device: Option<String>,
    /// Who serves its target.
    pub server: Option<Server>,
    /// Initiators that have it.
    pub sessions: Vec<String>,
    /// Its file system and servers.
    pub files: Option<Box<Files>>,
    /// When it was asked last, in seconds of Unix time.
    pub checked: u64,
}

/// How a file system is that is shared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Files {
    /// Which it is.
    pub kind: String,
    /// Nothing can be written.
    pub read_only: bool,
    /// What is other than it is wanted.
    pub note: Option<String>,
    /// Its bytes.
    pub size: u64,
    /// Those of them that are used.
    pub used: u64,
    /// Its users, and whose files are theirs.
    pub users: Vec<(String, u32)>,
    /// How it is by SMB.
    pub smb: Option<FileServer>,
    /// How it is by NFS.
    pub nfs: Option<FileServer>,
}

/// How a server of files is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileServer {
    /// Which version it is.
    pub version: String,
    /// Who has a connection to it.
    pub clients: Vec<String>,
    /// Why none of its shares can be had.
    pub problem: Option<String>,
    /// Why one can't be had, by its name.
    pub problems: BTreeMap<String, String>,
}

/// How an export is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum State {
    /// A block of it was read.
    Ok,
    /// It can't be used.
    Failed,
    /// It was to go, and somebody uses it.
    Busy,
    /// It is not there any more.
    Gone,
    /// Its file system is made, and mounted once that is known.
    Made,
    /// It holds something, which stays: what is its problem.
    Holds,
}

/// A frame, as it goes over the socket.
#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    sent: usize,
}

impl Frame {
    /// Of what is to be said.
    ///
    /// # Errors
    /// It is too long.
    pub fn new(said: &impl Serialize) -> io::Result<Self> {
        let mut bytes = vec![0; COUNT];
        serde_json::to_writer(&mut bytes, said)?;
        let length = bytes.len() - COUNT;
        if length > FRAME_MAX {
            return Err(ErrorKind::FileTooLarge.into());
        }
        bytes[..COUNT].copy_from_slice(&(length as u32).to_le_bytes());
        Ok(Self { bytes, sent: 0 })
    }

    /// Sends what the socket takes of it, and the descriptors with its first byte; true once all of
    /// it is sent.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn send(&mut self, socket: BorrowedFd<'_>, with: &[OwnedFd]) -> io::Result<bool> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        let own: Vec<BorrowedFd<'_>> = with.iter().map(AsFd::as_fd).collect();
        if self.sent == 0 && !own.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(&own))
        {
            return Err(ErrorKind::InvalidInput.into());
        }
        let parts = [IoSlice::new(&self.bytes[self.sent..])];
        self.sent += sendmsg(socket, &parts, &mut beside, SendFlags::NOSIGNAL)?;
        Ok(self.sent == self.bytes.len())
    }
}

/// What is received of a frame so far.
#[derive(Debug, Default)]
pub struct Receiver {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Receiver {
    /// Receives what there is of the frame, as far as that goes without waiting; all of it once it
    /// is there.
    ///
    /// # Errors
    /// What the kernel says; `UnexpectedEof` where the other has gone; `InvalidData` where it sends
    /// no such frames.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        socket: BorrowedFd<'_>,
    ) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let missing = match self.bytes.first_chunk::<COUNT>() {
            None => COUNT - self.bytes.len(),
            Some(count) => {
                let length = u32::from_le_bytes(*count) as usize;
                if length > FRAME_MAX {
                    return Err(ErrorKind::InvalidData.into());
                }
                COUNT + length - self.bytes.len()
            }
        };
        if missing > 0 {
            self.take(socket, missing)?;
            return Ok(None);
        }
        let own = core::mem::take(self);
        let said = serde_json::from_slice(&own.bytes[COUNT..])?;
        Ok(Some((said, own.descriptors)))
    }

    /// Receives at most so many bytes, and at least one.
    fn take(&mut self, socket: BorrowedFd<'_>, missing: usize) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let mut part = [0; 64 << 10];
        let into = &mut part[..missing.min(64 << 10)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let count = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut beside, flags)?.bytes;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(own) = message {
                self.descriptors.extend(own);
            }
        }
        if self.descriptors.len() > DESCRIPTORS_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        self.bytes.extend_from_slice(&part[..count]);
        Ok(())
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
