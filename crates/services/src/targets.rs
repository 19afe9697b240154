//! iSCSI targets that are to be there, whoever serves them: [`crate::tgt`] where the kernel can't.
//!
//! A target is one export: it has one unit, a volume, and lets in only whom the export names, and
//! who asks here how it is.

use ::iscsi::{Account, Identity, Name};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The number of a target's unit. Some servers have something of their own at 0.
pub const UNIT: u8 = 1;

/// A target that is to be there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// What it is called.
    pub name: Name,
    /// Where it is to be reached.
    pub portals: Vec<SocketAddr>,
    /// Who may log in.
    pub initiators: Vec<Name>,
    /// Who asks how it is.
    pub asker: Name,
    /// By what initiators prove who they are.
    pub account: Option<Account>,
    /// By what who asks does, where initiators have to: whoever pretends to be the target learns
    /// nothing of theirs.
    pub asker_account: Option<Account>,
    /// The volume's device or file.
    pub path: PathBuf,
    /// Its smallest unit.
    pub block_bytes: u32,
    /// What hosts know it by.
    pub identity: Identity,
}

impl Target {
    /// All that may log in.
    pub fn allowed(&self) -> impl Iterator<Item = &Name> {
        self.initiators.iter().chain([&self.asker])
    }

    /// All by which that is proved.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.account.iter().chain(self.account.as_ref().and(self.asker_account.as_ref()))
    }
}
