//! From the bytes of a record slot to a record. The bytes are not trusted.

use crate::FormatError;
use crate::codec::{Reader, crc32c};
use crate::encode::{
    JOURNAL_KEY_AT, STATE_OWNED, STATE_SCRUBBED, STATE_STARTED_DEGRADED, STATE_ZEROED,
};
use crate::limits::{
    ADDRESS_MAX, COUNTERS_READ_END, EXPORTS_MAX, EXTENT_BYTES, EXTENTS_MAX, FIXED_BYTES,
    FORMAT_VERSION, HEADER_BYTES, IMAGE_ALIGN, MAGIC, NAME_MAX, RECORD_MAX, SERIAL_MAX,
    VOLUMES_MAX,
};
use crate::more::{self, COMPAT_TASKS, INCOMPAT_KNOWN};
use crate::record::{
    Access, Areas, ArrayRecord, Epoch, EpochMark, ExportAddress, ExportRecord, Extent, FcExport,
    Filesystem, GroupRecord, IscsiExport, IscsiServer, LastScrub, Listener, MakeFilesystem,
    NvmeExport, NvmeFcExport, Owner, Paused, Share, ShareExport, SlotRecord, SlotState,
    VolumeRecord,
};
use layout::{CodeKind, Descriptor, Level, MAX_DRIVES, MAX_GROUPS, MAX_RANGES, Range, Rotation};
use units::{MIB, Slot};

pub(crate) const fn invalid<T>(problem: &'static str) -> Result<T, FormatError> {
    Err(FormatError::Invalid(problem))
}

/// What the header of a slot says.
pub struct Header {
    /// The record's sequence number.
    pub sequence: u64,
    version: u32,
    header_bytes: u32,
    compat: u32,
    read_only: u32,
    incompat: u32,
    record_bytes: usize,
    record_crc: u32,
}

/// Reads the header of a slot and verifies its CRC; judges nothing else.
pub fn header(image: &[u8]) -> Result<Header, FormatError> {
    if !image.starts_with(&MAGIC) {
        return Err(FormatError::NoMagic);
    }
    let bytes = image.get(..HEADER_BYTES).ok_or(FormatError::HeaderDamaged)?;
    let (covered, crc) = bytes.split_at(HEADER_BYTES - 4);
    if crc != crc32c(covered).to_le_bytes() {
        return Err(FormatError::HeaderDamaged);
    }
    let mut from = Reader(&covered[MAGIC.len()..]);
    Ok(Header {
        version: from.u32()?,
        header_bytes: from.u32()?,
        compat: from.u32()?,
        read_only: from.u32()?,
        incompat: from.u32()?,
        record_bytes: from.u32()? as usize,
        sequence: from.u64()?,
        record_crc: from.u32()?,
    })
}

/// How many bytes of a slot hold its record, with the zeros behind it, if `front`, of at least
/// [`HEADER_BYTES`], is only its beginning. `None`: the front says all that counts, as that of an
/// unknown version does, or its header is not intact, or says more than a slot has.
pub fn longer_than(front: &[u8]) -> Option<usize> {
    let header = header(front).ok().filter(|header| header.record_bytes <= RECORD_MAX)?;
    let bytes = (HEADER_BYTES + header.record_bytes).next_multiple_of(IMAGE_ALIGN);
    let cut = bytes > front.len() && decode(front) == Err(FormatError::RecordDamaged);
    cut.then_some(bytes)
}

/// Reads the record of a slot's bytes (the slot, or as much of it as holds the record). Every
/// rule of the format holds for what it returns.
pub fn decode(image: &[u8]) -> Result<ArrayRecord, FormatError> {
    let header = header(image)?;
    if header.version != FORMAT_VERSION || header.header_bytes as usize != HEADER_BYTES {
        return Err(FormatError::Version(header.version));
    }
    if header.record_bytes > RECORD_MAX {
        return invalid("its length is larger than a slot");
    }
    let body = image[HEADER_BYTES..].get(..header.record_bytes);
    let body = body.ok_or(FormatError::RecordDamaged)?;
    if crc32c(body) != header.record_crc {
        return Err(FormatError::RecordDamaged);
    }
    let unknown = header.incompat & !INCOMPAT_KNOWN;
    if unknown != 0 {
        return Err(FormatError::Incompatible(unknown));
    }
    Reader(&image[44..HEADER_BYTES - 4]).zeros(HEADER_BYTES - 48)?;
    let mut from = Reader(body);
    let mut record = fixed_and_lists(&mut from)?;
    more::decode(&mut from, &mut record, (header.compat, header.incompat))?;
    let unknown = header.compat & !COMPAT_TASKS != 0 || header.read_only != 0;
    if !from.0.is_empty() && !unknown {
        return invalid("there are bytes behind its lists");
    }
    record.sequence = header.sequence;
    record.read_only = header.read_only != 0;
    record.check()?;
    if record.epoch.counter.max(record.sequence) >= COUNTERS_READ_END {
        return invalid("its epoch or its sequence number leaves no room for those that follow");
    }
    Ok(record)
}

/// Numbers of list entries; bounded when read.
struct Counts {
    ranges: usize,
    slots: usize,
    groups: usize,
    volumes: usize,
    exports: usize,
    name: usize,
}

fn fixed_and_lists(from: &mut Reader<'_>) -> Result<ArrayRecord, FormatError> {
    let mut fixed_part = Reader(from.bytes(FIXED_BYTES)?);
    let (mut record, counts) = fixed(&mut fixed_part)?;
    record.name = from.text(counts.name, NAME_MAX)?;
    record.ranges = (0..counts.ranges).map(|_| range(from)).collect::<Result<_, _>>()?;
    record.slots = (0..counts.slots).map(|_| slot(from)).collect::<Result<_, _>>()?;
    record.groups = (0..counts.groups).map(|_| group(from)).collect::<Result<_, _>>()?;
    record.volumes = (0..counts.volumes).map(|_| volume(from)).collect::<Result<_, _>>()?;
    record.exports = (0..counts.exports).map(|_| export(from)).collect::<Result<_, _>>()?;
    Ok(record)
}

fn fixed(from: &mut Reader<'_>) -> Result<(ArrayRecord, Counts), FormatError> {
    let array = from.uuid()?;
    let this_drive = from.uuid()?;
    let this_slot = Slot(from.u16()?);
    let level = level(from.u8()?)?;
    let state = from.u8()?;
    if state & !(STATE_ZEROED | STATE_STARTED_DEGRADED | STATE_SCRUBBED | STATE_OWNED) != 0 {
        return invalid("it has unknown state bits");
    }
    let mut record = ArrayRecord {
        array,
        name: String::new(),
        sequence: 0,
        this_slot,
        this_drive,
        block_bytes: from.u32()?,
        level,
        data_offset: from.u64()?,
        data_bytes: from.u64()?,
        epoch: Epoch { counter: from.u64()?, id: from.u64()?, previous: from.u64()? },
        shared: false,
        heartbeat: from.u64()?,
        owner: owner(from, state & STATE_OWNED != 0)?,
        last_scrub: last_scrub(from, state & STATE_SCRUBBED != 0)?,
        ranges: Vec::new(),
        slots: Vec::new(),
        groups: Vec::new(),
        volumes: Vec::new(),
        exports: Vec::new(),
        started_degraded: state & STATE_STARTED_DEGRADED != 0,
        zeroed: state & STATE_ZEROED != 0,
        read_only: false,
        areas: Areas::default(),
        journal_key: 0,
        lost: Vec::new(),
        paused: Paused::default(),
        scrub: None,
    };
    let mut count = |max: usize| match usize::from(from.u16()?) {
        count if count <= max => Ok(count),
        _ => invalid("a list is too long"),
    };
    let counts = Counts {
        ranges: count(MAX_RANGES)?,
        slots: count(MAX_DRIVES.into())?,
        groups: count(MAX_GROUPS.into())?,
        volumes: count(VOLUMES_MAX)?,
        exports: count(EXPORTS_MAX)?,
        name: count(NAME_MAX)?,
    };
    record.areas = areas(from)?;
    from.zeros(JOURNAL_KEY_AT - AREAS_END)?;
    record.journal_key = from.u64()?;
    from.zeros(from.0.len())?;
    Ok((record, counts))
}

/// Where the fixed part has its areas behind it.
const AREAS_END: usize = 181;

fn areas(from: &mut Reader<'_>) -> Result<Areas, FormatError> {
    let mut place = || from.u32().map(|mib| u64::from(mib) * MIB);
    let (map_start, map_bytes) = (place()?, place()?);
    let (journal_start, journal_bytes) = (place()?, place()?);
    Ok(Areas { map_start, map_bytes, journal_start, journal_bytes, shift: from.u8()? })
}

fn owner(from: &mut Reader<'_>, present: bool) -> Result<Option<Owner>, FormatError> {
    if !present {
        from.zeros(32)?;
        return Ok(None);
    }
    Ok(Some(Owner { host: from.uuid()?, boot: from.uuid()? }))
}

fn last_scrub(from: &mut Reader<'_>, present: bool) -> Result<Option<LastScrub>, FormatError> {
    if !present {
        from.zeros(32)?;
        return Ok(None);
    }
    Ok(Some(LastScrub {
        checked_bytes: from.u64()?,
        mismatches: from.u64()?,
        repaired: from.u64()?,
        unlocated: 0,
        unreadable: 0,
        unix_seconds: from.u64()?,
    }))
}

fn level(byte: u8) -> Result<Level, FormatError> {
    Ok(match byte {
        0 => Level::Raid0,
        1 => Level::Raid1,
        5 => Level::Raid5,
        6 => Level::Raid6,
        10 => Level::Raid10,
        255 => Level::Jbod,
        _ => return invalid("its level is not known"),
    })
}

pub(crate) fn range(from: &mut Reader<'_>) -> Result<Range, FormatError> {
    let (array_start, array_bytes, drive_start) = (from.u64()?, from.u64()?, from.u64()?);
    let (first_slot, first_group) = (from.u16()?, from.u16()?);
    let version = from.u16()?;
    let code = match from.u8()? {
        0 => CodeKind::None,
        1 => CodeKind::Mirror,
        2 => CodeKind::Parity,
        _ => return invalid("the kind of a range is not known"),
    };
    let rotation = match from.u8()? {
        0 => Rotation::None,
        1 => Rotation::LeftSymmetric,
        _ => return invalid("the rotation of a range is not known"),
    };
    let descriptor = Descriptor {
        code,
        version,
        rotation,
        k: from.u16()?,
        m: from.u16()?,
        width: from.u16()?,
        groups: from.u16()?,
        spare_strips: from.u16()?,
        code_id: from.u16()?,
        strip_bytes: from.u32()?,
        seed: from.u64()?,
    };
    from.zeros(8)?;
    Ok(Range { array_start, array_bytes, first_slot, first_group, drive_start, descriptor })
}

fn slot(from: &mut Reader<'_>) -> Result<SlotRecord, FormatError> {
    let drive = from.uuid()?;
    let state = from.u8()?;
    let serial = usize::from(from.u8()?);
    from.zeros(6)?;
    let border = from.u64()?;
    let state = match (state, border) {
        (0, 0) => SlotState::InSync,
        (1, border) => SlotState::Rebuilding { border },
        (2, 0) => SlotState::Failed,
        _ => return invalid("the state of a slot is not known"),
    };
    let last = EpochMark { counter: from.u64()?, id: from.u64()? };
    let since = from.u64()?;
    Ok(SlotRecord { drive, state, last, since, serial: from.text(serial, SERIAL_MAX)? })
}

fn group(from: &mut Reader<'_>) -> Result<GroupRecord, FormatError> {
    let (unclean, loss_accepted, guarded) = (from.flag()?, from.flag()?, from.flag()?);
    from.zeros(5)?;
    Ok(GroupRecord { unclean, loss_accepted, guarded })
}

fn volume(from: &mut Reader<'_>) -> Result<VolumeRecord, FormatError> {
    let (uuid, bytes) = (from.uuid()?, from.u64()?);
    let extents = usize::from(from.u16()?);
    let name = usize::from(from.u8()?);
    from.zeros(5)?;
    let name = from.text(name, NAME_MAX)?;
    if extents > EXTENTS_MAX {
        return invalid("a volume has too many extents");
    }
    let mut extents = Reader(from.bytes(extents * EXTENT_BYTES)?);
    let mut list = Vec::with_capacity(extents.0.len() / EXTENT_BYTES);
    while !extents.0.is_empty() {
        list.push(Extent { array_start: extents.u64()?, bytes: extents.u64()? });
    }
    Ok(VolumeRecord { uuid, name, bytes, extents: list })
}

/// What an export over NVMe/TCP says.
fn nvme(bytes: &[u8]) -> Result<NvmeExport, FormatError> {
    let mut from = Reader(bytes);
    let from = &mut from;
    let (nsid, listeners, hosts) = (from.u32()?, from.u16()?, from.u16()?);
    let subsystem = text(from)?;
    let (listeners, named) = places(from, listeners, hosts)?;
    Ok(NvmeExport { subsystem, nsid, listeners, hosts: (hosts > 0).then_some(named) })
}

/// A text, behind its length.
fn text(from: &mut Reader<'_>) -> Result<String, FormatError> {
    let len = from.u16()?;
    from.text(len.into(), ADDRESS_MAX)
}

/// So many listeners, so many names of hosts, and nothing more.
fn places(
    from: &mut Reader<'_>,
    listeners: u16,
    hosts: u16,
) -> Result<(Vec<Listener>, Vec<String>), FormatError> {
    let listener = |_| {
        let (address, advertise) = (text(from)?, text(from)?);
        Ok(Listener { address, advertise: (!advertise.is_empty()).then_some(advertise) })
    };
    let listeners = (0..listeners).map(listener).collect::<Result<_, FormatError>>()?;
    let named = (0..hosts).map(|_| text(from)).collect::<Result<_, _>>()?;
    nothing_behind(from)?;
    Ok((listeners, named))
}

/// What an export over iSCSI says.
fn iscsi(bytes: &[u8]) -> Result<IscsiExport, FormatError> {
    let mut from = Reader(bytes);
    let from = &mut from;
    let (portals, initiators) = (from.u16()?, from.u16()?);
    let server = match from.u8()? {
        0 => IscsiServer::Any,
        1 => IscsiServer::Lio,
        2 => IscsiServer::Tgt,
        _ => return invalid("who serves an export is not known"),
    };
    let secret = [from.u8()?, from.u8()?, from.u8()?, 0];
    let secret = u32::from_le_bytes(secret);
    let user = text(from)?;
    let user = (!user.is_empty()).then_some(user);
    let (portals, initiators) = places(from, portals, initiators)?;
    Ok(IscsiExport { portals, initiators, user, secret, server })
}

/// What an export at a Fibre Channel port says that initiators have by FCP.
fn fc(bytes: &[u8]) -> Result<FcExport, FormatError> {
    let mut from = Reader(bytes);
    let from = &mut from;
    let (port, unit, initiators) = (from.wwpn()?, from.u16()?, from.u16()?);
    from.zeros(4)?;
    let initiators = (0..initiators).map(|_| from.wwpn()).collect::<Result<_, _>>()?;
    nothing_behind(from)?;
    Ok(FcExport { port, unit, initiators })
}

/// What one says that hosts have by NVMe.
fn nvme_fc(bytes: &[u8]) -> Result<NvmeFcExport, FormatError> {
    let mut from = Reader(bytes);
    let from = &mut from;
    let (port, hosts) = (from.wwpn()?, from.u16()?);
    from.zeros(6)?;
    let hosts = (0..hosts).map(|_| text(from)).collect::<Result<_, _>>()?;
    nothing_behind(from)?;
    Ok(NvmeFcExport { port, hosts })
}

fn nothing_behind(from: &Reader<'_>) -> Result<(), FormatError> {
    match from.0.is_empty() {
        true => Ok(()),
        false => invalid("there are bytes behind what an export says"),
    }
}

/// What the shares of a file system say.
fn shares(bytes: &[u8]) -> Result<ShareExport, FormatError> {
    let mut from = Reader(bytes);
    let from = &mut from;
    let count = from.u16()?;
    let make = match (from.u8()?, from.u8()?) {
        (0, 0) => None,
        (kind @ 1..=2, overwrite @ 0..=1) => Some(MakeFilesystem {
            kind: if kind == 1 { Filesystem::Xfs } else { Filesystem::Ext4 },
            overwrite: overwrite == 1,
        }),
        _ => return invalid("how a file system is to be made is not known"),
    };
    from.zeros(4)?;
    let (smb, nfs) = (text(from)?, text(from)?);
    let shares = (0..count).map(|_| share(from)).collect::<Result<_, _>>()?;
    nothing_behind(from)?;
    Ok(ShareExport { make, smb, nfs, shares })
}

fn share(from: &mut Reader<'_>) -> Result<Share, FormatError> {
    let bits = from.u8()?;
    if bits > 7 {
        return invalid("what a share is is not known");
    }
    from.zeros(1)?;
    let (users, clients) = (from.u16()?, from.u16()?);
    let name = text(from)?;
    let mut who = |count: u16| {
        let one = |_| match from.u8()? {
            bit @ 0..=1 => Ok(Access { read_only: bit == 1, who: text(from)? }),
            _ => invalid("what somebody may do with a share is not known"),
        };
        (0..count).map(one).collect::<Result<_, _>>()
    };
    let (users, clients) = (who(users)?, who(clients)?);
    let has = |bit: u8| bits & bit != 0;
    Ok(Share { name, smb: has(1), nfs: has(2), read_only: has(4), users, clients })
}

fn export(from: &mut Reader<'_>) -> Result<ExportRecord, FormatError> {
    let (volume, id, kind) = (from.uuid()?, from.u32()?, from.u8()?);
    from.zeros(1)?;
    let len = usize::from(from.u16()?);
    let address = match kind {
        1 => ExportAddress::NbdTcp(from.text(len, ADDRESS_MAX)?),
        2 => ExportAddress::NbdUnix(from.text(len, ADDRESS_MAX)?),
        3 => ExportAddress::NvmeTcp(nvme(from.bytes(len)?)?),
        4 if len == 0 => ExportAddress::Device,
        6 if len == 0 => ExportAddress::Ublk,
        4 | 6 => return invalid("an export as a block device has an address"),
        5 => ExportAddress::File(from.text(len, ADDRESS_MAX)?),
        7 => ExportAddress::VhostUser(from.text(len, ADDRESS_MAX)?),
        8 => ExportAddress::Iscsi(iscsi(from.bytes(len)?)?),
        9 => ExportAddress::Shares(shares(from.bytes(len)?)?),
        10 => ExportAddress::Fc(fc(from.bytes(len)?)?),
        11 => ExportAddress::NvmeFc(nvme_fc(from.bytes(len)?)?),
        _ => return invalid("the kind of an export is not known"),
    };
    Ok(ExportRecord { id, volume, address })
}
