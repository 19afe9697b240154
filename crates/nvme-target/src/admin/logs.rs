//! Get Log Page.

use super::{ADMIN, Session};
use crate::limits::{ACCESS_GROUPS, NAMESPACES, RESETS};
use crate::{Transport, Volumes};
use io::Env;
use nvme::command::{Command, nvm};
use nvme::log::{self, Wanted, page};
use nvme::reset;
use nvme::status::Status;
use std::sync::atomic::Ordering;

/// Commands of namespaces.
const IO: [u8; 7] = [
    nvm::FLUSH,
    nvm::WRITE,
    nvm::READ,
    nvm::COMPARE,
    nvm::WRITE_ZEROES,
    nvm::DATASET_MANAGEMENT,
    nvm::VERIFY,
];

/// Pages of controllers with namespaces.
const PAGES: [u8; 8] = [
    page::SUPPORTED,
    page::ERRORS,
    page::HEALTH,
    page::FIRMWARE,
    page::CHANGED_NAMESPACES,
    page::EFFECTS,
    page::ANA,
    page::RESETS,
];
/// Pages of discovery controllers.
const DISCOVERY_PAGES: [u8; 2] = [page::SUPPORTED, page::DISCOVERY];

/// Bytes of the ANA page with as many groups and namespaces as there may be.
const ANA_BYTES: usize = 16 + 32 * ACCESS_GROUPS as usize + 4 * NAMESPACES as usize;

/// Bytes of the page of resets with as many as there may be.
const RESETS_BYTES: usize = 8 + 8 * RESETS;

/// Bit of the specific field of the ANA page: without numbers of namespaces.
const GROUPS_ONLY: u8 = 1;

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    pub(super) fn log_page(&self, command: &Command, into: &mut [u8]) -> Result<(), Status> {
        let wanted = Wanted::decode(command);
        let is_discovery = self.terms.controller.is_discovery();
        let pages = if is_discovery { &DISCOVERY_PAGES[..] } else { &PAGES[..] };
        if !pages.contains(&wanted.page) {
            return Err(Status::INVALID_LOG_PAGE);
        }
        match wanted.page {
            page::SUPPORTED => wanted.part(&log::supported(pages), into),
            page::ERRORS => wanted.part(&[0; 64], into),
            page::HEALTH => wanted.part(&self.health().encode(), into),
            page::FIRMWARE => {
                wanted.part(&log::firmware(&self.server.target.product.version), into)
            }
            page::EFFECTS => wanted.part(&log::effects(&ADMIN, &IO, &nvm::CHANGES), into),
            page::CHANGED_NAMESPACES => self.changed_namespaces(&wanted, into),
            page::ANA => {
                let (changes, mut groups) = self.server.target.groups(&self.terms.controller);
                if wanted.specific & GROUPS_ONLY != 0 {
                    groups.iter_mut().for_each(|group| group.namespaces.clear());
                }
                let mut page = log::ana(changes, &groups);
                // Hosts ask for as much as there could be.
                page.resize(page.len().max(ANA_BYTES), 0);
                wanted.part(&page, into)
            }
            page::RESETS => {
                let are_forgotten = wanted.specific & reset::REMOVE != 0;
                let mut page = reset::page(&self.terms.controller.resets(are_forgotten));
                page.resize(page.len().max(RESETS_BYTES), 0);
                wanted.part(&page, into)
            }
            _ => self.discovery(&wanted, into),
        }
    }

    fn changed_namespaces(&self, wanted: &Wanted, into: &mut [u8]) -> Result<(), Status> {
        let controller = &self.terms.controller;
        let changed = controller.changed_namespaces();
        let all = log::changed_namespaces(&changed);
        wanted.part(&all, into)?;
        if !wanted.retain && wanted.offset == 0 && log::is_all_changed(&all, into.len()) {
            controller.forget_changed(&changed);
        }
        Ok(())
    }

    fn discovery(&self, wanted: &Wanted, into: &mut [u8]) -> Result<(), Status> {
        let host = self.terms.controller.association.host.as_ref();
        let (generation, places) = self.server.target.discovery(host, &self.terms.local);
        wanted.part(&log::discovery(generation, &places), into)
    }

    /// Health of all arrays behind the host's namespaces, and what the host did.
    fn health(&self) -> log::Health {
        self.add_counts();
        let counts = &self.terms.controller.counts;
        let view = self.view.borrow();
        let volumes = &self.server.volumes;
        let arrays = view.all.iter().map(|seen| volumes.health(&seen.export.volume));
        let mut health = log::Health {
            read_bytes: counts.read_bytes.load(Ordering::Relaxed),
            written_bytes: counts.written_bytes.load(Ordering::Relaxed),
            reads: counts.reads.load(Ordering::Relaxed),
            writes: counts.writes.load(Ordering::Relaxed),
            ..log::Health::default()
        };
        for array in arrays {
            health.is_degraded |= array.is_degraded;
            health.media_errors += array.media_errors;
        }
        health
    }
}

const _: () = assert!(NAMESPACES <= 1024, "the page of changed namespaces has room for all");
