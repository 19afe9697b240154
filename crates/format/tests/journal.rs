//! The journal: batches as bytes, damage, hostile bytes, and the record's part in it.

mod common;

use common::{plain, uuid};
use layout::Level;
use palisade_format::flight::{self, PageHead};
use palisade_format::journal::{
    self, Batch, Place, Redo, StripRange, decode, drive_tag, encode, payload_crc,
};
use palisade_format::limits::{BATCH_ALIGN, COUNTERS_END};
use palisade_format::{SlotState, decode as decode_record, encode as encode_record};
use proptest::prelude::*;
use std::path::Path;
use units::{GroupNo, Slot, Uuid};

fn place() -> Place {
    Place { array: Uuid::from_random([7; 16]), at: 3 * 4096 }
}

fn range(n: u32) -> StripRange {
    let drive = drive_tag(Uuid::from_random([n as u8; 16]));
    StripRange { strip: n as u16, from: n * 512, bytes: 512 * (n + 1), drive }
}

fn batch(entries: &[u32]) -> Batch {
    let redo = |n: &u32| Redo { stripe: u64::from(*n) << 33, ranges: (0..*n).map(range).collect() };
    Batch {
        group: GroupNo(2),
        lane: 3,
        sequence: 0x0102,
        tail: 0x0101,
        key: 0x1122_3344_5566_7788,
        epoch: 9,
        entries: entries.iter().map(redo).collect(),
    }
}

fn payload(batch: &Batch) -> Vec<u8> {
    let bytes = batch.payload_bytes() as usize;
    let mut payload: Vec<u8> = (0..bytes).map(|i| ((i * 7) >> 3) as u8).collect();
    payload.resize(bytes.next_multiple_of(BATCH_ALIGN), 0);
    payload
}

#[test]
fn the_bytes_are_those_of_the_document() {
    let batch = batch(&[2]);
    let bytes = encode(place(), &batch, 0xdead_beef);
    assert_eq!((&bytes[..8], &bytes[8..24]), (&b"PALIJRNL"[..], &place().array.0[..]));
    assert_eq!(bytes[24..32], [2, 0, 3, 0, 1, 0, 0, 0]);
    assert_eq!(bytes[32..48], [2, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[48..56], [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
    assert_eq!(bytes[56..72], [9, 0, 0, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[72..84], [0, 0x10, 0, 0, 0, 0x10, 0, 0, 0xef, 0xbe, 0xad, 0xde]);
    assert_eq!(bytes[128..144], [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(bytes[168..184], [1, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[184..192], Uuid::from_random([1; 16]).0[..8]);
    assert_eq!(bytes.len(), 4096);
    // CRC-32C bit by bit, with its own four bytes as zeros.
    let mut crc = u32::MAX;
    for (at, byte) in bytes.iter().enumerate() {
        crc ^= if (124..128).contains(&at) { 0 } else { u32::from(*byte) };
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    assert_eq!(bytes[124..128], (!crc).to_le_bytes());
}

#[test]
fn golden_batches_are_read_and_written_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, entries) in [("full", &[3, 1, 200][..]), ("tail", &[])] {
        let batch = batch(entries);
        let payload = payload(&batch);
        let mut image = encode(place(), &batch, payload_crc(0, &payload));
        image.extend(&payload);
        let path = folder.join(format!("v3-{name}.batch"));
        if std::env::var_os("PALISADE_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &image).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        assert!(golden == image, "{} would be written differently", path.display());
        let head = decode(&golden, place()).unwrap();
        assert_eq!(head.batch, batch);
        assert!(head.matches(&golden[head.head_bytes..]));
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    let batch = batch(&[1, 3]);
    let payload = payload(&batch);
    let mut image = encode(place(), &batch, payload_crc(0, &payload));
    let head_bytes = image.len();
    image.extend(&payload);
    let counts = |image: &[u8]| {
        let head = decode(image, place());
        head.filter(|head| head.matches(&image[head.head_bytes..])).map(|head| head.batch)
    };
    assert_eq!(counts(&image), Some(batch));
    for bit in 0..image.len() * 8 {
        image[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(counts(&image), None, "bit {bit}");
        image[bit / 8] ^= 1 << (bit % 8);
    }
    for len in 0..head_bytes {
        assert_eq!(decode(&image[..len], place()), None, "{len}");
    }
}

#[test]
fn batches_of_others_and_impossible_ones_are_refused() {
    let image = encode(place(), &batch(&[1]), 0);
    assert!(decode(&image, place()).is_some());
    assert_eq!(decode(&image, Place { at: 4096, ..place() }), None, "it stands elsewhere");
    let array = Uuid::from_random([8; 16]);
    assert_eq!(decode(&image, Place { array, ..place() }), None);
    for wrong in [
        Batch { tail: 0, ..batch(&[1]) },
        Batch { tail: 0x0103, ..batch(&[1]) },
        Batch { key: 0, ..batch(&[1]) },
    ] {
        assert_eq!(decode(&encode(place(), &wrong, 0), place()), None);
    }
}

/// What a host wrote may look like the heads of batches, all as large as there is room for: none is
/// looked at closer, unless it has the key.
#[test]
fn what_only_looks_like_a_batch_costs_no_checksum() {
    let mut head = encode(place(), &batch(&[1]), 0);
    head[72..76].copy_from_slice(&(32u32 << 20).to_le_bytes());
    let key = batch(&[1]).key;
    assert!(journal::may_begin(&head, place(), key), "it is looked at");
    assert!(!journal::may_begin(&head, place(), key ^ 1 << 63));
    assert!(!journal::may_begin(&head, Place { at: 4096, ..place() }, key));
    assert!(!journal::may_begin(&head, Place { array: uuid(8), ..place() }, key));
    assert!(!journal::may_begin(&head[..64], place(), key), "too short");
    head[48..56].fill(0);
    assert!(!journal::may_begin(&head, place(), 0), "there is no key");
}

#[test]
fn a_number_that_nothing_can_follow_is_no_batch() {
    let last = u64::MAX;
    for sequence in [COUNTERS_END, last] {
        let batch = Batch { sequence, tail: sequence, ..batch(&[1]) };
        assert_eq!(decode(&encode(place(), &batch, 0), place()), None);
        let (key, epoch) = (batch.key, 1);
        let head = PageHead { group: GroupNo(0), lane: 0, sequence, key, epoch };
        let mut page = vec![0; 4096];
        flight::encode(place(), &head, 0, [].into_iter(), &mut page);
        assert_eq!(flight::decode(&page, place()), None);
    }
}

#[test]
fn a_guarded_group_has_a_key() {
    let mut record = plain(Level::Raid5, 3);
    record.fail_slot(Slot(1));
    record.next_epoch(5);
    record.groups[0].unclean = true;
    let layout = record.layout().unwrap();
    assert!(record.owes_resync(&layout, GroupNo(0)));
    record.groups[0].guarded = true;
    assert!(record.check().is_err(), "there is no key");
    record.journal_key = 0x0102_0304_0506_0708;
    assert_eq!(record.slots[1].state, SlotState::Failed);
    let image = encode_record(&record);
    assert_eq!(image[128 + 184..128 + 192], [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(decode_record(&image), Ok(record.clone()));
    assert!(!record.owes_resync(&layout, GroupNo(0)));
    assert_eq!(uuid(3).0[..8], drive_tag(uuid(3)).to_le_bytes());
}

prop_compose! {
    fn any_range()(strip in any::<u16>(), from in any::<u32>(), bytes in 0u32..9000,
            drive in any::<u64>()) -> StripRange {
        StripRange { strip, from, bytes, drive }
    }
}

proptest! {
    #[test]
    fn batches_round_trip(ids in any::<[u64; 4]>(), lane in any::<u16>(), group in any::<u16>(),
            page in 0u64..1000, tail in 1u64..100,
            lists in prop::collection::vec(prop::collection::vec(any_range(), 0..60), 0..9)) {
        let redo = |(n, ranges): (usize, Vec<_>)| Redo { stripe: ids[0] ^ n as u64, ranges };
        let batch = Batch {
            group: GroupNo(group), lane, tail, sequence: tail + ids[1] % 1000,
            key: ids[2] | 1, epoch: ids[3],
            entries: lists.into_iter().enumerate().map(redo).collect(),
        };
        let place = Place { at: page * 4096, ..place() };
        let payload = payload(&batch);
        let crc = payload.chunks(999).fold(0, payload_crc);
        let mut image = encode(place, &batch, crc);
        prop_assert_eq!(image.len(), batch.head_bytes());
        image.extend(&payload);
        image.extend([0xa5; 512]);
        let head = decode(&image, place).unwrap();
        prop_assert_eq!(head.payload_bytes, payload.len());
        prop_assert!(head.matches(&payload) && !head.matches(&image[head.head_bytes..]));
        prop_assert_eq!(head.batch, batch);
    }

    #[test]
    fn hostile_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..9000),
            size in prop::sample::select(vec![0u32, 1, 128, 4096, 8192, u32::MAX]),
            count in any::<u32>(), sealed in any::<bool>()) {
        let copy = |bytes: &mut [u8], at: usize, from: &[u8]| {
            if let Some(to) = bytes.get_mut(at..at + from.len()) {
                to.copy_from_slice(from);
            }
        };
        copy(&mut bytes, 0, b"PALIJRNL");
        copy(&mut bytes, 8, &place().array.0);
        copy(&mut bytes, 28, &count.to_le_bytes());
        copy(&mut bytes, 64, &place().at.to_le_bytes());
        copy(&mut bytes, 72, &size.to_le_bytes());
        let size = size as usize;
        if sealed && (128..=bytes.len()).contains(&size) {
            bytes[84..128].fill(0);
            let crc = journal::payload_crc(0, &bytes[..size]);
            copy(&mut bytes, 124, &crc.to_le_bytes());
        }
        let _ = decode(&bytes, place());
    }
}
