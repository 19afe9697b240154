//! From a record to the bytes of a record slot.

use crate::codec::{Writer, crc32c};
use crate::limits::{
    EXPORT_ENTRY_BYTES, FC_EXPORT_BYTES, FIXED_BYTES, FORMAT_VERSION, HEADER_BYTES, IMAGE_ALIGN,
    MAGIC, NVME_EXPORT_BYTES, SHARE_BYTES,
};
use crate::more;
use crate::record::{
    Access, Areas, ArrayRecord, ExportAddress, ExportRecord, FcExport, Filesystem, IscsiExport,
    IscsiServer, Listener, NvmeExport, NvmeFcExport, Share, ShareExport, SlotRecord, SlotState,
    VolumeRecord,
};
use layout::{CodeKind, Level, Range, Rotation};
use units::{MIB, Uuid};

/// Where the fixed part has the journal key.
pub const JOURNAL_KEY_AT: usize = 184;
/// State bit: creation finished.
pub const STATE_ZEROED: u8 = 1;
/// State bit: started degraded.
pub const STATE_STARTED_DEGRADED: u8 = 2;
/// State bit: the last scrub is there.
pub const STATE_SCRUBBED: u8 = 4;
/// State bit: the owner is there.
pub const STATE_OWNED: u8 = 8;

/// The bytes of a record slot: header, record, zeros up to a multiple of 4096. Panics when the
/// record breaks a rule of the format ([`ArrayRecord::check`]) or must not be written.
pub fn encode(record: &ArrayRecord) -> Vec<u8> {
    if let Err(problem) = record.check() {
        panic!("a record of ours is wrong: {problem}");
    }
    assert!(!record.read_only, "a record that this release may only read is never written");
    let body = body(record);
    let mut image = Writer::default();
    image.0.extend(MAGIC);
    image.u32(FORMAT_VERSION);
    image.u32(HEADER_BYTES as u32);
    let (compat, incompat) = more::flags(record);
    image.u32(compat);
    image.zeros(4);
    image.u32(incompat);
    image.u32(u32::try_from(body.len()).expect("limits.rs bounds a record"));
    image.u64(record.sequence);
    image.u32(crc32c(&body));
    image.zeros(HEADER_BYTES - 4 - image.0.len());
    image.u32(crc32c(&image.0));
    image.0.extend(body);
    let bytes = image.0.len().next_multiple_of(IMAGE_ALIGN);
    image.0.resize(bytes, 0);
    image.0
}

fn body(record: &ArrayRecord) -> Vec<u8> {
    let mut out = Writer::default();
    fixed(&mut out, record);
    out.text(&record.name);
    record.ranges.iter().for_each(|r| range(&mut out, r));
    record.slots.iter().for_each(|s| slot(&mut out, s));
    for group in &record.groups {
        out.u8(group.unclean.into());
        out.u8(group.loss_accepted.into());
        out.u8(group.guarded.into());
        out.zeros(5);
    }
    record.volumes.iter().for_each(|v| volume(&mut out, v));
    record.exports.iter().for_each(|e| export(&mut out, e));
    more::encode(&mut out, record);
    out.0
}

fn fixed(out: &mut Writer, record: &ArrayRecord) {
    out.uuid(record.array);
    out.uuid(record.this_drive);
    out.u16(record.this_slot.0);
    out.u8(level(record.level));
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    out.u8(bit(record.zeroed, STATE_ZEROED)
        | bit(record.started_degraded, STATE_STARTED_DEGRADED)
        | bit(record.last_scrub.is_some(), STATE_SCRUBBED)
        | bit(record.owner.is_some(), STATE_OWNED));
    out.u32(record.block_bytes);
    out.u64(record.data_offset);
    out.u64(record.data_bytes);
    out.u64(record.epoch.counter);
    out.u64(record.epoch.id);
    out.u64(record.epoch.previous);
    out.u64(record.heartbeat);
    out.uuid(record.owner.map_or(Uuid::NIL, |owner| owner.host));
    out.uuid(record.owner.map_or(Uuid::NIL, |owner| owner.boot));
    let scrub = record.last_scrub;
    out.u64(scrub.map_or(0, |s| s.checked_bytes));
    out.u64(scrub.map_or(0, |s| s.mismatches));
    out.u64(scrub.map_or(0, |s| s.repaired));
    out.u64(scrub.map_or(0, |s| s.unix_seconds));
    out.count(record.ranges.len());
    out.count(record.slots.len());
    out.count(record.groups.len());
    out.count(record.volumes.len());
    out.count(record.exports.len());
    out.count(record.name.len());
    areas(out, &record.areas);
    out.zeros(JOURNAL_KEY_AT - out.0.len());
    out.u64(record.journal_key);
    out.zeros(FIXED_BYTES - out.0.len());
}

fn areas(out: &mut Writer, areas: &Areas) {
    let mib = |bytes: u64| u32::try_from(bytes / MIB).expect("checked before encoding");
    out.u32(mib(areas.map_start));
    out.u32(mib(areas.map_bytes));
    out.u32(mib(areas.journal_start));
    out.u32(mib(areas.journal_bytes));
    out.u8(areas.shift);
}

fn level(level: Level) -> u8 {
    match level {
        Level::Raid0 => 0,
        Level::Raid1 => 1,
        Level::Raid5 => 5,
        Level::Raid6 => 6,
        Level::Raid10 => 10,
        Level::Jbod => 255,
    }
}

pub(crate) fn range(out: &mut Writer, range: &Range) {
    let d = &range.descriptor;
    out.u64(range.array_start);
    out.u64(range.array_bytes);
    out.u64(range.drive_start);
    out.u16(range.first_slot);
    out.u16(range.first_group);
    out.u16(d.version);
    out.u8(match d.code {
        CodeKind::None => 0,
        CodeKind::Mirror => 1,
        CodeKind::Parity => 2,
    });
    out.u8(match d.rotation {
        Rotation::None => 0,
        Rotation::LeftSymmetric => 1,
    });
    out.u16(d.k);
    out.u16(d.m);
    out.u16(d.width);
    out.u16(d.groups);
    out.u16(d.spare_strips);
    out.u16(d.code_id);
    out.u32(d.strip_bytes);
    out.u64(d.seed);
    out.zeros(8);
}

fn slot(out: &mut Writer, slot: &SlotRecord) {
    let (state, border) = match slot.state {
        SlotState::InSync => (0, 0),
        SlotState::Rebuilding { border } => (1, border),
        SlotState::Failed => (2, 0),
    };
    out.uuid(slot.drive);
    out.u8(state);
    out.u8(u8::try_from(slot.serial.len()).expect("checked before encoding"));
    out.zeros(6);
    out.u64(border);
    out.u64(slot.last.counter);
    out.u64(slot.last.id);
    out.u64(slot.since);
    out.text(&slot.serial);
}

fn volume(out: &mut Writer, volume: &VolumeRecord) {
    out.uuid(volume.uuid);
    out.u64(volume.bytes);
    out.count(volume.extents.len());
    out.u8(u8::try_from(volume.name.len()).expect("checked before encoding"));
    out.zeros(5);
    out.text(&volume.name);
    for extent in &volume.extents {
        out.u64(extent.array_start);
        out.u64(extent.bytes);
    }
}

fn export(out: &mut Writer, export: &ExportRecord) {
    out.uuid(export.volume);
    out.u32(export.id);
    out.u8(match &export.address {
        ExportAddress::NbdTcp(_) => 1,
        ExportAddress::NbdUnix(_) => 2,
        ExportAddress::NvmeTcp(_) => 3,
        ExportAddress::Device => 4,
        ExportAddress::File(_) => 5,
        ExportAddress::Ublk => 6,
        ExportAddress::VhostUser(_) => 7,
        ExportAddress::Iscsi(_) => 8,
        ExportAddress::Shares(_) => 9,
        ExportAddress::Fc(_) => 10,
        ExportAddress::NvmeFc(_) => 11,
    });
    out.zeros(1);
    out.count(address_bytes(export));
    match &export.address {
        ExportAddress::NbdTcp(address)
        | ExportAddress::NbdUnix(address)
        | ExportAddress::File(address)
        | ExportAddress::VhostUser(address) => out.text(address),
        ExportAddress::NvmeTcp(export) => nvme(out, export),
        ExportAddress::Iscsi(export) => iscsi(out, export),
        ExportAddress::Shares(export) => shares(out, export),
        ExportAddress::Fc(export) => fc(out, export),
        ExportAddress::NvmeFc(export) => nvme_fc(out, export),
        ExportAddress::Device | ExportAddress::Ublk => {}
    }
}

/// Bytes of an export's entry with its address.
pub fn export_bytes(export: &ExportRecord) -> usize {
    EXPORT_ENTRY_BYTES + address_bytes(export)
}

fn address_bytes(export: &ExportRecord) -> usize {
    match &export.address {
        ExportAddress::NbdTcp(address)
        | ExportAddress::NbdUnix(address)
        | ExportAddress::File(address)
        | ExportAddress::VhostUser(address) => address.len(),
        ExportAddress::NvmeTcp(export) => nvme_bytes(export),
        ExportAddress::Iscsi(export) => iscsi_bytes(export),
        ExportAddress::Shares(export) => shares_bytes(export),
        ExportAddress::Fc(export) => FC_EXPORT_BYTES + export.initiators.len() * 8,
        ExportAddress::NvmeFc(export) => nvme_fc_bytes(export),
        ExportAddress::Device | ExportAddress::Ublk => 0,
    }
}

/// The texts of listeners, in their order.
fn listener_texts(listeners: &[Listener]) -> impl Iterator<Item = &str> {
    listeners.iter().flat_map(|listener| {
        [listener.address.as_str(), listener.advertise.as_deref().unwrap_or("")]
    })
}

/// The texts of an export over NVMe/TCP, in their order.
fn nvme_texts(export: &NvmeExport) -> impl Iterator<Item = &str> {
    let listeners = listener_texts(&export.listeners);
    let hosts = export.hosts.iter().flatten().map(String::as_str);
    core::iter::once(export.subsystem.as_str()).chain(listeners).chain(hosts)
}

/// Bytes of what an export over NVMe/TCP says behind its entry.
pub fn nvme_bytes(export: &NvmeExport) -> usize {
    said_bytes(nvme_texts(export))
}

/// Bytes of what an export over iSCSI says behind its entry.
pub fn iscsi_bytes(export: &IscsiExport) -> usize {
    said_bytes(iscsi_texts(export))
}

fn said_bytes<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    NVME_EXPORT_BYTES + texts.map(|text| 2 + text.len()).sum::<usize>()
}

/// The texts of an export over iSCSI, in their order.
fn iscsi_texts(export: &IscsiExport) -> impl Iterator<Item = &str> {
    let user = export.user.as_deref().unwrap_or("");
    let initiators = export.initiators.iter().map(String::as_str);
    core::iter::once(user).chain(listener_texts(&export.portals)).chain(initiators)
}

fn iscsi(out: &mut Writer, export: &IscsiExport) {
    out.count(export.portals.len());
    out.count(export.initiators.len());
    out.u8(match export.server {
        IscsiServer::Any => 0,
        IscsiServer::Lio => 1,
        IscsiServer::Tgt => 2,
    });
    for shift in [0, 8, 16] {
        out.u8((export.secret >> shift & 0xff) as u8);
    }
    texts(out, iscsi_texts(export));
}

fn fc(out: &mut Writer, export: &FcExport) {
    out.wwpn(export.port);
    out.u16(export.unit);
    out.count(export.initiators.len());
    out.zeros(4);
    export.initiators.iter().for_each(|name| out.wwpn(*name));
}

/// Bytes of what an export over NVMe at a Fibre Channel port says behind its entry.
pub fn nvme_fc_bytes(export: &NvmeFcExport) -> usize {
    FC_EXPORT_BYTES + export.hosts.iter().map(|name| 2 + name.len()).sum::<usize>()
}

fn nvme_fc(out: &mut Writer, export: &NvmeFcExport) {
    out.wwpn(export.port);
    out.count(export.hosts.len());
    out.zeros(6);
    texts(out, export.hosts.iter().map(String::as_str));
}

/// Bytes of what the shares of a file system say behind their entry.
pub fn shares_bytes(export: &ShareExport) -> usize {
    let who = |all: &[Access]| all.iter().map(|own| 3 + own.who.len()).sum::<usize>();
    let share = |own: &Share| SHARE_BYTES + own.name.len() + who(&own.users) + who(&own.clients);
    let shares = export.shares.iter().map(share).sum::<usize>();
    said_bytes([&*export.smb, &*export.nfs].into_iter()) + shares
}

fn shares(out: &mut Writer, export: &ShareExport) {
    out.count(export.shares.len());
    out.u8(match export.make.map(|make| make.kind) {
        None => 0,
        Some(Filesystem::Xfs) => 1,
        Some(Filesystem::Ext4) => 2,
    });
    out.u8(u8::from(export.make.is_some_and(|make| make.overwrite)));
    out.zeros(4);
    texts(out, [&*export.smb, &*export.nfs].into_iter());
    for share in &export.shares {
        let bits = [share.smb, share.nfs, share.read_only].into_iter().enumerate();
        out.u8(bits.map(|(bit, is_set)| u8::from(is_set) << bit).sum());
        out.zeros(1);
        out.count(share.users.len());
        out.count(share.clients.len());
        texts(out, core::iter::once(&*share.name));
        for own in share.users.iter().chain(&share.clients) {
            out.u8(own.read_only.into());
            texts(out, core::iter::once(&*own.who));
        }
    }
}

fn texts<'a>(out: &mut Writer, texts: impl Iterator<Item = &'a str>) {
    for text in texts {
        out.count(text.len());
        out.text(text);
    }
}

fn nvme(out: &mut Writer, export: &NvmeExport) {
    out.u32(export.nsid);
    out.count(export.listeners.len());
    out.count(export.hosts.as_ref().map_or(0, Vec::len));
    texts(out, nvme_texts(export));
}
