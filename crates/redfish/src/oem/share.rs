//! What file systems and shares have beside what Redfish says of them.

use super::{Extension, Link, Protocol, ServiceHealth};
use crate::service::uri;
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a file system has beside what Redfish says of it: it is that of a volume, of which clients
/// have shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct FileSystem {
    /// The name of its volume's array.
    pub array: String,
    /// The identity of that array.
    #[serde(rename = "ArrayUUID")]
    pub array_uuid: String,
    /// Its volume; absent while that is not known, as the array does not run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub volume: Option<Link>,
    /// Which file system it is: `xfs` or `ext4`; absent: that is not known yet.
    #[serde(rename = "Type", skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<String>,
    /// Whether it is mounted.
    pub mounted: bool,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// Where SMB is to be reached: `ADDR:PORT`.
    pub smb_listen: String,
    /// Where NFS is to be reached: `ADDR:PORT`.
    pub nfs_listen: String,
    /// Who can have its shares by SMB.
    #[serde(default)]
    pub users: Vec<ShareUser>,
    /// How it is.
    pub health: ServiceHealth,
}

impl Extension for FileSystem {
    const OF: &'static str = "FileSystem";
}

/// A user of a file system's shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ShareUser {
    /// The name.
    pub user_name: String,
    /// The number by which the user owns files.
    #[serde(rename = "UID")]
    pub uid: u32,
}

/// What a share has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct FileShare {
    /// Whether nobody may write.
    pub read_only: bool,
    /// Whether it is shared by SMB.
    pub smb: bool,
    /// Whether it is shared by NFS.
    pub nfs: bool,
    /// Users that may have it by SMB, `NAME` or `NAME:ro`; none: all users of the file system.
    #[serde(default)]
    pub smb_users: Vec<String>,
    /// Clients that may have it by NFS: `ADDRESS/BITS`, with `:ro` behind it only to read.
    #[serde(default)]
    pub nfs_clients: Vec<String>,
    /// How it is by each protocol.
    pub protocols: Vec<ShareProtocol>,
}

impl Extension for FileShare {
    const OF: &'static str = "FileShare";
}

/// How a share is by one protocol.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ShareProtocol {
    /// Which.
    pub protocol: Protocol,
    /// Who serves it.
    pub server: String,
    /// Which version of that; absent: that is not known yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// How clients name it.
    pub url: String,
    /// Addresses of clients that have a connection to the server.
    #[serde(default)]
    pub clients: Vec<String>,
    /// How it is, asked as a client asks.
    pub health: ServiceHealth,
}

impl FileSystem {
    /// A file system of an array's volume.
    pub fn new(array: &view::Array, own: &view::FileSystem) -> Self {
        let mut volumes = array.volumes.iter();
        let volume = volumes.find(|volume| volume.uuid == own.volume_uuid);
        Self {
            array: own.array.clone(),
            array_uuid: array.uuid.clone(),
            volume: volume.map(|volume| Link { id: uri::volume(&volume.uuid) }),
            kind: own.kind.clone(),
            mounted: own.mounted,
            read_only: own.read_only,
            smb_listen: own.smb_listen.clone(),
            nfs_listen: own.nfs_listen.clone(),
            users: own.users.iter().cloned().map(ShareUser::from).collect(),
            health: own.health.clone().into(),
        }
    }
}

impl From<view::ShareUser> for ShareUser {
    fn from(view::ShareUser { name, uid }: view::ShareUser) -> Self {
        Self { user_name: name, uid }
    }
}

impl From<ShareUser> for view::ShareUser {
    fn from(ShareUser { user_name, uid }: ShareUser) -> Self {
        Self { name: user_name, uid }
    }
}

impl From<&view::Share> for FileShare {
    fn from(own: &view::Share) -> Self {
        Self {
            read_only: own.read_only,
            smb: own.is_by(view::Protocol::Smb),
            nfs: own.is_by(view::Protocol::Nfs),
            smb_users: own.smb_users.clone(),
            nfs_clients: own.nfs_clients.clone(),
            protocols: own.protocols.iter().cloned().map(ShareProtocol::from).collect(),
        }
    }
}

impl From<view::ShareProtocol> for ShareProtocol {
    fn from(own: view::ShareProtocol) -> Self {
        let view::ShareProtocol { protocol, server, version, url, clients, health } = own;
        let (protocol, health) = (protocol.into(), health.into());
        Self { protocol, server, version, url, clients, health }
    }
}

impl From<ShareProtocol> for view::ShareProtocol {
    fn from(own: ShareProtocol) -> Self {
        let ShareProtocol { protocol, server, version, url, clients, health } = own;
        let (protocol, health) = (protocol.into(), health.into());
        Self { protocol, server, version, url, clients, health }
    }
}
