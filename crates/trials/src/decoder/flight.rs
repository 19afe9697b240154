//! Writes in flight, read as docs/format.md has it: what a start decides of the columns that
//! in-flight pages name.
//!
//! Invariant: only pages that count are looked at. A block outside the columns that they name is
//! neither lost nor changed, and no drive's own page is: what is made anew lies beside it.

use super::array::{Decoded, Seat, stripes};
use super::code::{self, Page};
use super::record::{Fields, crc};
use super::{PAGE, Raw};
use std::collections::BTreeMap;

const HEADER: usize = 128;
/// Largest page.
const MOST: u64 = 65536;

/// Columns of a stripe of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Columns {
    /// The group.
    pub group: usize,
    /// The stripe.
    pub stripe: u64,
    /// The first byte of each strip.
    pub from: u64,
    /// The byte behind the last.
    pub to: u64,
}

/// Pages of drives, by slot and number, with blocks that a start makes anew, and which 512 bytes of
/// each these are, a bit for each.
pub type Anew = BTreeMap<(usize, u64), (Box<Page>, u8)>;

/// The newest page of each lane: its sequence number, where it begins, and what it names.
type Newest = BTreeMap<u64, (u64, u64, Vec<Columns>)>;

/// What the pages say that count.
#[derive(Clone, Default, Debug)]
pub struct Said {
    /// How many there are: one of each lane that has any.
    pub pages: usize,
    /// The columns that they name.
    pub named: Vec<Columns>,
    /// The most drives that are blind at a place where none of them begins.
    pub blind: usize,
}

/// What the pages say that count.
pub fn read<R: Raw>(array: &Decoded<'_, R>) -> Said {
    let record = &array.record;
    if record.key == 0 {
        return Said::default();
    }
    let areas = record.areas;
    let mut newest = Newest::new();
    let mut blind = BTreeMap::<u64, usize>::new();
    for slot in 0..record.slots.len() {
        let Some(drive) = array.drives[slot].filter(|_| array.counts(slot)) else { continue };
        for at in (0..areas.journal_bytes).step_by(PAGE) {
            let area = (areas.journal_start, areas.journal_bytes);
            *blind.entry(at).or_default() += usize::from(is_blind(drive, area, at));
            let Some((lane, sequence, named)) = page(array, drive, area, at) else { continue };
            let known = newest.entry(lane).or_default();
            if sequence > known.0 {
                *known = (sequence, at, named);
            }
        }
    }
    blind.retain(|at, _| !newest.values().any(|page| page.1 == *at));
    let pages = newest.len();
    let named = newest.into_values().flat_map(|(_, _, named)| named).collect();
    Said { pages, named, blind: blind.into_values().max().unwrap_or(0) }
}

/// Whether a drive can't say if a page begins at an offset of the journal area.
fn is_blind<R: Raw>(drive: &R, (start, bytes): (u64, u64), at: u64) -> bool {
    if drive.unreadable(start + at, PAGE as u64) {
        return true;
    }
    let begin = drive.page((start + at) / PAGE as u64);
    let size = Fields(&begin[64..]).number(4).unwrap_or(0);
    let sized = size.is_multiple_of(PAGE as u64) && size > 0 && size <= MOST;
    sized && &begin[..8] == b"PALIFLGT" && drive.unreadable(start + at, size.min(bytes - at))
}

/// What is lost, as array addresses and bytes; what is made anew is kept beside the drives' pages.
pub fn carry_out<R: Raw>(array: &mut Decoded<'_, R>) -> Vec<(u64, u64)> {
    let block = array.record.block;
    let mut lost = Vec::new();
    for columns in array.flight.named.clone() {
        let Some(seat) = means_something(array, columns) else { continue };
        for at in (columns.from..columns.to).step_by(block as usize) {
            settle(array, Seat { at, ..seat }, block, &mut lost);
        }
    }
    lost
}

/// The page at an offset of a drive's journal area: its lane, sequence number and columns.
fn page<R: Raw>(
    array: &Decoded<'_, R>,
    drive: &R,
    (start, bytes): (u64, u64),
    at: u64,
) -> Option<(u64, u64, Vec<Columns>)> {
    let begin = drive.page((start + at) / PAGE as u64);
    if &begin[..8] != b"PALIFLGT" || drive.unreadable(start + at, PAGE as u64) {
        return None;
    }
    let size = Fields(&begin[64..]).number(4)?;
    let whole = size.is_multiple_of(PAGE as u64) && size > 0 && size <= MOST.min(bytes - at);
    if !whole || drive.unreadable(start + at, size) {
        return None;
    }
    let mut bytes = drive.copy(start + at, size as usize);
    let said = Fields(&bytes[HEADER - 4..]).number(4)? as u32;
    bytes[HEADER - 4..HEADER].fill(0);
    let f = &mut Fields(&bytes[8..]);
    let (id, group, lane) = (f.id()?, f.size(2)?, f.number(2)?);
    let (entries, sequence, key) = (f.number(4)?, f.number(8)?, f.number(8)?);
    let (_epoch, place, _size) = (f.number(8)?, f.number(8)?, f.number(4)?);
    f.reserved(60)?;
    let record = &array.record;
    let mine = id == record.array && place == at && key == record.key && sequence > 0;
    if !mine || crc(&bytes) != said {
        return None;
    }
    let entry = |_| {
        let (stripe, from, to) = (f.number(8)?, f.number(4)?, f.number(4)?);
        Some(Columns { group, stripe, from, to })
    };
    let named = (0..entries).map(entry).collect::<Option<_>>()?;
    f.reserved(f.0.len())?;
    Some((lane, sequence, named))
}

/// The stripe of columns that mean something, in a group that is to be carried out.
fn means_something<R: Raw>(array: &Decoded<'_, R>, columns: Columns) -> Option<Seat> {
    let Columns { group, stripe, from, to } = columns;
    let seat = array.seat_of(group, stripe)?;
    let (r, block) = (&array.record.ranges[seat.range], array.record.block);
    let inside = stripe < stripes(r) && from < to && to <= r.strip;
    let blocks = from.is_multiple_of(block) && to.is_multiple_of(block);
    let written = array.written(&seat) && array.dirty(&seat);
    (inside && blocks && array.carried(group) && written).then_some(seat)
}

/// The 512 bytes of a page that these bytes of it are, a bit for each.
pub(super) fn blocks(at: u64, bytes: u64) -> u8 {
    let from = at % PAGE as u64 / 512;
    (from..from + bytes / 512).fold(0, |bits, i| bits | 1 << i)
}

/// A page of a strip of which the block at the seat can be read; nothing is said of the rest.
fn held<R: Raw>(array: &Decoded<'_, R>, seat: &Seat, strip: usize, block: u64) -> Option<Page> {
    let slot = array.slot(seat, strip);
    let drive = array.drives[slot].filter(|_| array.counts(slot))?;
    let at = array.drive_offset(seat) + seat.at;
    let number = at / PAGE as u64;
    let (own, all) = (!drive.unreadable(at, block), blocks(at, block));
    match array.overlay.get(&(slot, number)) {
        Some((page, made)) => (own || made & all == all).then_some(**page),
        None => own.then(|| *drive.page(number)),
    }
}

/// Decides what a block of all strips of a stripe holds.
fn settle<R: Raw>(array: &mut Decoded<'_, R>, seat: Seat, block: u64, lost: &mut Vec<(u64, u64)>) {
    let r = &array.record.ranges[seat.range];
    let (k, m) = (r.k, r.m);
    let within = (seat.at % PAGE as u64) as usize..(seat.at % PAGE as u64 + block) as usize;
    let strips: Vec<Option<Page>> = (0..k + m).map(|s| held(array, &seat, s, block)).collect();
    let mut data: Vec<Option<&Page>> = strips[..k].iter().map(Option::as_ref).collect();
    let unknown: Vec<usize> = (0..k).filter(|s| data[*s].is_none()).collect();
    let address = |strip: usize| array.address(&seat, strip);
    let parity = |i: usize| strips.get(k + i).and_then(Option::as_ref);
    let listed = |at: u64| array.record.lost.iter().any(|(a, n)| *a < at + block && at < a + n);
    let both = match (&unknown[..], parity(0), parity(1)) {
        ([one], Some(p), Some(q)) if !listed(address(*one)) => {
            let by = |parity| code::recover(&data, parity).expect("one is unknown").remove(0);
            let (by_p, by_q) = (by([Some(p), None]), by([None, Some(q)]));
            (by_p[within.clone()] == by_q[within.clone()]).then_some(by_p)
        }
        _ => None,
    };
    let zero = [0; PAGE];
    let mut anew: Vec<(usize, Page)> = Vec::new();
    match &both {
        Some(page) => {
            data[unknown[0]] = Some(page);
            anew.push((unknown[0], *page));
        }
        None => {
            lost.extend(unknown.iter().map(|strip| (address(*strip), block)));
            unknown.iter().for_each(|strip| data[*strip] = Some(&zero));
            anew.extend(unknown.iter().map(|strip| (*strip, zero)));
        }
    }
    anew.push((k, code::p(&data)));
    if m > 1 {
        anew.push((k + 1, code::q(&data)));
    }
    let number = (array.drive_offset(&seat) + seat.at) / PAGE as u64;
    let made = blocks(seat.at, block);
    for (strip, page) in anew {
        let slot = array.slot(&seat, strip);
        let Some(own) = array.drives[slot].filter(|_| array.counts(slot)) else { continue };
        let before =
            array.overlay.get(&(slot, number)).map_or(*own.page(number), |(page, _)| **page);
        let place = array.anew.entry((slot, number)).or_insert_with(|| (Box::new(before), 0));
        place.0[within.clone()].copy_from_slice(&page[within.clone()]);
        place.1 |= made;
    }
}
