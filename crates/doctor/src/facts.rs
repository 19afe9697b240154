//! What was found on a machine. Plain data: tests make it up.
//!
//! Invariant: what is `None` is not known, and raises nothing.

use control::config::{Config, Mistake};
use drives::sysfs::{Device, Port};
use health::rules::Verdict;
use redfish::view::{Certificate, Export, KnownDrive, Memory};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Everything.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Seconds since 1970, by this machine's clock.
    pub now: u64,
    /// The configuration.
    pub config: Configured,
    /// The daemon.
    pub daemon: Daemon,
    /// The kernel.
    pub kernel: Kernel,
    /// The daemon's process, or this one.
    pub process: Process,
    /// Memory of the machine.
    pub memory: Room,
    /// The network.
    pub network: Network,
    /// Drives: those that the configuration names, then other NVMe drives.
    pub drives: Vec<Drive>,
    /// What `drives` of the configuration names and nothing is at.
    pub absent: Vec<String>,
    /// The certificate of HTTPS.
    pub https: Https,
    /// The clock.
    pub clock: Clock,
    /// The state directory.
    pub state: State,
    /// The daemon's socket.
    pub socket: Node,
}

/// The configuration.
#[derive(Clone, Debug)]
pub struct Configured {
    /// The file.
    pub file: PathBuf,
    /// Why it can't be read.
    pub unread: Option<String>,
    /// What is wrong in it.
    pub mistakes: Vec<Mistake>,
    /// What it says; the defaults where it can't be used.
    pub says: Config,
}

impl Configured {
    /// Whether it can be used.
    pub fn is_usable(&self) -> bool {
        self.unread.is_none() && self.mistakes.is_empty()
    }
}

/// What a daemon told.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Told {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Whether its memory is locked.
    pub memory: Memory,
    /// Its state directory.
    pub state: Option<String>,
    /// Why that can't be used.
    pub state_problem: Option<String>,
    /// Its drives.
    pub drives: Vec<KnownDrive>,
    /// What it serves.
    pub exports: Vec<Export>,
    /// The SHA-256 of the certificate that HTTPS shows.
    pub fingerprint: Option<String>,
}

/// A daemon.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Daemon {
    /// None answers.
    #[default]
    Absent,
    /// One is there and can't be asked: what it has is not known.
    Silent {
        /// Why.
        why: String,
        /// Whether it refuses whoever asks: it may be well.
        is_refusal: bool,
    },
    /// One runs.
    Running(Box<Told>),
}

impl Daemon {
    /// What it told.
    pub fn told(&self) -> Option<&Told> {
        match self {
            Self::Running(told) => Some(told),
            _ => None,
        }
    }

    /// Whether one is there, and can't be asked.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Silent { .. })
    }
}

/// The kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Kernel {
    /// Its release, such as `6.12.1-amd64`.
    pub release: Option<String>,
    /// `kernel.io_uring_disabled`.
    pub uring_disabled: Option<u32>,
    /// `kernel.io_uring_group`.
    pub uring_group: Option<u32>,
    /// Whether a ring could be set up here, or why not.
    pub ring: Option<Result<(), String>>,
}

/// A limit of a process; `u64::MAX` is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What holds now.
    pub soft: u64,
    /// What the process may raise it to.
    pub hard: u64,
}

/// A process, as `/proc` tells of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Process {
    /// Whether it is the daemon; else it is who looks.
    pub is_daemon: bool,
    /// Its user.
    pub user: Option<u32>,
    /// Its groups.
    pub groups: Vec<u32>,
    /// The bits of its effective capabilities.
    pub capabilities: Option<u64>,
    /// Open files.
    pub files: Option<Limit>,
    /// Bytes of locked memory.
    pub locked: Option<Limit>,
    /// Whether a GPU may be used, so that memory is left unlocked.
    pub may_use_gpu: bool,
}

/// Bytes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    /// All.
    pub total: Option<u64>,
    /// What could be had without writing anything out.
    pub available: Option<u64>,
}

/// The network.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Network {
    /// Interfaces.
    pub ports: Vec<Port>,
    /// Where the daemon listens, or would.
    pub listeners: Vec<Listener>,
    /// Who listens on TCP now.
    pub sockets: Vec<Socket>,
    /// Ports below this one take a capability.
    pub first_free_port: Option<u16>,
}

/// Where the daemon listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// There.
    pub address: SocketAddr,
    /// For what.
    pub of: ListenerOf,
    /// Whether the daemon can listen there, for all that the address has to do with it.
    pub is_local: Option<bool>,
}

/// For what it listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListenerOf {
    /// HTTPS of the configuration.
    Https,
    /// An export, by its name.
    Export {
        /// `ARRAY:NUMBER`.
        id: String,
        /// Whether over NVMe/TCP.
        is_nvme: bool,
    },
}

/// A socket of TCP that somebody listens on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Socket {
    /// There.
    pub address: SocketAddr,
    /// The process, if it could be found.
    pub owner: Option<Owner>,
}

/// A process that has a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Whether it is the daemon.
    pub is_daemon: bool,
}

/// What is on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The record of an array: it has a slot there.
    Slot {
        /// The array's name.
        array: String,
        /// The slot.
        slot: u16,
        /// The latest moment that it tells of, in seconds since 1970.
        latest: u64,
    },
    /// Something else.
    Foreign(String),
    /// Nothing that is known.
    Blank,
}

/// Who else has a drive, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// The kernel's name of the drive or partition.
    pub part: String,
    /// What it is used for.
    pub by: By,
    /// Where it is mounted, and what is made of it.
    pub mounts: Vec<String>,
    /// Whether it is swap space, or something that is made of it.
    pub is_swap: bool,
}

/// What a drive is used for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// A file system.
    Mount,
    /// Swap space.
    Swap,
    /// Linux md, by its device.
    Md(String),
    /// The device mapper, by its name; LVM's volume group, if it is LVM's.
    Mapper {
        /// The mapping.
        name: String,
        /// The volume group.
        group: Option<String>,
    },
    /// Another device.
    Holder(String),
}

/// A drive.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Its path, as the configuration has it if it has.
    pub path: String,
    /// Whether the configuration names it.
    pub is_listed: bool,
    /// As the kernel has it; none for a file.
    pub device: Option<Device>,
    /// The size of its blocks.
    pub block_bytes: Option<u32>,
    /// Who else has it.
    pub uses: Vec<Use>,
    /// What is on it; none if it was not read.
    pub content: Option<Content>,
    /// How well it is, where it was asked.
    pub verdict: Option<Verdict>,
    /// As the daemon knows it.
    pub known: Option<KnownDrive>,
}

/// The certificate of HTTPS.
#[derive(Clone, Debug, Default)]
pub struct Https {
    /// The machine's name.
    pub host: String,
    /// The file that has it, if there is one.
    pub file: Option<PathBuf>,
    /// It, or why it can't be used.
    pub certificate: Option<Result<Certificate, String>>,
    /// The file of its key.
    pub key: Option<PathBuf>,
    /// Who may do what with that file.
    pub key_mode: Option<u32>,
}

/// The clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// Whether something keeps it.
    pub is_kept: Option<bool>,
    /// The latest moment at which the daemon is known to have written anything, in seconds since
    /// 1970.
    pub latest: Option<u64>,
}

/// The state directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Where it is; none if nothing says so.
    pub dir: Option<PathBuf>,
    /// It, if it is there.
    pub node: Node,
    /// Whether its file system is read-only.
    pub is_read_only: Option<bool>,
    /// Bytes that are free there.
    pub free: Option<u64>,
}

/// Something in the file system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Node {
    /// Where.
    pub path: PathBuf,
    /// What sort, and who may do what.
    pub kind: Option<NodeKind>,
    /// Who may do what with it.
    pub mode: u32,
    /// Whose it is.
    pub user: u32,
    /// The same of the directory that it is in.
    pub parent_mode: Option<u32>,
}

/// A sort of node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A directory.
    Directory,
    /// A socket.
    Socket,
    /// Something else.
    Other,
}
