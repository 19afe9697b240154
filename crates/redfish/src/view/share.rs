//! File systems of volumes, and shares of them; what requests say of them.

use crate::access::Secret;
use crate::view::ExportHealth;
use serde::{Deserialize, Serialize};

/// A volume's file system, of which clients have shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileSystem {
    /// The array.
    pub array: String,
    /// The volume's name in the array.
    pub volume: String,
    /// The volume's UUID, which names the file system, too.
    pub volume_uuid: String,
    /// Which it is: `xfs` or `ext4`; absent: not known yet.
    pub kind: Option<String>,
    /// Whether it is mounted.
    pub mounted: bool,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// Its bytes.
    pub size_bytes: Option<u64>,
    /// Those of them that are used.
    pub used_bytes: Option<u64>,
    /// Where SMB is to be reached: `ADDR:PORT`.
    pub smb_listen: String,
    /// Where NFS is to be reached: `ADDR:PORT`.
    pub nfs_listen: String,
    /// Its users by SMB.
    pub users: Vec<ShareUser>,
    /// How it is.
    pub health: ExportHealth,
    /// The shares, in the order of their names.
    pub shares: Vec<Share>,
}

impl FileSystem {
    /// The share of this name.
    pub fn share(&self, name: &str) -> Option<&Share> {
        self.shares.iter().find(|share| share.name == name)
    }
}

/// A user of a file system's shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShareUser {
    /// The name.
    pub name: String,
    /// Whose files are its.
    pub uid: u32,
}

/// A share of a file system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Share {
    /// The name.
    pub name: String,
    /// Whether nobody may write.
    pub read_only: bool,
    /// Users that may have it by SMB, `NAME` or `NAME:ro`; none: all users.
    pub smb_users: Vec<String>,
    /// Clients that may have it by NFS, `CIDR` or `CIDR:ro`.
    pub nfs_clients: Vec<String>,
    /// By what it is served: at least one.
    pub protocols: Vec<ShareProtocol>,
}

impl Share {
    /// Whether it is served by this.
    pub fn is_by(&self, protocol: Protocol) -> bool {
        self.protocols.iter().any(|own| own.protocol == protocol)
    }
}

/// How a share is by one protocol.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShareProtocol {
    /// Which.
    pub protocol: Protocol,
    /// Who serves it.
    pub server: String,
    /// Which version of that; absent: not known yet.
    pub version: Option<String>,
    /// How clients name it.
    pub url: String,
    /// Addresses of clients that have a connection to the server.
    pub clients: Vec<String>,
    /// How it is, asked as a client asks.
    pub health: ExportHealth,
}

/// By what a share is served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// SMB.
    Smb,
    /// NFS.
    Nfs,
}

impl Protocol {
    /// What it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Smb => "smb",
            Self::Nfs => "nfs",
        }
    }
}

/// A file system that is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
}

impl Format {
    /// What it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Ext4 => "ext4",
        }
    }
}

/// A request to share a volume's file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateShare {
    /// The array.
    pub array: String,
    /// The volume's UUID.
    pub volume: String,
    /// What the share is to be called.
    pub name: String,
    /// The file system is to be made.
    pub format: Option<Format>,
    /// Whatever the volume holds may go.
    pub overwrite: bool,
    /// By SMB.
    pub smb: bool,
    /// By NFS.
    pub nfs: bool,
    /// Nobody may write.
    pub read_only: bool,
    /// Users that may have it by SMB, `NAME` or `NAME:ro`.
    pub smb_users: Vec<String>,
    /// Clients that may have it by NFS, `CIDR` or `CIDR:ro`.
    pub nfs_clients: Vec<String>,
    /// Where SMB is to be reached: `ADDR:PORT`.
    pub smb_listen: Option<String>,
    /// Where NFS is to be reached: `ADDR:PORT`.
    pub nfs_listen: Option<String>,
}

/// A request to change a share; what is absent stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetShare {
    /// The array.
    pub array: String,
    /// The volume's UUID.
    pub volume: String,
    /// What the share is called.
    pub name: String,
    /// By SMB.
    pub smb: Option<bool>,
    /// By NFS.
    pub nfs: Option<bool>,
    /// Nobody may write.
    pub read_only: Option<bool>,
    /// Users that may have it by SMB, in place of those who could; none: all users.
    pub smb_users: Option<Vec<String>>,
    /// Clients that may have it by NFS, in place of those that could.
    pub nfs_clients: Option<Vec<String>>,
    /// Where SMB is to be reached, of all shares of the file system.
    pub smb_listen: Option<String>,
    /// Where NFS is to be reached, of all shares of the file system.
    pub nfs_listen: Option<String>,
}

/// A request to change a user of a file system's shares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetShareUser {
    /// The array.
    pub array: String,
    /// The volume's UUID.
    pub volume: String,
    /// The user's name.
    pub name: String,
    /// What is to be done.
    pub change: UserChange,
}

/// What is to be done of a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UserChange {
    /// It comes, with a password.
    Add(Secret),
    /// It has another password.
    Password(Secret),
    /// It goes; its files stay.
    Delete,
}
