//! In-flight pages: which columns of stripes of a whole parity group are being written. Code of
//! `docs/format.md`, section "Writes in flight".
//!
//! Invariants
//! - A page of which a part is not as it was written does not count.
//! - Encoding allocates nothing: it runs beside the writes that it tells of.

use crate::codec::Reader;
use crate::journal::{Place, stands};
use crate::limits::{
    BATCH_ALIGN, COUNTERS_END, FLIGHT_BYTES_MAX, FLIGHT_ENTRY_BYTES, FLIGHT_HEADER_BYTES,
    FLIGHT_MAGIC,
};
use units::GroupNo;

/// A byte range, the same in every strip of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Columns {
    /// The stripe within the group.
    pub stripe: u64,
    /// First byte within each strip.
    pub from: u32,
    /// The byte behind the last.
    pub to: u32,
}

/// What a page says beside its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHead {
    /// The group.
    pub group: GroupNo,
    /// The lane: of each only the newest page counts.
    pub lane: u16,
    /// Counts the pages of the lane, from 1.
    pub sequence: u64,
    /// The array's journal key when it was written.
    pub key: u64,
    /// The epoch in which it was written.
    pub epoch: u64,
}

/// A page as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlightPage {
    /// What it says of itself.
    pub head: PageHead,
    /// The columns that were being written.
    pub entries: Vec<Columns>,
    /// Its bytes on the drive.
    pub bytes: usize,
}

/// Bytes of a page with so many entries.
pub const fn page_bytes(entries: usize) -> usize {
    (FLIGHT_HEADER_BYTES + entries * FLIGHT_ENTRY_BYTES).next_multiple_of(BATCH_ALIGN)
}

/// Most entries of a page of so many bytes.
pub const fn page_entries(bytes: usize) -> usize {
    bytes.saturating_sub(FLIGHT_HEADER_BYTES) / FLIGHT_ENTRY_BYTES
}

const CRC_AT: usize = FLIGHT_HEADER_BYTES - 4;

/// Writes a page of `count` entries over `out`, which has [`page_bytes`] of them.
///
/// # Panics
/// If there are more or fewer entries, or `out` has no room for them.
pub fn encode(
    place: Place,
    head: &PageHead,
    count: usize,
    entries: impl Iterator<Item = Columns>,
    out: &mut [u8],
) {
    out.fill(0);
    let count = u32::try_from(count).expect("few");
    let bytes = u32::try_from(out.len()).expect("a page is small");
    out[..8].copy_from_slice(&FLIGHT_MAGIC);
    out[8..24].copy_from_slice(&place.array.0);
    out[24..26].copy_from_slice(&head.group.0.to_le_bytes());
    out[26..28].copy_from_slice(&head.lane.to_le_bytes());
    out[28..32].copy_from_slice(&count.to_le_bytes());
    for (at, value) in [(32, head.sequence), (40, head.key), (48, head.epoch), (56, place.at)] {
        out[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    out[64..68].copy_from_slice(&bytes.to_le_bytes());
    let places = out[FLIGHT_HEADER_BYTES..].chunks_exact_mut(FLIGHT_ENTRY_BYTES);
    let mut written = 0;
    for (into, entry) in places.zip(entries) {
        into[..8].copy_from_slice(&entry.stripe.to_le_bytes());
        into[8..12].copy_from_slice(&entry.from.to_le_bytes());
        into[12..16].copy_from_slice(&entry.to.to_le_bytes());
        written += 1;
    }
    assert_eq!(written, count, "every entry has its place");
    let crc = parity::crc32c(0, out);
    out[CRC_AT..FLIGHT_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}

/// The bytes that a page says it has, which may begin with these; `None` if none does. Nothing else
/// of it was looked at.
pub fn said_bytes(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(&FLIGHT_MAGIC) {
        return None;
    }
    let size = Reader(bytes.get(64..68)?).u32().ok()? as usize;
    let sizes = FLIGHT_HEADER_BYTES..=FLIGHT_BYTES_MAX;
    (sizes.contains(&size) && size.is_multiple_of(BATCH_ALIGN)).then_some(size)
}

/// Whether a page under this key may begin with these bytes, by the fields that stand at fixed
/// places ([`crate::journal::may_begin`]).
pub fn may_begin(bytes: &[u8], place: Place, key: u64) -> bool {
    stands(bytes, FLIGHT_MAGIC, place, [40, 56]).is_some_and(|found| found == key && key != 0)
}

/// Reads the page that may begin with these bytes, as much as there is behind its place; `None` if
/// none does, or not all of it is there.
pub fn decode(bytes: &[u8], place: Place) -> Option<FlightPage> {
    let size = said_bytes(bytes)?;
    stands(bytes, FLIGHT_MAGIC, place, [40, 56])?;
    let page = bytes.get(..size)?;
    let crc = parity::crc32c(0, &page[..CRC_AT]);
    let crc = parity::crc32c(crc, &[0; 4]);
    let crc = parity::crc32c(crc, &page[FLIGHT_HEADER_BYTES..]);
    if page[CRC_AT..FLIGHT_HEADER_BYTES] != crc.to_le_bytes() {
        return None;
    }
    let from = &mut Reader(&page[FLIGHT_MAGIC.len()..]);
    let array = from.uuid().ok()?;
    let (group, lane) = (GroupNo(from.u16().ok()?), from.u16().ok()?);
    let count = from.u32().ok()? as usize;
    let (sequence, key) = (from.u64().ok()?, from.u64().ok()?);
    let (epoch, at) = (from.u64().ok()?, from.u64().ok()?);
    from.u32().ok()?;
    from.zeros(CRC_AT - 68).ok()?;
    from.u32().ok()?;
    let right = Place { array, at } == place && key != 0;
    let right = right && (1..COUNTERS_END).contains(&sequence);
    if !right || count > page_entries(size) || page_bytes(count) != size {
        return None;
    }
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let (stripe, from, to) = (from.u64().ok()?, from.u32().ok()?, from.u32().ok()?);
        if from >= to {
            return None;
        }
        entries.push(Columns { stripe, from, to });
    }
    from.zeros(from.0.len()).ok()?;
    let head = PageHead { group, lane, sequence, key, epoch };
    Some(FlightPage { head, entries, bytes: size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Uuid;

    fn page(entries: &[Columns]) -> (Place, PageHead, Vec<u8>) {
        let place = Place { array: Uuid::from_random([7; 16]), at: 3 * 4096 };
        let head = PageHead { group: GroupNo(0), lane: 2, sequence: 9, key: 0x0102, epoch: 0x0304 };
        let mut out = vec![1; page_bytes(entries.len())];
        encode(place, &head, entries.len(), entries.iter().copied(), &mut out);
        (place, head, out)
    }

    #[test]
    fn a_page_is_as_the_document_has_it() {
        let entry = Columns { stripe: 0x0506, from: 512, to: 4096 };
        let (place, head, image) = page(&[entry]);
        assert_eq!(image.len(), 4096);
        assert_eq!(&image[..8], b"PALIFLGT");
        assert_eq!(image[24..32], [0, 0, 2, 0, 1, 0, 0, 0]);
        assert_eq!(
            (image[32], image[40..42].to_vec(), image[56..58].to_vec()),
            (9, vec![2, 1], vec![0, 0x30])
        );
        assert_eq!(image[64..68], [0, 0x10, 0, 0]);
        assert_eq!(image[128..144], [6, 5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0x10, 0, 0]);
        let found = decode(&image, place).unwrap();
        assert_eq!(found, FlightPage { head, entries: vec![entry], bytes: 4096 });
        assert_eq!(decode(&image, Place { at: 4096, ..place }), None, "it stands elsewhere");
        assert_eq!((page_bytes(248), page_bytes(249), page_entries(4096)), (4096, 8192, 248));
        assert_eq!(page_entries(FLIGHT_BYTES_MAX), 4088);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let many: Vec<_> = (0..300).map(|i| Columns { stripe: i, from: 0, to: 512 }).collect();
        let (place, head, mut image) = page(&many);
        assert_eq!(decode(&image, place).map(|p| (p.head, p.entries)), Some((head, many)));
        for bit in (0..image.len() * 8).step_by(7) {
            image[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&image, place), None, "bit {bit}");
            image[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(decode(&image[..4096], place), None, "a part is missing");
        let (place, _, image) = page(&[Columns { stripe: 1, from: 5, to: 5 }]);
        assert_eq!(decode(&image, place), None, "an empty range");
    }
}
