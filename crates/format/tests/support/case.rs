//! Cases of the fuzz targets: bytes that a drive may hold, with their checksums made right.
//!
//! Purpose: whatever a drive holds, reading it ends, with a value that keeps every rule of the
//! format or with an error. Random bytes end at a checksum that is wrong, so the checksums are put
//! right first, most of the time; everything behind them is the input's choice.

use palisade_format::flight;
use palisade_format::journal::{self, Head, Place};
use palisade_format::region::{self, PageId};
use palisade_format::{
    ArrayRecord, AssembleOptions, FormatError, Found, assemble, decode, encode, foreign_signature,
    limits, newest,
};
use units::{GroupNo, Slot, Uuid};

/// CRC-32C of the bytes. That it is the polynomial of the document is tested in `parity`.
fn crc32c(bytes: &[u8]) -> u32 {
    parity::crc32c(0, bytes)
}

/// Puts magic, length and checksums of a record slot right, if it is long enough for them.
fn mend_record(image: &mut [u8]) {
    let header = limits::HEADER_BYTES;
    let Some(body) = image.len().checked_sub(header) else { return };
    image[..8].copy_from_slice(&limits::MAGIC);
    let told = u32::from_le_bytes(image[28..32].try_into().expect("four bytes")) as usize;
    let bytes = if told <= body { told } else { body };
    image[28..32].copy_from_slice(&(bytes as u32).to_le_bytes());
    let crc = crc32c(&image[header..header + bytes]);
    image[40..44].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c(&image[..header - 4]);
    image[header - 4..header].copy_from_slice(&crc.to_le_bytes());
}

/// Takes the first byte: whether what follows is mended. Few are not.
fn choose(input: &[u8]) -> (bool, Vec<u8>) {
    match input.split_first() {
        Some((first, rest)) => (first % 16 != 15, rest.to_vec()),
        None => (false, Vec::new()),
    }
}

fn kept(record: &ArrayRecord) {
    assert_eq!(record.check(), Ok(()), "a rule is broken");
    record.layout().expect("it has a layout");
}

/// One record slot.
pub fn record(input: &[u8]) {
    let (mend, mut image) = choose(input);
    if mend {
        mend_record(&mut image);
    }
    let Ok(record) = decode(&image) else { return };
    kept(&record);
    if !record.read_only {
        assert_eq!(decode(&encode(&record)), Ok(record), "written and read again");
    }
}

/// Up to four drives with up to four record slots each: which record counts, what else the drive
/// holds, and what array they make.
pub fn superblock(input: &[u8]) {
    let (mend, bytes) = choose(input);
    let mut rest = &bytes[..];
    let mut images = Vec::new();
    while let Some((length, more)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(more.len());
        let (image, behind) = more.split_at(length);
        let mut image = image.to_vec();
        if mend {
            mend_record(&mut image);
        }
        images.push(image);
        rest = behind;
    }
    let image = |i: usize| images.get(i).map_or(&[][..], |image| &image[..]);
    let _ = foreign_signature(&bytes, image(0));
    let _ = foreign_signature(image(0), &bytes);
    let drive = |n: usize| {
        let slots = [0, 1, 2, 3].map(|slot| image(4 * n + slot));
        let record: Result<ArrayRecord, FormatError> = newest(slots).map(|(slot, record)| {
            assert!(slot < 4);
            kept(&record);
            record
        });
        let bytes = record.as_ref().map_or(64 << 20, |r| r.data_offset + r.data_bytes + (4 << 20));
        Found { path: format!("drive {n}"), record, bytes, block_bytes: 512 }
    };
    let drives: Vec<Found> = (0..images.len().div_ceil(4).min(4)).map(drive).collect();
    for options in [(false, false), (true, false), (true, true)] {
        let (start_degraded, accept_loss) = options;
        let options = AssembleOptions { start_degraded, accept_loss };
        let Ok(assembly) = assemble(&drives, options) else { continue };
        if !assembly.record.read_only {
            kept(&assembly.begin(7));
            // What a start writes once more, to every drive.
            let slots = 0..assembly.record.slots.len() as u16;
            slots.for_each(|slot| kept(&assembly.record.for_slot(Slot(slot))));
        }
    }
}

/// A page of a region map.
pub fn region_map(input: &[u8]) {
    let (mend, mut bytes) = choose(input);
    if bytes.len() > limits::PAGE_HEADER_BYTES {
        // Short inputs stand for pages that end in zeros, as most do.
        bytes.resize(limits::PAGE_BYTES, 0);
    }
    let Some(header) = bytes.get_mut(..limits::PAGE_HEADER_BYTES) else {
        return assert_eq!(region::decode(&bytes, ID, &[1]), None, "shorter than a header");
    };
    if mend {
        header[..8].copy_from_slice(&limits::PAGE_MAGIC);
        header[8..24].copy_from_slice(&ID.array.0);
        header[24..26].copy_from_slice(&ID.group.0.to_le_bytes());
        header[28..32].copy_from_slice(&ID.number.to_le_bytes());
        let at = limits::PAGE_HEADER_BYTES - 4;
        bytes[at..at + 4].fill(0);
        let crc = crc32c(&bytes);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    let count = usize::from(u16::from_le_bytes([bytes[26], bytes[27]]));
    for masks in [vec![u64::MAX; count.min(1000)], vec![0xffff; count.min(1000)], Vec::new()] {
        let Some(page) = region::decode(&bytes, ID, &masks) else { continue };
        assert!(page.entries.iter().zip(&masks).all(|(entry, mask)| entry.written & !mask == 0));
        assert_eq!(region::encode(ID, &page), bytes, "a page is written in one way");
    }
}

const ID: PageId = PageId { array: Uuid::from_random([9; 16]), group: GroupNo(1), number: 5 };

/// The place in the journal area at which the batches of cases stand.
const PLACE: Place = Place { array: Uuid::from_random([7; 16]), at: 3 * 4096 };

/// Bytes of the payload that the ranges of a head stand for, filled up, as far as its entries go.
fn payload_of(head: &[u8]) -> u64 {
    let number = |at: usize| {
        let bytes = head.get(at..at + 4);
        u64::from(u32::from_le_bytes(bytes.unwrap_or(&[0; 4]).try_into().expect("four bytes")))
    };
    let (mut at, mut sum) = (limits::BATCH_HEADER_BYTES, 0);
    for _ in 0..number(28) {
        let ranges = number(at + 4);
        at += limits::ENTRY_BYTES;
        for _ in 0..ranges {
            sum += number(at + 8);
            at += limits::JOURNAL_RANGE_BYTES;
            if at >= head.len() {
                return sum;
            }
        }
        if at >= head.len() {
            return sum;
        }
    }
    sum.next_multiple_of(limits::BATCH_ALIGN as u64)
}

/// A batch of the journal: the head is the input's, the payload all the same byte.
pub fn journal(input: &[u8]) {
    let (mend, mut bytes) = choose(input);
    if bytes.len() < limits::BATCH_HEADER_BYTES {
        return assert_eq!(journal::decode(&bytes, PLACE), None, "shorter than a header");
    }
    // Short inputs stand for heads that end in zeros, as most do.
    bytes.resize(bytes.len().next_multiple_of(limits::BATCH_ALIGN), 0);
    let payload = payload_of(&bytes);
    let fill = vec![0x5a; if payload <= 64 << 10 { payload as usize } else { 0 }];
    if mend {
        bytes[..8].copy_from_slice(&limits::JOURNAL_MAGIC);
        bytes[8..24].copy_from_slice(&PLACE.array.0);
        bytes[64..72].copy_from_slice(&PLACE.at.to_le_bytes());
        let size = bytes.len() as u32;
        bytes[72..76].copy_from_slice(&size.to_le_bytes());
        bytes[76..80].copy_from_slice(&(payload as u32).to_le_bytes());
        bytes[80..84].copy_from_slice(&crc32c(&fill).to_le_bytes());
        bytes[124..128].fill(0);
        let crc = crc32c(&bytes);
        bytes[124..128].copy_from_slice(&crc.to_le_bytes());
    }
    let Some(head) = journal::decode(&bytes, PLACE) else { return };
    whole(&bytes, &head, payload);
    if mend && fill.len() as u64 == payload {
        let mut fill = fill;
        assert!(head.matches(&fill), "the payload as it was written");
        if let Some(last) = fill.last_mut() {
            *last ^= 1;
            assert!(!head.matches(&fill), "another payload");
            fill.pop();
            assert!(!head.matches(&fill), "a shorter payload");
        }
    }
}

/// What a head says keeps the rules, and is in these bytes only.
fn whole(bytes: &[u8], head: &Head, payload: u64) {
    let batch = &head.batch;
    assert!(batch.key != 0 && batch.tail != 0 && batch.tail <= batch.sequence);
    assert_eq!(head.head_bytes, batch.head_bytes());
    assert_eq!(head.payload_bytes as u64, payload, "by the ranges");
    let crc = u32::from_le_bytes(bytes[80..84].try_into().expect("four bytes"));
    let image = &bytes[..head.head_bytes];
    assert_eq!(journal::encode(PLACE, batch, crc), image, "a head is written in one way");
    assert_eq!(journal::decode(&image[..image.len() - 1], PLACE), None, "cut short");
    let elsewhere = Place { at: PLACE.at + 4096, ..PLACE };
    assert_eq!(journal::decode(bytes, elsewhere), None, "it stands elsewhere");
    let array = Uuid::from_random([8; 16]);
    assert_eq!(journal::decode(bytes, Place { array, ..PLACE }), None, "another array's");
}

/// An in-flight page: as many entries as it says it has, as far as the input goes, then zeros.
pub fn flight(input: &[u8]) {
    let (mend, mut bytes) = choose(input);
    if bytes.len() < limits::FLIGHT_HEADER_BYTES {
        return assert_eq!(flight::decode(&bytes, PLACE), None, "shorter than a header");
    }
    let told = u32::from_le_bytes(bytes[28..32].try_into().expect("four bytes"));
    let most = flight::page_entries(limits::FLIGHT_BYTES_MAX);
    let count = usize::try_from(told).expect("64 bits").min(most);
    if mend {
        bytes.resize(flight::page_bytes(count), 0);
        bytes[..8].copy_from_slice(&limits::FLIGHT_MAGIC);
        bytes[8..24].copy_from_slice(&PLACE.array.0);
        bytes[56..64].copy_from_slice(&PLACE.at.to_le_bytes());
        let size = bytes.len() as u32;
        bytes[64..68].copy_from_slice(&size.to_le_bytes());
        bytes[124..128].fill(0);
        let crc = crc32c(&bytes);
        bytes[124..128].copy_from_slice(&crc.to_le_bytes());
    }
    let Some(page) = flight::decode(&bytes, PLACE) else { return };
    assert!(page.head.sequence != 0 && page.head.key != 0);
    assert!(page.entries.iter().all(|entry| entry.from < entry.to));
    assert_eq!(flight::said_bytes(&bytes), Some(page.bytes));
    let mut image = vec![1; page.bytes];
    flight::encode(PLACE, &page.head, page.entries.len(), page.entries.iter().copied(), &mut image);
    assert_eq!(image, bytes[..page.bytes], "a page is written in one way");
    assert_eq!(flight::decode(&image[..image.len() - 1], PLACE), None, "cut short");
    let elsewhere = Place { at: PLACE.at + 4096, ..PLACE };
    assert_eq!(flight::decode(&image, elsewhere), None, "it stands elsewhere");
    let array = Uuid::from_random([8; 16]);
    assert_eq!(flight::decode(&image, Place { array, ..PLACE }), None, "another array's");
}
