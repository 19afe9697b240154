//! The way back of file systems and their shares.

use super::{all, number, text};
use crate::oem;
use crate::view::{Error, FileSystem, Share};
use serde_json::Value;

/// A file system, of its resource with its shares in the place of `ExportedShares`; before it the
/// UUID of its array.
pub fn filesystem(resource: &Value) -> Result<(String, FileSystem), Error> {
    let own: oem::FileSystem = oem::of(resource)?;
    let shares = resource.get("ExportedShares").unwrap_or(&Value::Null);
    let read = FileSystem {
        array: own.array,
        volume: text(resource, "/Name")?,
        volume_uuid: text(resource, "/Id")?,
        kind: own.kind,
        mounted: own.mounted,
        read_only: own.read_only,
        size_bytes: number(resource, "/Capacity/Data/AllocatedBytes").ok(),
        used_bytes: number(resource, "/Capacity/Data/ConsumedBytes").ok(),
        smb_listen: own.smb_listen,
        nfs_listen: own.nfs_listen,
        users: own.users.into_iter().map(Into::into).collect(),
        health: own.health.into(),
        shares: all(shares, share)?,
    };
    Ok((own.array_uuid, read))
}

/// A share, of its resource.
pub fn share(resource: &Value) -> Result<Share, Error> {
    let own: oem::FileShare = oem::of(resource)?;
    Ok(Share {
        name: text(resource, "/Name")?,
        read_only: own.read_only,
        smb_users: own.smb_users,
        nfs_clients: own.nfs_clients,
        protocols: own.protocols.into_iter().map(Into::into).collect(),
    })
}
