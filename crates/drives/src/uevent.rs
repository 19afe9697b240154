//! What the kernel announces of devices: uevents.
//!
//! Purpose: a [`Listener`] hears of each device that comes, goes or changes, within milliseconds
//! and without asking. Each announcement is one message of the kernel's netlink socket
//! (`netlink(7)`, `NETLINK_KOBJECT_UEVENT`, group 1): `ACTION@DEVPATH`, then `KEY=VALUE` for each
//! property, each ended by a zero byte (`lib/kobject_uevent.c`).
//!
//! Invariants
//! - Only the kernel is believed: a message of a process is passed over.
//! - What may have been missed is said: [`Notice::Lost`]. An announcement is a reason to look
//!   ([`crate::sysfs`]), not what there is to know.
//! - No bytes make [`parse`] panic, and its work is linear in them.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

/// The group of the kernel's own announcements. (That of udev's is 2.)
const KERNEL: u32 = 1;
/// Bytes of a message that are taken. The kernel's have at most 2 KiB of properties behind a path.
const MESSAGE: usize = 8 << 10;
/// Bytes of messages that may wait, if we are allowed that many: a shelf whose cable is pulled
/// makes some hundred at once.
const WAITING: usize = 4 << 20;

/// What became of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// It is there.
    Add,
    /// It is no longer there.
    Remove,
    /// Something about it is different: its size, its medium.
    Change,
    /// It has another name.
    Move,
    /// A driver serves it.
    Bind,
    /// No driver serves it any more.
    Unbind,
    /// It may be used.
    Online,
    /// It may not be used.
    Offline,
    /// Something else.
    Other,
}

impl Action {
    fn of(word: &str) -> Self {
        match word {
            "add" => Self::Add,
            "remove" => Self::Remove,
            "change" => Self::Change,
            "move" => Self::Move,
            "bind" => Self::Bind,
            "unbind" => Self::Unbind,
            "online" => Self::Online,
            "offline" => Self::Offline,
            _ => Self::Other,
        }
    }
}

/// One announcement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What became of the device.
    pub action: Action,
    /// Where the device is below the root of sysfs, with a slash before it.
    pub devpath: String,
    /// What sort of device it is: `block`, `nvme`, `net` and so on.
    pub subsystem: Option<String>,
    /// Its name below `/dev`, if it has a node: `nvme0n1`.
    pub devname: Option<String>,
    /// The number of this appearance of a drive ([`crate::sysfs::Device::diskseq`]).
    pub diskseq: Option<u64>,
    /// The major number of its node.
    pub major: Option<u32>,
    /// The minor number of its node.
    pub minor: Option<u32>,
}

/// What a listener heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The kernel announced this.
    Event(Event),
    /// Announcements were lost: everything has to be looked at anew.
    Lost,
}

/// The announcement in a message of the kernel; `None` if there is none.
pub fn parse(message: &[u8]) -> Option<Event> {
    let mut fields = message.split(|byte| *byte == 0);
    let header = String::from_utf8_lossy(fields.next()?);
    let (action, devpath) = header.split_once('@')?;
    if action.is_empty() || !devpath.starts_with('/') {
        return None;
    }
    let mut event = Event {
        action: Action::of(action),
        devpath: devpath.to_owned(),
        subsystem: None,
        devname: None,
        diskseq: None,
        major: None,
        minor: None,
    };
    for field in fields {
        let text = String::from_utf8_lossy(field);
        let Some((key, value)) = text.split_once('=') else { continue };
        match key {
            "SUBSYSTEM" => event.subsystem = Some(value.to_owned()),
            "DEVNAME" => event.devname = Some(value.to_owned()),
            "DISKSEQ" => event.diskseq = value.parse().ok(),
            "MAJOR" => event.major = value.parse().ok(),
            "MINOR" => event.minor = value.parse().ok(),
            _ => {}
        }
    }
    Some(event)
}

/// Hears what the kernel announces, from the time when it was opened.
///
/// Its handle is readable when there is something to receive.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
}

impl Listener {
    /// Begins to listen. This needs no privilege.
    ///
    /// # Errors
    /// The kernel's: where it has no such sockets, or a sandbox forbids them.
    pub fn open() -> std::io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::RAW;
        let protocol = Some(KOBJECT_UEVENT);
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
        // More than the machine's limit takes a privilege. With less, more is `Lost`.
        if sockopt::set_socket_recv_buffer_size_force(&socket, WAITING).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, WAITING);
        }
        // The kernel picks a port that nobody else has.
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Self { socket })
    }

    /// The next announcement; `None` if there is none yet. Never waits.
    ///
    /// # Errors
    /// The kernel's, of a socket that is of no use any more.
    pub fn receive(&self) -> std::io::Result<Option<Notice>> {
        let mut bytes = [0; MESSAGE];
        loop {
            // With TRUNC the length is that of the whole message.
            match rustix::net::recvfrom(&self.socket, &mut bytes[..], RecvFlags::TRUNC) {
                Ok((_, length, from)) => {
                    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                    if from.is_none_or(|from| from.pid() != 0) {
                        continue;
                    }
                    let event = bytes.get(..length).and_then(parse);
                    return Ok(Some(event.map_or(Notice::Lost, Notice::Event)));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::NOBUFS) => return Ok(Some(Notice::Lost)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
#[path = "uevent_tests.rs"]
mod tests;
