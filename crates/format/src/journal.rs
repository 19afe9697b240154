//! The journal (D6): batches of redo records in the journal area of each drive. Code of
//! `docs/format.md`, section "The journal".
//!
//! A *batch* is what one write puts into the journal: a head with entries, and behind it the
//! payload, the bytes that the entries' ranges stand for, one after the other. Every batch begins
//! at a multiple of [`BATCH_ALIGN`] and says where it stands, so that a reader finds all of them
//! by looking at every such place, whoever wrote them and however many lanes there were.
//!
//! Invariants
//! - A batch whose head or payload is not as it was written does not count.
//! - Hosts choose the payload, so a payload may look like a head. It never counts as one: a head
//!   must name the array's journal key, 64 random bits that no host is told.

use crate::FormatError;
use crate::codec::{Reader, Writer};
use crate::limits::{
    BATCH_ALIGN, BATCH_HEADER_BYTES, COUNTERS_END, ENTRY_BYTES, JOURNAL_MAGIC, JOURNAL_RANGE_BYTES,
};
use units::{GroupNo, Uuid};

/// New bytes for a run of one strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripRange {
    /// The strip within its stripe.
    pub strip: u16,
    /// First byte within the strip.
    pub from: u32,
    /// How many.
    pub bytes: u32,
    /// Which drive held the strip's slot: the first 8 bytes of its UUID ([`drive_tag`]).
    pub drive: u64,
}

/// What is about to be written to one stripe, parity included. The only kind there is yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redo {
    /// The stripe within the group.
    pub stripe: u64,
    /// The ranges, in the order of their payload.
    pub ranges: Vec<StripRange>,
}

/// What one write puts into the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The group.
    pub group: GroupNo,
    /// The lane: batches of one lane have an order.
    pub lane: u16,
    /// Counts the batches of the lane, from 1.
    pub sequence: u64,
    /// Batches of the lane before this one are not needed any more.
    pub tail: u64,
    /// The array's journal key when it was written.
    pub key: u64,
    /// The epoch in which it was written.
    pub epoch: u64,
    /// The entries, in their order; none: the batch moves the tail.
    pub entries: Vec<Redo>,
}

impl Batch {
    /// Bytes of the head.
    pub fn head_bytes(&self) -> usize {
        let ranges: usize = self.entries.iter().map(|e| e.ranges.len()).sum();
        head_bytes(self.entries.len(), ranges)
    }

    /// Bytes of the payload, without what fills it up.
    pub fn payload_bytes(&self) -> u64 {
        self.entries.iter().flat_map(|e| &e.ranges).map(|r| u64::from(r.bytes)).sum()
    }
}

/// Bytes of a head with so many entries and ranges.
pub const fn head_bytes(entries: usize, ranges: usize) -> usize {
    (BATCH_HEADER_BYTES + entries * ENTRY_BYTES + ranges * JOURNAL_RANGE_BYTES)
        .next_multiple_of(BATCH_ALIGN)
}

/// How a range names the drive that holds it.
pub fn drive_tag(drive: Uuid) -> u64 {
    u64::from_le_bytes(*drive.0.first_chunk().expect("a UUID has 16 bytes"))
}

/// The CRC of a payload whose parts lie apart; `so_far` is that of the parts before, 0 at first.
pub fn payload_crc(so_far: u32, part: &[u8]) -> u32 {
    parity::crc32c(so_far, part)
}

/// The array, and where in the journal area of its drives, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The array.
    pub array: Uuid,
    /// Bytes from the begin of the area.
    pub at: u64,
}

/// A head as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// What it says.
    pub batch: Batch,
    /// Its bytes; the payload begins behind them.
    pub head_bytes: usize,
    /// The payload's bytes, with what fills it up.
    pub payload_bytes: usize,
    crc: u32,
}

impl Head {
    /// Whether this is the payload as it was written.
    pub fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes && payload_crc(0, payload) == self.crc
    }
}

const CRC_AT: usize = BATCH_HEADER_BYTES - 4;
const KIND_REDO: u8 = 1;

/// The bytes of a batch's head; `crc` is that of its payload, filled up with zeros to a multiple
/// of [`BATCH_ALIGN`].
pub fn encode(place: Place, batch: &Batch, crc: u32) -> Vec<u8> {
    let payload = batch.payload_bytes().next_multiple_of(BATCH_ALIGN as u64);
    let mut out = Writer::default();
    out.0.extend(JOURNAL_MAGIC);
    out.uuid(place.array);
    out.u16(batch.group.0);
    out.u16(batch.lane);
    out.u32(u32::try_from(batch.entries.len()).expect("few"));
    out.u64(batch.sequence);
    out.u64(batch.tail);
    out.u64(batch.key);
    out.u64(batch.epoch);
    out.u64(place.at);
    out.u32(u32::try_from(batch.head_bytes()).expect("a lane is smaller"));
    out.u32(u32::try_from(payload).expect("a lane is smaller"));
    out.u32(crc);
    out.zeros(BATCH_HEADER_BYTES - out.0.len());
    for entry in &batch.entries {
        out.u8(KIND_REDO);
        out.zeros(3);
        out.u32(u32::try_from(entry.ranges.len()).expect("few"));
        out.u64(entry.stripe);
        for range in &entry.ranges {
            out.u16(range.strip);
            out.zeros(2);
            out.u32(range.from);
            out.u32(range.bytes);
            out.zeros(4);
            out.u64(range.drive);
        }
    }
    out.zeros(batch.head_bytes() - out.0.len());
    let crc = parity::crc32c(0, &out.0);
    out.0[CRC_AT..BATCH_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    out.0
}

/// Whether a batch under this key may begin with these bytes, by the fields that stand at fixed
/// places. Hosts choose what payloads hold, but not the key: with it nobody takes the time for the
/// checksum of what only looks like a batch.
pub fn may_begin(bytes: &[u8], place: Place, key: u64) -> bool {
    stands(bytes, JOURNAL_MAGIC, place, [48, 64]).is_some_and(|found| found == key && key != 0)
}

/// The key of what may begin with these bytes, if magic, array and place are right; the key, and
/// where it begins, are at `key_at` and `place_at`.
pub(crate) fn stands(
    bytes: &[u8],
    magic: [u8; 8],
    place: Place,
    [key_at, place_at]: [usize; 2],
) -> Option<u64> {
    let number = |at: usize| Reader(bytes.get(at..at + 8)?).u64().ok();
    let mine = bytes.starts_with(&magic) && bytes.get(8..24)? == place.array.0;
    (mine && number(place_at)? == place.at).then_some(number(key_at)?)
}

/// Reads the head of a batch that may begin with these bytes, as much as there is behind its
/// place; `None` if none does, or not all of the head is there.
pub fn decode(bytes: &[u8], place: Place) -> Option<Head> {
    stands(bytes, JOURNAL_MAGIC, place, [48, 64])?;
    let size = Reader(bytes.get(72..76)?).u32().ok()? as usize;
    if size < BATCH_HEADER_BYTES || !size.is_multiple_of(BATCH_ALIGN) {
        return None;
    }
    let head = bytes.get(..size)?;
    let crc = parity::crc32c(0, &head[..CRC_AT]);
    let crc = parity::crc32c(crc, &[0; 4]);
    let crc = parity::crc32c(crc, &head[BATCH_HEADER_BYTES..]);
    if head[CRC_AT..BATCH_HEADER_BYTES] != crc.to_le_bytes() {
        return None;
    }
    read(&mut Reader(&head[JOURNAL_MAGIC.len()..]), place, size).ok().flatten()
}

fn read(
    from: &mut Reader<'_>,
    place: Place,
    head_bytes: usize,
) -> Result<Option<Head>, FormatError> {
    let array = from.uuid()?;
    let (group, lane, entries) = (GroupNo(from.u16()?), from.u16()?, from.u32()? as usize);
    let (sequence, tail, key, epoch) = (from.u64()?, from.u64()?, from.u64()?, from.u64()?);
    let mine = Place { array, at: from.u64()? } == place;
    from.u32()?;
    let (payload_bytes, crc) = (from.u32()? as usize, from.u32()?);
    from.zeros(CRC_AT - 84)?;
    from.u32()?;
    let mut batch =
        Batch { group, lane, sequence, tail, key, epoch, entries: Vec::with_capacity(0) };
    for _ in 0..entries {
        batch.entries.push(redo(from)?);
    }
    from.zeros(from.0.len())?;
    let payload = batch.payload_bytes().next_multiple_of(BATCH_ALIGN as u64);
    let fits = batch.head_bytes() == head_bytes && payload == payload_bytes as u64;
    let ordered = (1..=sequence).contains(&tail) && sequence < COUNTERS_END;
    let right = mine && fits && ordered && key != 0;
    Ok(right.then_some(Head { batch, head_bytes, payload_bytes, crc }))
}

fn redo(from: &mut Reader<'_>) -> Result<Redo, FormatError> {
    if from.u8()? != KIND_REDO {
        return Err(FormatError::Invalid("the kind of a journal entry is not known"));
    }
    from.zeros(3)?;
    let (count, stripe) = (from.u32()? as usize, from.u64()?);
    let mut ranges = Reader(from.bytes(count.saturating_mul(JOURNAL_RANGE_BYTES))?);
    let mut entry = Redo { stripe, ranges: Vec::with_capacity(count) };
    for _ in 0..count {
        let strip = ranges.u16()?;
        ranges.zeros(2)?;
        let (first, bytes) = (ranges.u32()?, ranges.u32()?);
        ranges.zeros(4)?;
        entry.ranges.push(StripRange { strip, from: first, bytes, drive: ranges.u64()? });
    }
    Ok(entry)
}
