//! Which network is between this machine and a block device that is no NVMe drive itself.
//!
//! Purpose: such a device that goes went with its path, and may be well. The kernel has no file
//! that tells it, but where a device is in its tree does:
//!
//! | Device | Known by |
//! |---|---|
//! | SCSI over Fibre Channel, FCoE | a remote port (`rport-5:0-1`) above, a host with `fc_host` |
//! | iSCSI, iSER | a session (`session1`) above it; the driver of its host tells the two apart |
//! | SRP | a host with `srp_host` |
//! | NBD, Ceph's RBD, RNBD | its name |
//! | the device mapper, md | what they are made of (`slaves`): one such way is enough |
//!
//! The names are those of `scsi_transport_fc.c`, `scsi_transport_iscsi.c` and
//! `scsi_transport_srp.c`, which every driver of such hosts uses.
//!
//! Invariants
//! - What is not known to be behind a network has none: it counts as plugged into this machine.
//! - An NBD device counts as remote though its server may be on this machine: the kernel does not
//!   tell, and waiting loses nothing that requests would not find.

use super::device::{self, Transport, number_behind};
use super::read::Dir;

/// How many devices may be made of each other: more has no kernel.
const DEPTH: usize = 8;

/// Devices that a network always is behind, by name.
const BY_NAME: [(&str, Transport); 3] =
    [("nbd", Transport::Tcp), ("rbd", Transport::Tcp), ("rnbd", Transport::Rdma)];

/// The network on a way to the whole drive in this directory, if there is one.
pub(super) fn network(drive: &Dir<'_>) -> Option<Transport> {
    network_within(drive, DEPTH)
}

fn network_within(drive: &Dir<'_>, depth: usize) -> Option<Transport> {
    let named = BY_NAME.iter().find(|(word, _)| number_behind(drive.name(), word).is_some());
    let own = || named.map(|(_, transport)| *transport);
    own().or_else(|| of_scsi(drive)).or_else(|| of_parts(drive, depth))
}

/// The network of a SCSI device, by what is above it as far as its host.
fn of_scsi(drive: &Dir<'_>) -> Option<Transport> {
    let device = drive
        .at("device")
        .filter(|device| device.linked("subsystem").as_deref() == Some("scsi"))?;
    let is_numbered = |dir: &Dir<'_>, word| number_behind(dir.name(), word).is_some();
    let above = || core::iter::successors(device.parent(), Dir::parent);
    let host = above().find(|dir| is_numbered(dir, "host"))?;
    let within = || above().take_while(|dir| dir.path() != host.path());
    if host.has("fc_host") || within().any(|dir| dir.name().starts_with("rport-")) {
        return Some(Transport::Fc);
    }
    if host.has("iscsi_host") || within().any(|dir| is_numbered(&dir, "session")) {
        let driver = host.text(&format!("scsi_host/{}/proc_name", host.name()));
        let is_iser = driver.is_some_and(|driver| driver.contains("iser"));
        return Some(if is_iser { Transport::Rdma } else { Transport::Tcp });
    }
    host.has("srp_host").then_some(Transport::Rdma)
}

/// The network of what the device is made of.
fn of_parts(drive: &Dir<'_>, depth: usize) -> Option<Transport> {
    let depth = depth.checked_sub(1)?;
    let parts = drive.at("slaves").map(|dir| dir.children()).unwrap_or_default();
    parts.iter().find_map(|(_, part)| {
        let (drive, _) = device::drive_of(part);
        let fabric = device::fabric(&drive);
        fabric.or_else(|| network_within(&drive, depth))
    })
}
