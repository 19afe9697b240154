//! What the daemon is asked to change, in the words of the product: what bodies of requests become.

use crate::access::Secret;
use serde::{Deserialize, Serialize};

/// A drive that a request means, as it was when the request was read. Another may be at its path
/// by now: whoever takes it looks whether it is the same.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamedDrive {
    /// Names it for ever.
    pub id: String,
    /// Its path.
    pub path: String,
    /// Its serial number; empty where none was known.
    pub serial: String,
    /// How it was seen when the change was agreed to; none where nobody was asked.
    pub seen: Option<String>,
}

/// A request for a new array.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CreateArray {
    /// Its name.
    pub name: String,
    /// `0`, `1`, `5`, `6`, `10` or `jbod`.
    pub level: String,
    /// Its drives, in the order of slots.
    pub drives: Vec<NamedDrive>,
    /// Strip size.
    pub strip_bytes: u32,
    /// Block size; the largest of the drives' when absent.
    pub block_bytes: Option<u32>,
    /// Drives whose foreign content may be destroyed.
    pub overwrite: Vec<NamedDrive>,
    /// Namespaces of one drive may be in one group, though they die together.
    pub same_drive: bool,
    /// Other servers may reach the drives. So they may those behind a fabric, whatever this says.
    pub shared: bool,
}

/// A request to start an array that was stopped or could not be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AssembleArray {
    /// Start though drives are missing that no record says failed.
    pub start_degraded: bool,
    /// Start though blocks written at a crash may be wrong, or what newest records said is gone.
    pub accept_loss: bool,
    /// Take a shared array that another server had, once that shows no sign of life any more.
    pub take_over: bool,
    /// No other server runs that reaches the drives: a person says so.
    pub other_server_is_off: bool,
}

/// A request to take a drive out of service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailDrive {
    /// Its path, its serial number, or `slot:N`.
    pub drive: String,
}

/// A request to put another drive in a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplaceDrive {
    /// Which slot.
    pub slot: u16,
    /// The new drive.
    pub with: NamedDrive,
    /// Drives whose foreign content may be destroyed.
    pub overwrite: Vec<NamedDrive>,
}

/// A request to compare redundancy with the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubArray {
    /// Whether to write over strips that are known to be wrong.
    pub repair: bool,
    /// With `repair`: also to write what the data says where nobody can know what is wrong.
    pub trust_data: bool,
}

/// A request for a new volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateVolume {
    /// Its array.
    pub array: String,
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
}

/// A request to change a volume's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResizeVolume {
    /// The new size.
    pub size_bytes: u64,
    /// Give up what is behind a new size that is less: no request says that by itself.
    pub shrink: bool,
}

/// A request to serve a volume.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CreateExport {
    /// The array.
    pub array: String,
    /// The volume's UUID.
    pub volume: String,
    /// Over NBD, where: `ADDR:PORT` (port 0: any free one) or `unix:PATH`.
    pub nbd: Option<String>,
    /// Over NVMe/TCP, where: `ADDR:PORT`.
    pub nvme_tcp: Vec<String>,
    /// The subsystem's qualified name; without: one of the volume's own.
    pub subsystem: Option<String>,
    /// Qualified names of hosts that may have it.
    pub hosts: Vec<String>,
    /// Any host may have it.
    pub any_host: bool,
    /// What hosts are told instead of the addresses, in their order.
    pub advertise: Vec<String>,
    /// For the machine itself.
    pub local: Option<LocalExport>,
    /// Over iSCSI.
    pub iscsi: Option<CreateIscsi>,
    /// At a Fibre Channel port.
    pub fc: Option<CreateFc>,
}

/// A request to serve a volume at a Fibre Channel port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateFc {
    /// The port's worldwide name.
    pub port: String,
    /// By NVMe, not by FCP.
    pub is_nvme: bool,
    /// Who may have it: by FCP, worldwide names of ports; by NVMe, qualified names of hosts.
    pub initiators: Vec<String>,
}

/// A request to serve a volume over iSCSI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateIscsi {
    /// Where: `ADDR:PORT`.
    pub portals: Vec<String>,
    /// Names of the initiators that may have it.
    pub initiators: Vec<String>,
    /// What initiators are told instead of the portals, in their order.
    pub advertise: Vec<String>,
    /// The name by which they prove who they are.
    pub user: Option<String>,
    /// By what.
    pub secret: Option<Secret>,
    /// Who is to serve it.
    pub server: Option<IscsiServer>,
}

/// Who serves a target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IscsiServer {
    /// The kernel's LIO.
    Lio,
    /// tgt.
    Tgt,
}

impl IscsiServer {
    /// What it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lio => "lio",
            Self::Tgt => "tgt",
        }
    }
}

/// As what a volume is there on the machine that has its array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocalExport {
    /// A block device.
    Device,
    /// A block device by ublk, or none.
    Ublk,
    /// A file at this path.
    File(String),
    /// For a virtual machine, at the socket with this path.
    VhostUser(String),
    /// More than one of these, which none can be.
    Several,
}

/// A request to erase a drive's records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WipeDrive {
    /// Which.
    pub drive: NamedDrive,
    /// Erase also what is foreign there, or not known.
    pub overwrite: bool,
}
