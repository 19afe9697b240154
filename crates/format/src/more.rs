//! What a record says behind its five lists, where a header flag says that it does: the list of
//! lost ranges, and how tasks stand.
//!
//! A record has neither part, nor its flag, while there is nothing to say. A release that does not
//! know the list of lost ranges must not read the record at all (incompat): what is lost would look
//! like data. One that does not know how tasks stand may (compat): it forgets it. A guarded group,
//! a shared array and exports of later kinds have a flag, too, and nothing behind the lists.

use crate::FormatError;
use crate::codec::{Reader, Writer};
use crate::decode::invalid;
use crate::limits::{LOST_ENTRY_BYTES, LOST_MAX, LOST_UNIT, TASKS_BYTES};
use crate::record::{
    ArrayRecord, ExportAddress, ExportRecord, LostRange, LostReason, Paused, ScrubMode, ScrubRecord,
};
use layout::Layout;
use units::GroupNo;

/// Compat flag: how tasks stand is there.
pub const COMPAT_TASKS: u32 = 1;
/// Incompat flag: the list of lost ranges is there.
pub const INCOMPAT_LOST: u32 = 1;
/// Incompat flag: a group is guarded, and in-flight pages may say what was being written.
pub const INCOMPAT_FLIGHT: u32 = 2;
/// Incompat flag: an export is over NVMe/TCP, and its entry is longer than others may be.
pub const INCOMPAT_NVME: u32 = 4;
/// Incompat flag: other servers may reach its drives, and its owner counts.
pub const INCOMPAT_SHARED: u32 = 8;
/// Incompat flag: an export is used by the server itself, as a block device or a file.
pub const INCOMPAT_LOCAL: u32 = 16;
/// Incompat flag: an export is over iSCSI.
pub const INCOMPAT_ISCSI: u32 = 32;
/// Incompat flag: a volume's file system is shared.
pub const INCOMPAT_FILES: u32 = 64;
/// Incompat flag: an export is at a Fibre Channel port.
pub const INCOMPAT_FC: u32 = 128;
/// All that this release knows.
pub const INCOMPAT_KNOWN: u32 = INCOMPAT_LOST
    | INCOMPAT_FLIGHT
    | INCOMPAT_NVME
    | INCOMPAT_SHARED
    | INCOMPAT_LOCAL
    | INCOMPAT_ISCSI
    | INCOMPAT_FILES
    | INCOMPAT_FC;

/// The flags (compat, incompat) of a record.
pub fn flags(record: &ArrayRecord) -> (u32, u32) {
    let compat = if has_tasks(record) { COMPAT_TASKS } else { 0 };
    let lost = if record.lost.is_empty() { 0 } else { INCOMPAT_LOST };
    let flight = if is_guarded(record) { INCOMPAT_FLIGHT } else { 0 };
    let nvme = if record.exports.iter().any(is_nvme) { INCOMPAT_NVME } else { 0 };
    let shared = if record.shared { INCOMPAT_SHARED } else { 0 };
    let local = if record.exports.iter().any(is_local) { INCOMPAT_LOCAL } else { 0 };
    let iscsi = if record.exports.iter().any(is_iscsi) { INCOMPAT_ISCSI } else { 0 };
    let files = if record.exports.iter().any(has_files) { INCOMPAT_FILES } else { 0 };
    let fc = if record.exports.iter().any(is_fc) { INCOMPAT_FC } else { 0 };
    (compat, lost | flight | nvme | shared | local | iscsi | files | fc)
}

fn is_guarded(record: &ArrayRecord) -> bool {
    record.groups.iter().any(|group| group.guarded)
}

fn is_nvme(export: &ExportRecord) -> bool {
    matches!(export.address, ExportAddress::NvmeTcp(_))
}

const fn is_iscsi(export: &ExportRecord) -> bool {
    matches!(export.address, ExportAddress::Iscsi(_))
}

const fn is_fc(export: &ExportRecord) -> bool {
    matches!(export.address, ExportAddress::Fc(_) | ExportAddress::NvmeFc(_))
}

const fn has_files(export: &ExportRecord) -> bool {
    matches!(export.address, ExportAddress::Shares(_))
}

const fn is_local(export: &ExportRecord) -> bool {
    export.address.stays()
}

fn has_tasks(record: &ArrayRecord) -> bool {
    let scrub = record.last_scrub.is_some_and(|s| (s.unlocated, s.unreadable) != (0, 0));
    scrub || record.paused != Paused::default() || record.scrub.is_some()
}

/// Appends what there is to say.
pub fn encode(out: &mut Writer, record: &ArrayRecord) {
    if !record.lost.is_empty() {
        out.u32(u32::try_from(record.lost.len()).expect("checked before encoding"));
        out.zeros(4);
        record.lost.iter().for_each(|lost| range(out, lost));
    }
    if has_tasks(record) {
        tasks(out, record);
    }
}

fn range(out: &mut Writer, lost: &LostRange) {
    out.u64(lost.start);
    out.u32(u32::try_from(lost.bytes / LOST_UNIT).expect("checked before encoding"));
    out.u8(match lost.reason {
        LostReason::Rebuild => 1,
        LostReason::Resync => 2,
        LostReason::Crash => 3,
        LostReason::Write => 4,
    });
    out.zeros(3);
}

fn tasks(out: &mut Writer, record: &ArrayRecord) {
    let begin = out.0.len();
    out.u64(record.last_scrub.map_or(0, |s| s.unlocated));
    out.u64(record.last_scrub.map_or(0, |s| s.unreadable));
    let Paused { rebuild, resync, scrub } = record.paused;
    out.u8(u8::from(rebuild) | u8::from(resync) << 1 | u8::from(scrub) << 2);
    if let Some(scrub) = record.scrub {
        out.u8(match scrub.mode {
            ScrubMode::Check => 1,
            ScrubMode::Repair => 2,
            ScrubMode::TrustData => 3,
        });
        out.u16(scrub.group);
        out.zeros(4);
        out.u64(scrub.stripe);
        out.u64(scrub.checked_bytes);
        out.u64(scrub.mismatches);
        out.u64(scrub.repaired);
        out.u64(scrub.unlocated);
        out.u64(scrub.unreadable);
    }
    out.zeros(begin + TASKS_BYTES - out.0.len());
}

/// Reads the parts that the flags announce.
pub fn decode(
    from: &mut Reader<'_>,
    record: &mut ArrayRecord,
    (compat, incompat): (u32, u32),
) -> Result<(), FormatError> {
    record.shared = incompat & INCOMPAT_SHARED != 0;
    if incompat & INCOMPAT_NVME == 0 && record.exports.iter().any(is_nvme) {
        return invalid("an export is over NVMe/TCP, and no flag says so");
    }
    if (incompat & INCOMPAT_LOCAL != 0) != record.exports.iter().any(is_local) {
        return invalid("whether the server uses an export and what its flag says do not agree");
    }
    if (incompat & INCOMPAT_ISCSI != 0) != record.exports.iter().any(is_iscsi) {
        return invalid("whether an export is over iSCSI and what its flag says do not agree");
    }
    if (incompat & INCOMPAT_FILES != 0) != record.exports.iter().any(has_files) {
        return invalid("whether a file system is shared and what its flag says do not agree");
    }
    if (incompat & INCOMPAT_FC != 0) != record.exports.iter().any(is_fc) {
        return invalid("whether an export is at a port and what its flag says do not agree");
    }
    if (incompat & INCOMPAT_FLIGHT != 0) != is_guarded(record) {
        return invalid("whether a group is guarded and what its flag says do not agree");
    }
    if incompat & INCOMPAT_LOST != 0 {
        let count = from.u32()? as usize;
        from.zeros(4)?;
        if count == 0 || count > LOST_MAX {
            return invalid("its list of lost ranges has an impossible length");
        }
        let mut entries = Reader(from.bytes(count * LOST_ENTRY_BYTES)?);
        record.lost = (0..count).map(|_| read_range(&mut entries)).collect::<Result<_, _>>()?;
    }
    if compat & COMPAT_TASKS != 0 {
        read_tasks(&mut Reader(from.bytes(TASKS_BYTES)?), record)?;
        if !has_tasks(record) {
            return invalid("it says that it says how tasks stand, and does not");
        }
    }
    Ok(())
}

fn read_range(from: &mut Reader<'_>) -> Result<LostRange, FormatError> {
    let (start, units) = (from.u64()?, from.u32()?);
    let reason = match from.u8()? {
        1 => LostReason::Rebuild,
        2 => LostReason::Resync,
        3 => LostReason::Crash,
        4 => LostReason::Write,
        _ => return invalid("the reason of a lost range is not known"),
    };
    from.zeros(3)?;
    Ok(LostRange { start, bytes: u64::from(units) * LOST_UNIT, reason })
}

fn read_tasks(from: &mut Reader<'_>, record: &mut ArrayRecord) -> Result<(), FormatError> {
    let (unlocated, unreadable) = (from.u64()?, from.u64()?);
    match &mut record.last_scrub {
        Some(scrub) => (scrub.unlocated, scrub.unreadable) = (unlocated, unreadable),
        None if (unlocated, unreadable) == (0, 0) => {}
        None => return invalid("it has findings of a scrub that it does not have"),
    }
    let paused = from.u8()?;
    if paused > 7 {
        return invalid("an unknown task is paused");
    }
    let has = |bit: u8| paused & bit != 0;
    record.paused = Paused { rebuild: has(1), resync: has(2), scrub: has(4) };
    let mode = match from.u8()? {
        0 => return from.zeros(from.0.len()),
        1 => ScrubMode::Check,
        2 => ScrubMode::Repair,
        3 => ScrubMode::TrustData,
        _ => return invalid("how a scrub repairs is not known"),
    };
    let group = from.u16()?;
    from.zeros(4)?;
    record.scrub = Some(ScrubRecord {
        mode,
        group,
        stripe: from.u64()?,
        checked_bytes: from.u64()?,
        mismatches: from.u64()?,
        repaired: from.u64()?,
        unlocated: from.u64()?,
        unreadable: from.u64()?,
    });
    from.zeros(from.0.len())
}

/// Checks the rules of both parts.
pub fn check(record: &ArrayRecord, layout: &Layout) -> Result<(), FormatError> {
    if record.lost.len() > LOST_MAX {
        return invalid("there are too many lost ranges");
    }
    let (mut end, block) = (0, u64::from(record.block_bytes));
    for lost in &record.lost {
        let whole = lost.start.is_multiple_of(block) && lost.bytes.is_multiple_of(block);
        let sized = lost.bytes != 0 && lost.bytes / LOST_UNIT <= u64::from(u32::MAX);
        let last = lost.start.checked_add(lost.bytes).filter(|e| *e <= layout.array_bytes());
        match last {
            Some(last) if whole && sized && lost.start >= end => end = last,
            _ => return invalid("a lost range is not possible"),
        }
    }
    if record.paused.scrub && record.scrub.is_none() {
        return invalid("a scrub is paused that there is not");
    }
    let inside =
        |s: ScrubRecord| s.group < layout.groups() && s.stripe <= layout.stripes(GroupNo(s.group));
    if !record.scrub.is_none_or(inside) {
        return invalid("a scrub is at a place that there is not");
    }
    Ok(())
}
