//! Shares of volumes' file systems: what `palisade services` is told of those that are recorded.
//! Who mounts and serves them is no part of the daemon ([`crate::services`]).

use format::{Access, Filesystem, ShareExport};
use services::wire::{Share, Shares};

/// What `palisade services` is to serve.
pub fn told(export: &ShareExport) -> Shares {
    let who = |all: &[Access]| all.iter().map(|own| (own.who.clone(), own.read_only)).collect();
    let share = |own: &format::Share| Share {
        name: own.name.clone(),
        smb: own.smb,
        nfs: own.nfs,
        read_only: own.read_only,
        users: who(&own.users),
        clients: who(&own.clients),
    };
    Shares {
        make: export.make.map(|make| {
            let kind = match make.kind {
                Filesystem::Xfs => "xfs",
                Filesystem::Ext4 => "ext4",
            };
            (kind.to_owned(), make.overwrite)
        }),
        smb: export.smb.clone(),
        nfs: export.nfs.clone(),
        shares: export.shares.iter().map(share).collect(),
    }
}
