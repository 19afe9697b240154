//! Identify: what the controller and the host's namespaces are.
//!
//! What hosts do with it (Linux, drivers/nvme/host/core.c): NPWG becomes the least I/O that is
//! good, NOWS the best, NOIOB a border that requests are split at. So the first is our strip, the
//! others our stripe.

use super::{Session, VERSION};
use crate::controller::EVENTS;
use crate::limits::{
    ACCESS_GROUPS, CAPSULE_DATA, CONTROLLERS, ENTRIES_MOST, EVENT_REQUESTS, KEEP_ALIVE_UNITS,
    NAMESPACES, RESETS,
};
use crate::volume::{ALL, Seen};
use crate::{Transport, Volumes};
use io::{Blocks, Env};
use nvme::command::{COMMAND_BYTES, Command};
use nvme::identify::{self, BYTES, ControllerKind, cns, event, optional};
use nvme::nqn::Nqn;
use nvme::status::Status;
use units::BAND_BYTES;

/// The NVM command set (CSI).
const NVM: u8 = 0;

/// A number in blocks that a field of 16 bits has room for; else 0, which says nothing.
fn blocks(bytes: u64, block_bytes: u32) -> u16 {
    u16::try_from(bytes / u64::from(block_bytes)).unwrap_or(0)
}

/// A subsystem's serial number: of its name, so the same wherever it is served (FNV-1a, 64 bits).
pub fn serial(subsystem: &Nqn) -> String {
    let subsystem = subsystem.as_str();
    let hash = subsystem.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("PAL{hash:016X}")
}

/// A namespace as hosts see it.
fn namespace<K, V: Blocks>(seen: &Seen<K, V>) -> [u8; BYTES] {
    let Some(volume) = &seen.volume else { return [0; BYTES] };
    let block_bytes = volume.block_bytes();
    let (strip, stripe) = (volume.strip_bytes(), volume.stripe_bytes());
    let band = BAND_BYTES * u64::from(stripe / strip.max(1));
    let stripe_blocks = blocks(stripe.into(), block_bytes);
    identify::Namespace {
        blocks: volume.bytes() / u64::from(block_bytes),
        block_bytes,
        group: seen.export.group.number(),
        // Linux knows borders at powers of two only, and complains of others.
        boundary: if stripe_blocks.is_power_of_two() { stripe_blocks } else { 0 },
        write_unit: blocks(strip.into(), block_bytes),
        write_best: stripe_blocks,
        deallocate_unit: blocks(band, block_bytes),
        nguid: seen.export.nguid,
        read_only: false,
    }
    .encode()
}

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    pub(super) fn identify(&self, command: &Command, into: &mut [u8]) -> Result<(), Status> {
        let what = command.dword(10) as u8;
        let set = (command.dword(11) >> 24) as u8;
        let is_of_set = matches!(
            what,
            cns::NAMESPACE_OF_SET | cns::CONTROLLER_OF_SET | cns::ACTIVE_NAMESPACES_OF_SET
        );
        if is_of_set && set != NVM {
            return Err(Status::INVALID_FIELD);
        }
        if self.terms.controller.is_discovery() && what != cns::CONTROLLER {
            return Err(Status::INVALID_FIELD);
        }
        let answer = match what {
            cns::CONTROLLER => self.identify_controller(),
            cns::NAMESPACE | cns::ALLOCATED_NAMESPACE => self.identify_namespace(command)?,
            cns::ACTIVE_NAMESPACES | cns::ACTIVE_NAMESPACES_OF_SET | cns::ALLOCATED_NAMESPACES => {
                self.list_namespaces(command)?
            }
            cns::CONTROLLERS => self.list_controllers(command),
            cns::CONTROLLERS_OF_NAMESPACE => {
                self.find(command)?;
                self.list_controllers(command)
            }
            cns::COMMAND_SETS => identify::command_sets(),
            // It has no limits of its own.
            cns::CONTROLLER_OF_SET => [0; BYTES],
            _ => self.describe_namespace(what, command)?,
        };
        into.copy_from_slice(&answer);
        Ok(())
    }

    /// Checks that a namespace is there for the host.
    fn find(&self, command: &Command) -> Result<(), Status> {
        let found = self.view.borrow().get(command.namespace()).is_some();
        if found { Ok(()) } else { Err(Status::INVALID_NAMESPACE) }
    }

    fn describe_namespace(&self, what: u8, command: &Command) -> Result<[u8; BYTES], Status> {
        let view = self.view.borrow();
        let seen = view.get(command.namespace()).ok_or(Status::INVALID_NAMESPACE);
        match what {
            cns::NAMESPACE_DESCRIPTORS => {
                let export = &seen?.export;
                Ok(identify::descriptors(&export.nguid, &export.uuid))
            }
            cns::NAMESPACE_OF_SET => seen.map(|_| [0; BYTES]),
            cns::NAMESPACE_INDEPENDENT => {
                let told = |seen: &Seen<X::Key, X::Volume>| {
                    let has_none = |volume: &X::Volume| X::CACHES_STAY && !volume.volatile_cache();
                    identify::namespace_independent(
                        seen.export.group.number(),
                        seen.volume.is_some(),
                        seen.volume.as_ref().is_some_and(has_none),
                    )
                };
                seen.map(told)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn identify_namespace(&self, command: &Command) -> Result<[u8; BYTES], Status> {
        let nsid = command.namespace();
        if nsid == 0 || nsid > NAMESPACES {
            return Err(Status::INVALID_NAMESPACE);
        }
        // A number that no namespace has is answered with zeros (Base, section 5.17.2.1).
        Ok(self.view.borrow().get(nsid).map_or([0; BYTES], namespace))
    }

    fn list_namespaces(&self, command: &Command) -> Result<[u8; BYTES], Status> {
        let after = command.namespace();
        if after >= ALL - 1 {
            return Err(Status::INVALID_NAMESPACE);
        }
        let view = self.view.borrow();
        Ok(identify::namespace_list(view.all.iter().map(|seen| seen.export.nsid), after))
    }

    fn list_controllers(&self, command: &Command) -> [u8; BYTES] {
        let all = self.server.target.controllers(&self.terms.controller.association.subsystem);
        identify::controller_list(all.into_iter(), (command.dword(10) >> 16) as u16)
    }

    fn identify_controller(&self) -> [u8; BYTES] {
        let controller = &self.terms.controller;
        let subsystem = controller.association.subsystem.clone();
        let product = &self.server.target.product;
        let is_io = !controller.is_discovery();
        let commands = optional::COMPARE
            | optional::DATASET_MANAGEMENT
            | optional::WRITE_ZEROES
            // Nothing can be saved, which is what hosts are told that ask.
            | optional::SAVE_AND_SELECT
            | optional::VERIFY;
        let kind = controller.association.kind;
        let of_io = |number: u32| if kind == ControllerKind::Io { number } else { 0 };
        identify::Controller {
            kind,
            serial: serial(&subsystem),
            model: product.model.clone(),
            firmware: product.version.clone(),
            instance: controller.instance,
            resets_most: if product.resets { of_io(RESETS as u32) as u8 } else { 0 },
            quiesce_ms: of_io(product.quiesce_ms.into()) as u16,
            version: VERSION,
            transfer_shift: (self.data_most() / 4096).trailing_zeros() as u8,
            events: if is_io { EVENTS } else { event::DISCOVERY },
            event_requests: EVENT_REQUESTS as u8,
            keep_alive_units: KEEP_ALIVE_UNITS,
            commands_most: ENTRIES_MOST,
            namespaces: of_io(NAMESPACES),
            access_groups: of_io(ACCESS_GROUPS),
            optional: of_io(commands.into()) as u16,
            fused_compare: is_io && X::COMPARES_AND_WRITES,
            // A host reads this once, of all namespaces to come: that one has no cache may change
            // with the next export, or the next drive. A flush that is not needed costs nothing.
            write_cache: is_io,
            command_capsule: COMMAND_BYTES as u32 + of_io(CAPSULE_DATA),
            subsystem,
        }
        .encode()
    }
}

const _: () = assert!(CONTROLLERS < 0xfff0, "numbers from 0xfff0 on are reserved");
