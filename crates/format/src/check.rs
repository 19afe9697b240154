//! The rules of the format beyond the bytes: what every valid record keeps.

use crate::FormatError;
use crate::encode;
use crate::limits::{
    ADDRESS_MAX, AREA_BYTES, COUNTERS_END, EXPORTS_BYTES_MAX, EXPORTS_MAX, EXTENTS_MAX, HOSTS_MAX,
    IQN_MAX, JOURNAL_BYTES_MAX, LISTENERS_MAX, NAME_MAX, NAMESPACES_MAX, NQN_MAX, NVME_EXPORT_MAX,
    REGIONS_MAX, SECRETS_END, SERIAL_MAX, SHARE_NAME_MAX, SHARES_MAX, UNITS_MAX, USER_MAX,
    VOLUMES_MAX,
};
use crate::record::{
    Access, ArrayRecord, ExportAddress, Extent, FcExport, IscsiExport, Listener, NvmeExport,
    NvmeFcExport, ShareExport, SlotState,
};
use crate::region::{Geometry, SHIFT_MAX};
use layout::{CodeKind, Layout};
use std::collections::BTreeSet;
use units::{GroupNo, MIB, Slot, Uuid, Wwpn};

type Rule = Result<(), FormatError>;

fn rule(holds: bool, otherwise: &'static str) -> Rule {
    if holds { Ok(()) } else { Err(FormatError::Invalid(otherwise)) }
}

/// Checks all rules of `docs/format.md`, section "The array record".
pub fn check(record: &ArrayRecord) -> Rule {
    rule(record.array != Uuid::NIL, "the array has no UUID")?;
    rule(name_fits(&record.name), "the array's name is not possible")?;
    rule((1..COUNTERS_END).contains(&record.epoch.counter), "its epoch is impossible")?;
    rule(record.sequence < COUNTERS_END, "its sequence number is impossible")?;
    rule(matches!(record.block_bytes, 512 | 4096), "its block is neither 512 nor 4096 bytes")?;
    let aligned = record.data_offset != 0 && record.data_offset.is_multiple_of(MIB);
    rule(aligned && record.data_offset < 1 << 60, "its data area begins at an impossible place")?;
    let layout = record.layout()?;
    areas(record, &layout)?;
    slots(record, &layout)?;
    rule(record.groups.len() == usize::from(layout.groups()), "its groups do not fit its ranges")?;
    for (number, group) in (0u16..).zip(&record.groups) {
        let guard = !group.guarded || record.journal_key != 0;
        rule(guard, "a group is guarded without a journal")?;
        let parity = layout.descriptor(GroupNo(number)).code == CodeKind::Parity;
        let journaled = number == 0 && parity;
        rule(!group.guarded || journaled, "a group is guarded that has no journal")?;
    }
    let redundant = |slot| layout.groups_of(slot).filter(|g| layout.m(*g) > 0).count();
    let once = (0..layout.drives()).all(|slot| redundant(Slot(slot)) <= 1);
    rule(once, "a slot is in more than one group with redundancy")?;
    volumes(record, &layout)?;
    exports(record)?;
    crate::more::check(record, &layout)
}

/// The areas before the data area, one behind the other, and the map as large as it need be.
fn areas(record: &ArrayRecord, layout: &Layout) -> Rule {
    let areas = &record.areas;
    let whole = [areas.map_start, areas.map_bytes, areas.journal_start, areas.journal_bytes];
    let whole =
        whole.iter().all(|v| *v != 0 && v.is_multiple_of(MIB) && v / MIB <= u64::from(u32::MAX));
    let ordered = areas.map_start >= AREA_BYTES
        && areas.map_start + areas.map_bytes <= areas.journal_start
        && areas.journal_start + areas.journal_bytes <= record.data_offset;
    rule(whole && ordered, "its region map or journal lies at an impossible place")?;
    let short = areas.journal_bytes <= JOURNAL_BYTES_MAX;
    rule(short, "its journal area is larger than any may be")?;
    rule(areas.shift <= SHIFT_MAX, "its regions are of an impossible size")?;
    let map = Geometry::new(layout, areas.shift);
    let groups = (0..layout.groups()).map(GroupNo);
    let few = groups.clone().all(|group| map.regions(group) <= REGIONS_MAX);
    let fits = map.bytes() <= areas.map_bytes;
    rule(few && fits, "its region map area is too small, or has too many regions")
}

fn name_fits(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && text_fits(name) && !name.contains('/')
}

fn text_fits(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

fn slots(record: &ArrayRecord, layout: &Layout) -> Rule {
    rule(record.slots.len() == usize::from(layout.drives()), "its slots do not fit its ranges")?;
    let strips = layout.data_bytes() / u64::from(layout.strip_bytes());
    let mut drives = BTreeSet::new();
    for slot in &record.slots {
        let known = slot.drive != Uuid::NIL && drives.insert(slot.drive);
        rule(known, "a slot has no drive of its own")?;
        let serial = slot.serial.len() <= SERIAL_MAX && text_fits(&slot.serial);
        rule(serial, "a serial number is not possible")?;
        let inside = !matches!(slot.state, SlotState::Rebuilding { border } if border > strips);
        rule(inside, "a rebuild border lies outside the data area")?;
        // An older epoch: the slot failed, or its drive was left behind.
        let older = (1..record.epoch.counter).contains(&slot.last.counter);
        // A drive that is to be filled gives itself up in a record that only it has.
        let counts = slot.state != SlotState::Failed || slot.drive == record.this_drive;
        let current = counts && slot.last == record.epoch.mark();
        let in_step = older || current;
        rule(in_step, "the last epoch of a slot does not fit the record's")?;
        let out = slot.state != SlotState::InSync;
        let since = slot.since == 0 || out && slot.since <= slot.last.counter;
        rule(since, "a slot is whole up to an impossible epoch")?;
    }
    let this = record.slots.get(record.this_slot.index());
    rule(this.is_some_and(|s| s.drive == record.this_drive), "it is not of the drive it names")
}

fn volumes(record: &ArrayRecord, layout: &Layout) -> Rule {
    rule(record.volumes.len() <= VOLUMES_MAX, "there are too many volumes")?;
    let mut names = BTreeSet::new();
    let mut uuids = BTreeSet::new();
    let mut extents: Vec<Extent> = Vec::new();
    for volume in &record.volumes {
        rule(name_fits(&volume.name), "the name of a volume is not possible")?;
        let own = names.insert(&volume.name) && uuids.insert(volume.uuid);
        rule(own && volume.uuid != Uuid::NIL, "two volumes have one name or UUID")?;
        extents.extend(&volume.extents);
        rule(extents.len() <= EXTENTS_MAX, "there are too many extents")?;
        let space = volume.extents.iter().try_fold(0u64, |sum, e| sum.checked_add(e.bytes));
        let block = u64::from(record.block_bytes);
        let size = volume.bytes != 0 && volume.bytes.is_multiple_of(block);
        let fits = space.is_some_and(|space| volume.bytes <= space);
        rule(size && fits, "the size of a volume does not fit its extents")?;
    }
    extents.sort_by_key(|extent| extent.array_start);
    let mut end = 0;
    for extent in extents {
        rule(extent.array_start >= end, "two extents share array addresses")?;
        end = extent_end(layout, extent)?;
    }
    Ok(())
}

/// The end of an extent, which is made of whole rows within the array.
fn extent_end(layout: &Layout, extent: Extent) -> Result<u64, FormatError> {
    let end = extent.array_start.checked_add(extent.bytes);
    let end = end.filter(|end| *end <= layout.array_bytes() && extent.bytes != 0);
    let end = end.ok_or(FormatError::Invalid("an extent lies outside the array"))?;
    let whole = |address: u64, inside: u64| {
        let row = layout.row_bytes(inside);
        let range = layout.ranges().iter().rfind(|range| range.array_start <= inside);
        range.is_some_and(|range| (address - range.array_start).is_multiple_of(row))
    };
    let rows = whole(extent.array_start, extent.array_start) && whole(end, end - 1);
    rule(rows, "an extent is not made of whole rows")?;
    Ok(end)
}

fn exports(record: &ArrayRecord) -> Rule {
    rule(record.exports.len() <= EXPORTS_MAX, "there are too many exports")?;
    let (mut ids, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
    let (mut targets, mut names) = (BTreeSet::new(), BTreeSet::new());
    let [mut by_fcp, mut by_nvme] = [(); 2].map(|()| BTreeSet::new());
    let mut units = BTreeSet::new();
    for export in &record.exports {
        rule(ids.insert(export.id), "two exports have one id")?;
        let known = record.volumes.iter().any(|volume| volume.uuid == export.volume);
        rule(known, "an export serves no volume of the array")?;
        match &export.address {
            ExportAddress::NbdTcp(address) | ExportAddress::NbdUnix(address) => {
                rule(address_fits(address), "the address of an export is not possible")?;
            }
            ExportAddress::Device | ExportAddress::Ublk => {}
            ExportAddress::File(path) | ExportAddress::VhostUser(path) => {
                let fits = address_fits(path) && path.starts_with('/');
                rule(fits, "the path of an export is not possible")?;
            }
            ExportAddress::NvmeTcp(nvme) => {
                nvme_export(nvme)?;
                let is_new = namespaces.insert((&nvme.subsystem, nvme.nsid));
                rule(is_new, "two exports are one namespace")?;
            }
            ExportAddress::Iscsi(iscsi) => {
                iscsi_export(iscsi)?;
                rule(targets.insert(export.volume), "two exports are one target")?;
            }
            ExportAddress::Fc(fc) => {
                fc_export(fc)?;
                rule(by_fcp.insert(export.volume), "two exports are one unit")?;
                rule(units.insert((fc.port, fc.unit)), "two units of a port have one number")?;
            }
            ExportAddress::NvmeFc(fc) => {
                nvme_fc_export(fc)?;
                rule(by_nvme.insert(export.volume), "two exports are one subsystem")?;
            }
            ExportAddress::Shares(shares) => {
                share_export(shares)?;
                let of_volume = record.exports.iter().filter(|own| own.volume == export.volume);
                rule(of_volume.count() == 1, "a volume is shared and exported, too")?;
                let mut all = shares.shares.iter().map(|share| &share.name);
                rule(all.all(|name| names.insert(name)), "two shares have one name")?;
            }
        }
    }
    let all: usize = record.exports.iter().map(encode::export_bytes).sum();
    rule(all <= EXPORTS_BYTES_MAX, "the exports say more than a record has room for")
}

fn address_fits(address: &str) -> bool {
    (1..=ADDRESS_MAX).contains(&address.len()) && text_fits(address)
}

fn nvme_export(export: &NvmeExport) -> Rule {
    let name_fits = |name: &String| (1..=NQN_MAX).contains(&name.len()) && text_fits(name);
    rule(name_fits(&export.subsystem), "the name of a subsystem is not possible")?;
    rule((1..=NAMESPACES_MAX).contains(&export.nsid), "a namespace number is not possible")?;
    listeners(&export.listeners)?;
    if let Some(hosts) = &export.hosts {
        rule((1..=HOSTS_MAX).contains(&hosts.len()), "an export names no or too many hosts")?;
        rule(hosts.iter().all(name_fits), "the name of a host is not possible")?;
    }
    rule(encode::nvme_bytes(export) <= NVME_EXPORT_MAX, "an export says too much")
}

fn listeners(listeners: &[Listener]) -> Rule {
    rule((1..=LISTENERS_MAX).contains(&listeners.len()), "an export has no or too many listeners")?;
    let fits = listeners.iter().all(|listener| {
        address_fits(&listener.address)
            && listener.advertise.as_ref().is_none_or(|a| address_fits(a))
    });
    rule(fits, "the address of an export is not possible")
}

fn share_export(export: &ShareExport) -> Rule {
    let addresses = [&export.smb, &export.nfs].into_iter().all(|own| address_fits(own));
    rule(addresses, "the address of an export is not possible")?;
    let count = export.shares.len();
    rule((1..=SHARES_MAX).contains(&count), "an export names no or too many shares")?;
    for share in &export.shares {
        let fits = (1..=SHARE_NAME_MAX).contains(&share.name.len()) && text_fits(&share.name);
        rule(fits, "the name of a share is not possible")?;
        rule(share.smb || share.nfs, "a share is by no protocol")?;
        for all in [&share.users, &share.clients] {
            rule(all.len() <= HOSTS_MAX, "a share names too many clients")?;
            let fits =
                |own: &Access| (1..=USER_MAX).contains(&own.who.len()) && text_fits(&own.who);
            rule(all.iter().all(fits), "the name of a client is not possible")?;
        }
    }
    rule(encode::shares_bytes(export) <= NVME_EXPORT_MAX, "an export says too much")
}

fn fc_export(export: &FcExport) -> Rule {
    rule((1..=UNITS_MAX).contains(&export.unit), "the number of a unit is not possible")?;
    let initiators = &export.initiators;
    rule((1..=HOSTS_MAX).contains(&initiators.len()), "an export names no or too many hosts")?;
    let mut all = initiators.iter().chain([&export.port]);
    rule(all.all(|name| *name != Wwpn([0; 8])), "the name of a port is not possible")
}

fn nvme_fc_export(export: &NvmeFcExport) -> Rule {
    rule(export.port != Wwpn([0; 8]), "the name of a port is not possible")?;
    let hosts = &export.hosts;
    rule((1..=HOSTS_MAX).contains(&hosts.len()), "an export names no or too many hosts")?;
    let name_fits = |name: &String| (1..=NQN_MAX).contains(&name.len()) && text_fits(name);
    rule(hosts.iter().all(name_fits), "the name of a host is not possible")?;
    rule(encode::nvme_fc_bytes(export) <= NVME_EXPORT_MAX, "an export says too much")
}

fn iscsi_export(export: &IscsiExport) -> Rule {
    listeners(&export.portals)?;
    let user_fits = |user: &String| (1..=USER_MAX).contains(&user.len()) && text_fits(user);
    rule(export.user.as_ref().is_none_or(user_fits), "the user of an export is not possible")?;
    rule(export.secret < SECRETS_END, "the number of a secret is not possible")?;
    let initiators = &export.initiators;
    rule((1..=HOSTS_MAX).contains(&initiators.len()), "an export names no or too many hosts")?;
    let name_fits = |name: &String| (1..=IQN_MAX).contains(&name.len()) && text_fits(name);
    rule(initiators.iter().all(name_fits), "the name of a host is not possible")?;
    rule(encode::iscsi_bytes(export) <= NVME_EXPORT_MAX, "an export says too much")
}
