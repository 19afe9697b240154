//! Record slots and the array record, read as docs/format.md has them.

use super::Raw;

const MIB: u64 = 1 << 20;
const SLOT: usize = 262_144;
const HEADER: usize = 128;
/// The reason of a lost range that was being written at a crash.
const CRASH: u64 = 3;

/// Who a drive or array is.
pub type Id = [u8; 16];

/// An epoch: counter and id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch {
    /// Counts epochs.
    pub counter: u64,
    /// Tells epochs of one counter apart.
    pub id: u64,
}

impl Epoch {
    /// Whether two epochs of one counter are different ones.
    pub fn contradicts(self, other: Self) -> bool {
        self.counter == other.counter && self.id != other.id
    }
}

/// A run of the array's addresses and how it lies on drives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// First array address.
    pub array_start: u64,
    /// Bytes of the array.
    pub array_bytes: u64,
    /// Where it begins in the data area of its drives.
    pub drive_start: u64,
    /// Its first slot.
    pub first_slot: usize,
    /// Its first group.
    pub first_group: usize,
    /// 0 none, 1 mirror, 2 parity.
    pub kind: u8,
    /// 0 none, 1 left-symmetric.
    pub rotation: u8,
    /// Data strips of a stripe.
    pub k: usize,
    /// Redundant strips of a stripe.
    pub m: usize,
    /// Groups.
    pub groups: usize,
    /// Bytes of a strip.
    pub strip: u64,
}

/// How a slot is by the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Counts.
    InSync,
    /// Counts below this offset of the data area.
    Rebuilding(u64),
    /// Does not count.
    Failed,
}

/// One slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotEntry {
    /// Its drive.
    pub drive: Id,
    /// How it is.
    pub state: State,
    /// The last epoch its drive took part in.
    pub last: Epoch,
    /// Whole up to this epoch counter, or 0.
    pub whole: u64,
}

/// One group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupEntry {
    /// Writes may have been under way.
    pub unclean: bool,
    /// Redundancy is trusted for want of anything better.
    pub loss_accepted: bool,
    /// The journal area stands for what may have been under way.
    pub guarded: bool,
}

/// One volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeEntry {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Where it lies: array address and bytes.
    pub extents: Vec<(u64, u64)>,
}

/// Where region map and journal lie on every drive, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Areas {
    /// Begin of the region map area.
    pub map_start: u64,
    /// Its bytes.
    pub map_bytes: u64,
    /// Begin of the journal area.
    pub journal_start: u64,
    /// Its bytes.
    pub journal_bytes: u64,
    /// A bit of the map stands for 2 to the power of this bands.
    pub shift: u32,
}

/// The array record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Counted up by every write of records.
    pub sequence: u64,
    /// Where region map and journal lie.
    pub areas: Areas,
    /// What a batch of the journal must name; 0: none counts.
    pub key: u64,
    /// What nobody can give back: array address and bytes.
    pub lost: Vec<(u64, u64)>,
    /// What of it was being written at a crash (reason crash).
    pub crashed: Vec<(u64, u64)>,
    /// Kinds of tasks that wait: 1 rebuilds, 2 resyncs, 4 the scrub.
    pub paused: u8,
    /// The array.
    pub array: Id,
    /// This drive.
    pub drive: Id,
    /// Its slot.
    pub slot: usize,
    /// The level's number.
    pub level: u8,
    /// The creation finished.
    pub zeroed: bool,
    /// Bytes of a block.
    pub block: u64,
    /// Where the data area begins.
    pub data_offset: u64,
    /// Its bytes.
    pub data_bytes: u64,
    /// The epoch.
    pub epoch: Epoch,
    /// The id of the epoch before.
    pub before: u64,
    /// The address ranges.
    pub ranges: Vec<Range>,
    /// The slots.
    pub slots: Vec<SlotEntry>,
    /// The groups.
    pub groups: Vec<GroupEntry>,
    /// The volumes.
    pub volumes: Vec<VolumeEntry>,
}

/// CRC-32C, by a library: it is most of the work of reading an array. A test holds it against the
/// polynomial of RFC 3720.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Reads fields one behind the other; `None` at the end.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (now, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(now)
    }

    pub(super) fn number(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b)))
    }

    pub(super) fn size(&mut self, bytes: usize) -> Option<usize> {
        self.number(bytes).map(|n| n as usize)
    }

    pub(super) fn id(&mut self) -> Option<Id> {
        self.take(16)?.try_into().ok()
    }

    fn text(&mut self, bytes: usize) -> Option<String> {
        String::from_utf8(self.take(bytes)?.to_vec()).ok()
    }

    pub(super) fn reserved(&mut self, bytes: usize) -> Option<()> {
        self.take(bytes)?.iter().all(|b| *b == 0).then_some(())
    }
}

/// Where the record slots of a drive begin, and where its tail area does.
pub fn places(bytes: u64) -> ([u64; 4], u64) {
    let tail = bytes / MIB * MIB - MIB;
    ([0, SLOT as u64, tail, tail + SLOT as u64], tail)
}

/// The record of a drive that counts: of the intact ones the one with the largest sequence
/// number. `None`: none is intact, the newest breaks a rule, or the tail is gone.
pub fn newest(drive: &impl Raw) -> Option<Record> {
    let (slots, tail) = places(drive.bytes());
    let [a, b, c, d] = slots.map(|at| intact(drive, at));
    let [c, d] = match (&a, &b) {
        (Some(a), Some(b)) if nothing(drive, tail) => former_tail(drive, tail, [a, b])?,
        _ => [c, d],
    };
    let mut best: Option<Intact> = None;
    for found in [a, b, c, d].into_iter().flatten() {
        if best.as_ref().is_none_or(|other| found.sequence > other.sequence) {
            best = Some(found);
        }
    }
    record(&best?)
}

/// Whether both slots of a tail area can be read, and neither begins with the magic.
fn nothing(drive: &impl Raw, tail: u64) -> bool {
    [tail, tail + SLOT as u64].into_iter().all(|at| {
        let page = drive.page(at / super::PAGE as u64);
        !drive.unreadable(at, super::PAGE as u64) && &page[..8] != b"PALISADE"
    })
}

/// The tail slots of a drive that has grown, by what its head slots hold. `None`: a record is gone.
/// Both as they are now where the head's records don't tell of one drive.
fn former_tail(drive: &impl Raw, tail: u64, head: [&Intact; 2]) -> Option<[Option<Intact>; 2]> {
    let [Some(a), Some(b)] = head.map(record) else { return Some([None, None]) };
    if a.drive != b.drive {
        return Some([None, None]);
    }
    let (slot, older) = if a.sequence < b.sequence { (0, a.sequence) } else { (1, b.sequence) };
    let mut found = [None, None];
    let first = a.data_offset + a.data_bytes;
    for place in (0..1024).map(|mib| first + mib * MIB).take_while(|place| *place < tail) {
        for (best, at) in found.iter_mut().zip([place, place + SLOT as u64]) {
            let Some(new) = intact(drive, at) else { continue };
            let sequence = best.as_ref().map_or(0, |best: &Intact| best.sequence);
            if record(&new).is_some_and(|r| r.drive == a.drive) && new.sequence > sequence {
                *best = Some(new);
            }
        }
    }
    let there = found[slot].as_ref().is_some_and(|record| record.sequence > older);
    there.then_some(found)
}

/// The one version of the format.
const VERSION: u64 = 3;

/// What an intact record slot holds.
struct Intact {
    /// It has lost ranges.
    lost: bool,
    /// A group is guarded.
    guarded: bool,
    /// It says something of tasks.
    tasks: bool,
    sequence: u64,
    body: Vec<u8>,
}

/// What an intact record slot holds.
fn intact(drive: &impl Raw, at: u64) -> Option<Intact> {
    let page = drive.page(at / super::PAGE as u64);
    if &page[..8] != b"PALISADE" {
        return None;
    }
    let mut f = Fields(&page[8..HEADER]);
    let version = f.number(4)?;
    let header = f.size(4)?;
    let (compat, read_only, incompat) = (f.number(4)?, f.number(4)?, f.number(4)?);
    let bytes = f.size(4)?;
    let sequence = f.number(8)?;
    let body_crc = f.number(4)? as u32;
    f.reserved(80)?;
    let header_crc = f.number(4)? as u32;
    if header_crc != crc(&page[..124]) || header != HEADER || bytes > SLOT - HEADER {
        return None;
    }
    // With the zeros behind it.
    let image = (HEADER + bytes).next_multiple_of(super::PAGE);
    if drive.unreadable(at, image as u64) {
        return None;
    }
    let body = drive.copy(at + HEADER as u64, bytes);
    let known = version == VERSION && compat <= 1 && incompat <= 127 && read_only == 0;
    let (lost, guarded, tasks) = (incompat & 1 != 0, incompat & 2 != 0, compat == 1);
    let found = Intact { lost, guarded, tasks, sequence, body };
    (known && crc(&found.body) == body_crc).then_some(found)
}

fn record(from: &Intact) -> Option<Record> {
    let f = &mut Fields(&from.body);
    let (array, drive, slot) = (f.id()?, f.id()?, f.size(2)?);
    let (level, bits) = (f.number(1)? as u8, f.number(1)?);
    let block = f.number(4)?;
    let (data_offset, data_bytes) = (f.number(8)?, f.number(8)?);
    let epoch = Epoch { counter: f.number(8)?, id: f.number(8)? };
    let before = f.number(8)?;
    f.take(8 + 16 + 16 + 4 * 8)?;
    let counts: Vec<usize> = (0..6).map(|_| f.size(2)).collect::<Option<_>>()?;
    let areas = areas(f)?;
    f.reserved(3)?;
    let key = f.number(8)?;
    f.text(counts[5])?;
    let ranges = (0..counts[0]).map(|_| range(f)).collect::<Option<Vec<_>>>()?;
    let strip = ranges.first()?.strip;
    let slots = (0..counts[1]).map(|_| slot_entry(f, strip)).collect::<Option<_>>()?;
    let groups = (0..counts[2]).map(|_| group_entry(f)).collect::<Option<Vec<_>>>()?;
    if groups.iter().any(|group| group.guarded) != from.guarded {
        return None;
    }
    let volumes = (0..counts[3]).map(|_| volume_entry(f)).collect::<Option<_>>()?;
    (0..counts[4]).try_for_each(|_| export_entry(f))?;
    let (lost, crashed) = if from.lost { lost_ranges(f)? } else { Default::default() };
    f.reserved(if from.tasks { f.0.len().checked_sub(80)? } else { f.0.len() })?;
    let paused = match from.tasks {
        true => f.take(16).and_then(|_| f.number(1))? as u8,
        false => 0,
    };
    let zeroed = bits & 1 == 1;
    if from.sequence.max(epoch.counter) >= 1 << 59 {
        return None;
    }
    Some(Record {
        sequence: from.sequence,
        areas,
        key,
        lost,
        crashed,
        paused,
        array,
        drive,
        slot,
        level,
        zeroed,
        block,
        data_offset,
        data_bytes,
        epoch,
        before,
        ranges,
        slots,
        groups,
        volumes,
    })
}

fn areas(f: &mut Fields<'_>) -> Option<Areas> {
    let mut mib = || f.number(4).map(|n| n * MIB);
    let (map_start, map_bytes, journal_start, journal_bytes) = (mib()?, mib()?, mib()?, mib()?);
    let shift = f.number(1)? as u32;
    let right = shift <= 16 && map_bytes > 0 && journal_bytes > 0;
    right.then_some(Areas { map_start, map_bytes, journal_start, journal_bytes, shift })
}

fn range(f: &mut Fields<'_>) -> Option<Range> {
    let (array_start, array_bytes, drive_start) = (f.number(8)?, f.number(8)?, f.number(8)?);
    let (first_slot, first_group, _version) = (f.size(2)?, f.size(2)?, f.number(2)?);
    let (kind, rotation) = (f.number(1)? as u8, f.number(1)? as u8);
    let (k, m, width, groups) = (f.size(2)?, f.size(2)?, f.size(2)?, f.size(2)?);
    let (_spare, _code, strip) = (f.number(2)?, f.number(2)?, f.number(4)?);
    f.reserved(16)?;
    let range = Range {
        array_start,
        array_bytes,
        drive_start,
        first_slot,
        first_group,
        kind,
        rotation,
        k,
        m,
        groups,
        strip,
    };
    (width == k + m).then_some(range)
}

fn slot_entry(f: &mut Fields<'_>, strip: u64) -> Option<SlotEntry> {
    let drive = f.id()?;
    let (state, serial) = (f.number(1)?, f.size(1)?);
    f.reserved(6)?;
    let border = f.number(8)?;
    let last = Epoch { counter: f.number(8)?, id: f.number(8)? };
    let whole = f.number(8)?;
    f.text(serial)?;
    let state = match state {
        0 => State::InSync,
        1 => State::Rebuilding(border * strip),
        2 => State::Failed,
        _ => return None,
    };
    Some(SlotEntry { drive, state, last, whole })
}

fn group_entry(f: &mut Fields<'_>) -> Option<GroupEntry> {
    let (unclean, loss_accepted) = (f.number(1)? == 1, f.number(1)? == 1);
    let guarded = f.number(1)? == 1;
    f.reserved(5)?;
    Some(GroupEntry { unclean, loss_accepted, guarded })
}

fn volume_entry(f: &mut Fields<'_>) -> Option<VolumeEntry> {
    f.id()?;
    let bytes = f.number(8)?;
    let (extents, name) = (f.size(2)?, f.size(1)?);
    f.reserved(5)?;
    let name = f.text(name)?;
    let extents =
        (0..extents).map(|_| Some((f.number(8)?, f.number(8)?))).collect::<Option<_>>()?;
    Some(VolumeEntry { name, bytes, extents })
}

fn export_entry(f: &mut Fields<'_>) -> Option<()> {
    f.take(16 + 4 + 2)?;
    let address = f.size(2)?;
    f.take(address).map(|_| ())
}

/// Ranges of array addresses: where each begins, and its bytes.
type Ranges = Vec<(u64, u64)>;

/// All that is lost, and what of it has the reason crash.
fn lost_ranges(f: &mut Fields<'_>) -> Option<(Ranges, Ranges)> {
    let (mut lost, mut crashed) = (Ranges::new(), Ranges::new());
    let count = f.number(4)?;
    f.reserved(4)?;
    for _ in 0..count {
        let range = (f.number(8)?, f.number(4)? * 512);
        lost.push(range);
        if f.number(1)? == CRASH {
            crashed.push(range);
        }
        f.reserved(3)?;
    }
    Some((lost, crashed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_polynomial() {
        let bytes: Vec<u8> = (0..1u32 << 18).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
        for length in (0..300).chain(4000..4200).chain([65_536, 262_143, 262_144]) {
            let slow = bytes[..length].iter().fold(!0u32, |crc, byte| {
                (0..8).fold(crc ^ u32::from(*byte), |v, _| {
                    v >> 1 ^ if v & 1 == 1 { 0x82f6_3b78 } else { 0 }
                })
            });
            assert_eq!(crc(&bytes[..length]), !slow, "{length} bytes");
        }
        assert_eq!(crc(b"123456789"), 0xe306_9283);
    }
}
