//! iSCSI targets over volumes' files: those of tgt's `tgtd`, as `palisade services` runs it.
//!
//! Invariant: no `tgtd` of these is left when [`Targets`] is dropped.

use super::files::Mounted;
use crate::error::BenchError;
use crate::fio_load;
use iscsi::{Identity, Name};
use services::targets::Target;
use services::tgt::Instance;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use tempfile::TempDir;
use units::Uuid;

/// Who asks.
pub const INITIATOR: &str = "iqn.2026-11.internal.palisade:bench";

/// Why there is no target; the text names the package of a program that is missing.
pub fn not_served(error: io::Error) -> BenchError {
    BenchError::Process(format!("a volume could not be served over iSCSI: {error}"))
}

/// Targets that are served.
pub struct Targets {
    /// Where.
    pub portal: SocketAddr,
    /// What each volume's is called.
    pub names: Vec<Name>,
    /// Whom they let in.
    pub initiator: Name,
    block_bytes: u32,
    folder: TempDir,
}

impl Drop for Targets {
    fn drop(&mut self) {
        if let Err(error) = Instance::sweep(self.folder.path(), &[]) {
            eprintln!("palisade: {error}");
        }
    }
}

/// A port of this machine that nobody has.
fn portal() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

impl Targets {
    /// Serves mounted volumes of such blocks, a target each, at one portal.
    ///
    /// # Errors
    /// When there is no `tgtd`, or it refuses.
    pub fn serve(
        volumes: &[Uuid],
        block_bytes: u32,
        mounted: &Mounted,
    ) -> Result<Self, BenchError> {
        let initiator = Name::new(INITIATOR).expect("a possible name");
        let portal = portal().map_err(not_served)?;
        let identities: Vec<Identity> = volumes.iter().map(|own| Identity::of(*own)).collect();
        let names: Vec<Name> = identities.iter().map(|own| own.target.clone()).collect();
        let folder = fio_load::temporary()?;
        let own = Self { portal, names, initiator, block_bytes, folder };
        let instance = Instance::of(own.folder.path(), &[portal]).with(own.names.clone());
        for (identity, path) in identities.into_iter().zip(&mounted.paths) {
            instance.serve(&own.target(identity, path)).map_err(not_served)?;
        }
        Ok(own)
    }

    fn target(&self, identity: Identity, path: &Path) -> Target {
        Target {
            portals: vec![self.portal],
            initiators: Vec::new(),
            asker: self.initiator.clone(),
            account: None,
            asker_account: None,
            path: path.to_owned(),
            block_bytes: self.block_bytes,
            identity,
        }
    }
}
