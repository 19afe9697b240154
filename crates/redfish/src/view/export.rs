//! Exports, and who has them.

use crate::view::IscsiServer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A volume served by a front end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Export {
    /// Names it: `ARRAY:NUMBER`.
    pub id: String,
    /// The array.
    pub array: String,
    /// The volume's name in the array.
    pub volume: String,
    /// By what it is served.
    #[serde(default)]
    pub kind: ExportKind,
    /// The block device of this machine that it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<String>,
    /// The link to the device, which stays the same.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<String>,
    /// The file of this machine that it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// The socket at which a virtual machine has it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub socket: Option<String>,
    /// How it is served over iSCSI.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iscsi: Option<IscsiExport>,
    /// How it is served at a Fibre Channel port.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fc: Option<FcExport>,
    /// How it is, asked as a client asks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub health: Option<ExportHealth>,
    /// Where it is served over NBD: `ADDR:PORT` or `unix:PATH`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nbd: Option<String>,
    /// Clients that have it over NBD now, in the order in which they came.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub clients: Vec<Client>,
    /// How it is served over NVMe/TCP.
    #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
    pub nvme: Option<NvmeExport>,
    /// How clients name it: an NBD URI, or that of a namespace.
    pub uri: String,
    /// Whether it is served now.
    pub serving: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

/// By what a volume is served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportKind {
    /// NBD.
    #[default]
    Nbd,
    /// NVMe/TCP.
    NvmeTcp,
    /// A file of this machine, by FUSE.
    Fuse,
    /// A loop device of this machine.
    Loop,
    /// A ublk device of this machine.
    Ublk,
    /// A virtual machine of this machine, over vhost-user.
    VhostUser,
    /// iSCSI.
    Iscsi,
    /// Fibre Channel, by FCP.
    Fc,
    /// Fibre Channel, by NVMe.
    NvmeFc,
}

impl ExportKind {
    /// The fabric whose connection it is.
    pub const fn fabric(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::NvmeTcp => "nvme",
            Self::Fuse | Self::Loop | Self::Ublk | Self::VhostUser => "local",
            Self::Iscsi => "iscsi",
            Self::Fc | Self::NvmeFc => "fc",
        }
    }

    /// What it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::NvmeTcp => "nvme-tcp",
            Self::Fuse => "fuse",
            Self::Loop => "loop",
            Self::Ublk => "ublk",
            Self::VhostUser => "vhost-user",
            Self::Iscsi => "iscsi",
            Self::Fc => "fc",
            Self::NvmeFc => "nvme-fc",
        }
    }
}

impl ExportHealth {
    /// What to do where it is not well, besides mending its problem.
    pub const ACTION: &str = "mend that, and see that it runs: systemctl status palisade-services";
}

impl ServiceState {
    /// What it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Starting => "starting",
            Self::Failed => "failed",
        }
    }
}

/// How something is that others than the daemon serve, or the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExportHealth {
    /// How.
    pub state: ServiceState,
    /// When it was asked last, in seconds since 1970; absent: not yet.
    pub checked: Option<u64>,
    /// What is wrong.
    pub problem: Option<String>,
}

/// How something is that others than the daemon serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceState {
    /// A client can use it.
    Ok,
    /// It is not known yet.
    Starting,
    /// No client can use it.
    Failed,
}

/// A volume as the unit of an iSCSI target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IscsiExport {
    /// The target's name.
    pub target: String,
    /// The unit's number (LUN).
    #[serde(rename = "lun")]
    pub unit: u8,
    /// Where it is served: `ADDR:PORT`.
    pub portals: Vec<String>,
    /// What initiators are told instead of these, in their order; empty if nothing else.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub advertise: Vec<String>,
    /// Names of the initiators that may have it.
    pub initiators: Vec<String>,
    /// The name by which they prove who they are (CHAP).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<String>,
    /// Who serves it; absent: that is not known yet.
    pub server: Option<IscsiServer>,
    /// Names of the initiators that have it now.
    pub sessions: Vec<String>,
}

/// A volume at a Fibre Channel port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FcExport {
    /// The port's worldwide name.
    pub port: String,
    /// Who may have it: by FCP, worldwide names of ports; by NVMe, qualified names of hosts.
    pub initiators: Vec<String>,
    /// By FCP, the unit's number (LUN).
    #[serde(rename = "lun", skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<u16>,
    /// By NVMe, the subsystem's qualified name; it has one namespace, number 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subsystem: Option<String>,
    /// By FCP, who has it now; by NVMe that is not known.
    pub sessions: Vec<String>,
}

/// A Fibre Channel port of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FcPort {
    /// Its worldwide name (WWPN).
    #[serde(rename = "wwpn")]
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// How it is, in the kernel's words.
    pub state: String,
    /// Its speed, in the kernel's words.
    pub speed: String,
}

/// A volume as a namespace of an NVMe subsystem.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NvmeExport {
    /// The subsystem's qualified name.
    pub subsystem: String,
    /// The namespace's number.
    pub nsid: u32,
    /// What identifies it for ever: 32 hexadecimal digits.
    pub nguid: String,
    /// The same, as a UUID: the volume's.
    pub uuid: String,
    /// Where it is served: `ADDR:PORT`.
    pub listeners: Vec<String>,
    /// What hosts are told instead of these, in their order; empty if nothing else.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub advertise: Vec<String>,
    /// Qualified names of the hosts that may have it.
    pub hosts: Vec<String>,
    /// Any host may.
    pub any_host: bool,
    /// Hosts that have it now. Exports that the same hosts find share the list.
    pub connections: Arc<[Connection]>,
}

/// A host that is connected to a namespace's subsystem.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Connection {
    /// The host's qualified name; empty if it gave none.
    pub host: String,
    /// Its controller's number.
    pub controller: u16,
    /// Its queues: connections of TCP, the admin queue's included.
    pub queues: usize,
    /// The host's address, as its admin queue came.
    #[serde(default)]
    pub address: String,
    /// The address of this machine that it came through.
    #[serde(default)]
    pub local_address: String,
}

/// A client that is connected over NBD.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Client {
    /// Its address; empty: it is a process of this machine, at a socket.
    pub address: String,
    /// The address of this machine that it came through.
    pub local_address: String,
}
