//! The journal, read as docs/format.md has it: what a start writes in place before anything else.
//!
//! Where a batch is missing that was durable, none is carried out: the array is not started.
//!
//! Invariant: only batches that count are carried out, lane by lane in their order; what they write
//! lies beside the drives' own pages, which stay as they are.

use super::array::Decoded;
use super::flight::blocks;
use super::record::{Fields, Id, crc};
use super::{PAGE, Raw};
use std::collections::{BTreeMap, BTreeSet};

const HEADER: usize = 128;

/// Pages of drives, by slot and number, as the journal makes them, and which 512 bytes of each it
/// makes, a bit for each.
pub type Overlay = BTreeMap<(usize, u64), (Box<[u8; PAGE]>, u8)>;

/// New bytes of a strip.
struct Patch {
    group: usize,
    stripe: u64,
    strip: usize,
    from: u64,
    drive: u64,
    data: Vec<u8>,
}

/// A batch that is whole, has the record's key, and whose group is guarded.
struct Batch {
    group: usize,
    tail: u64,
    epoch: u64,
    patches: Vec<Patch>,
    /// The slots whose drives have it, and where it stands there.
    on: Vec<(usize, u64)>,
}

/// By lane and sequence number.
type Batches = BTreeMap<(u64, u64), Batch>;

/// The slots whose drives have each batch that counts, by lane and sequence number, and where on
/// these it stands.
pub type Standing = BTreeMap<(u64, u64), Vec<(usize, u64)>>;

/// What the journal makes of the pages of the drives of an array; and the groups in whose journal
/// there is a gap.
pub fn carry_out<R: Raw>(array: &Decoded<'_, R>) -> (Overlay, BTreeSet<usize>) {
    let (mut overlay, batches) = (Overlay::new(), counting(array));
    let gaps = gaps(&batches);
    for batch in batches.values().filter(|_| gaps.is_empty()) {
        batch.patches.iter().for_each(|patch| put(array, patch, &mut overlay));
    }
    (overlay, gaps)
}

/// Where the batches that count stand.
pub fn standing<R: Raw>(array: &Decoded<'_, R>) -> Standing {
    counting(array).into_iter().map(|(number, batch)| (number, batch.on)).collect()
}

/// The groups of lanes that lack a number between the largest tail and the newest.
fn gaps(batches: &Batches) -> BTreeSet<usize> {
    let mut lanes = BTreeMap::<u64, (u64, u64, u64, usize)>::new();
    for ((lane, sequence), batch) in batches {
        let (tail, newest, count, group) = lanes.entry(*lane).or_default();
        (*tail, *newest) = (batch.tail.max(*tail), *sequence);
        (*count, *group) = (*count + 1, batch.group);
    }
    let lacks = |(tail, newest, count, _): &(u64, u64, u64, usize)| newest - tail + 1 != *count;
    lanes.into_values().filter(lacks).map(|(.., group)| group).collect()
}

/// The batches that count.
fn counting<R: Raw>(array: &Decoded<'_, R>) -> Batches {
    let record = &array.record;
    let mut found = Batches::new();
    if record.key == 0 {
        return found;
    }
    let areas = record.areas;
    for slot in 0..record.slots.len() {
        let Some(drive) = array.drives[slot].filter(|_| array.counts(slot)) else { continue };
        let mut at = 0;
        while at + PAGE as u64 <= areas.journal_bytes {
            let area = (areas.journal_start, areas.journal_bytes);
            if let Some((number, mut batch)) = batch(array, drive, area, at) {
                let known = found.remove(&number).filter(|known| known.epoch >= batch.epoch);
                let on = (batch.epoch, (slot, areas.journal_start + at));
                batch = known.unwrap_or(batch);
                batch.on.extend(Some(on.1).filter(|_| on.0 == batch.epoch));
                found.insert(number, batch);
            }
            at += PAGE as u64;
        }
    }
    let mut tails = BTreeMap::new();
    for ((lane, _), batch) in &found {
        let tail = tails.entry(*lane).or_insert(0);
        *tail = batch.tail.max(*tail);
    }
    found.retain(|(lane, sequence), _| *sequence >= tails[lane]);
    found
}

/// The batch at an offset of a drive's journal area, with its lane and sequence number.
fn batch<R: Raw>(
    array: &Decoded<'_, R>,
    drive: &R,
    (start, bytes): (u64, u64),
    at: u64,
) -> Option<((u64, u64), Batch)> {
    let page = PAGE as u64;
    let begin = drive.page((start + at) / page);
    if &begin[..8] != b"PALIJRNL" || drive.unreadable(start + at, page) {
        return None;
    }
    let sizes = &mut Fields(&begin[72..80]);
    let (head, payload) = (sizes.number(4)?, sizes.number(4)?);
    let whole = |n: u64| n.is_multiple_of(page) && n <= bytes - at;
    let fits = head > 0 && whole(head) && whole(payload) && head + payload <= bytes - at;
    if !fits || drive.unreadable(start + at, head + payload) {
        return None;
    }
    let f = &mut Fields(&begin[8..]);
    let (id, group, lane) = (f.id()?, f.size(2)?, f.number(2)?);
    let (entries, sequence, tail, key) = (f.number(4)?, f.number(8)?, f.number(8)?, f.number(8)?);
    let (epoch, place, _sizes) = (f.number(8)?, f.number(8)?, f.number(8)?);
    let payload_crc = f.number(4)? as u32;
    f.reserved(40)?;
    let head_crc = f.number(4)? as u32;
    let record = &array.record;
    let guarded = record.groups.get(group).is_some_and(|g| g.guarded && g.unclean);
    let mine = id == record.array && place == at && key == record.key && guarded;
    if !mine || tail == 0 || tail > sequence || sequence >= 1 << 60 {
        return None;
    }
    let mut bytes = drive.copy(start + at, (head + payload) as usize);
    let payload = bytes.split_off(head as usize);
    bytes[HEADER - 4..HEADER].fill(0);
    if crc(&bytes) != head_crc || crc(&payload) != payload_crc {
        return None;
    }
    let f = &mut Fields(&bytes[HEADER..]);
    let mut patches = Vec::new();
    let mut rest = Fields(&payload);
    for _ in 0..entries {
        entry(f, group, &mut rest, &mut patches)?;
    }
    f.reserved(f.0.len())?;
    Some(((lane, sequence), Batch { group, tail, epoch, patches, on: Vec::new() }))
}

/// An entry and the bytes of its ranges.
fn entry(
    f: &mut Fields<'_>,
    group: usize,
    payload: &mut Fields<'_>,
    patches: &mut Vec<Patch>,
) -> Option<()> {
    if f.number(1)? != 1 {
        return None;
    }
    f.reserved(3)?;
    let (ranges, stripe) = (f.number(4)?, f.number(8)?);
    for _ in 0..ranges {
        let strip = f.size(2)?;
        f.reserved(2)?;
        let (from, bytes) = (f.number(4)?, f.size(4)?);
        f.reserved(4)?;
        let drive = f.number(8)?;
        let data = payload.take(bytes)?.to_vec();
        patches.push(Patch { group, stripe, strip, from, drive, data });
    }
    Some(())
}

/// What a batch calls a drive.
fn name(drive: &Id) -> u64 {
    drive[..8].iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b))
}

/// Writes new bytes over the page or pages that have them now.
fn put<R: Raw>(array: &Decoded<'_, R>, patch: &Patch, overlay: &mut Overlay) {
    let Some(seat) = array.seat_of(patch.group, patch.stripe) else { return };
    let slot = array.slot(&seat, patch.strip);
    let Some(drive) = array.drives[slot] else { return };
    let changed = array.written(&seat) && array.dirty(&seat);
    if name(&array.record.slots[slot].drive) != patch.drive || !changed {
        return;
    }
    let mut at = array.drive_offset(&seat) + patch.from;
    let mut rest = &patch.data[..];
    while !rest.is_empty() {
        let (number, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
        let (now, behind) = rest.split_at(rest.len().min(PAGE - within));
        let before = || (Box::new(*drive.page(number)), 0);
        let (page, made) = overlay.entry((slot, number)).or_insert_with(before);
        page[within..within + now.len()].copy_from_slice(now);
        *made |= blocks(at, now.len() as u64);
        at += now.len() as u64;
        rest = behind;
    }
}
