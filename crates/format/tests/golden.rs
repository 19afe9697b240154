//! Golden images: records, pages and batches as they are written.
//!
//! `PALISADE_WRITE_GOLDEN=1 cargo test -p palisade-format --test golden --test journal` writes them
//! anew. Until the first release they are replaced with the format; those of a release are kept for
//! ever, and every later one reads them.

mod common;

use common::{
    SHAPES, eventful, plain, troubled, uuid, with_fc, with_iscsi, with_local, with_nvme,
    with_shares,
};
use layout::Level;
use palisade_format::flight::{self, Columns, FlightPage, PageHead};
use palisade_format::journal::Place;
use palisade_format::limits::PAGE_ENTRIES;
use palisade_format::owner::{self, Controller, OwnerPage};
use palisade_format::region::{self, Entry, Page, PageId};
use palisade_format::{ArrayRecord, Owner, decode, encode};
use std::path::Path;
use units::GroupNo;

#[test]
fn golden_images_are_read_and_written_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (level, drives) in SHAPES {
        for (kind, record) in [
            ("plain", plain(level, drives)),
            ("eventful", eventful(level, drives)),
            ("troubled", troubled(eventful(level, drives))),
        ] {
            same(&folder.join(format!("v3-{level}-{drives}-{kind}.slot")), record);
        }
    }
    same(&folder.join("v3-6-32-nvme.slot"), with_nvme(eventful(Level::Raid6, 32)));
    same(&folder.join("v3-6-32-local.slot"), with_local(eventful(Level::Raid6, 32)));
    same(&folder.join("v3-6-32-iscsi.slot"), with_iscsi(eventful(Level::Raid6, 32)));
    same(&folder.join("v3-6-32-files.slot"), with_shares(eventful(Level::Raid6, 32)));
    same(&folder.join("v3-6-32-fc.slot"), with_fc(eventful(Level::Raid6, 32)));
    let shared = ArrayRecord { shared: true, ..eventful(Level::Raid6, 32) };
    same(&folder.join("v3-6-32-shared.slot"), shared);
}

/// The bytes that are kept.
fn golden(path: &Path, image: &[u8]) -> Vec<u8> {
    if std::env::var_os("PALISADE_WRITE_GOLDEN").is_some() {
        std::fs::write(path, image).unwrap();
    }
    let golden = std::fs::read(path).unwrap();
    assert!(golden == image, "{} would be written differently", path.display());
    golden
}

fn same(path: &Path, record: ArrayRecord) {
    let golden = golden(path, &encode(&record));
    assert_eq!(decode(&golden), Ok(record), "{}", path.display());
}

#[test]
fn golden_pages_are_read_and_written_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entry = |n: u64| Entry { written: n << 60 | n, missed: n % 5, dirty: n % 3 == 1 };
    for (name, count) in [("full", PAGE_ENTRIES as u64), ("last", 3)] {
        let id = PageId { array: uuid(0xa0), group: GroupNo(2), number: 7 };
        let page = Page { sequence: 41, entries: (0..count).map(entry).collect() };
        let path = folder.join(format!("v3-{name}.page"));
        let golden = golden(&path, &region::encode(id, &page));
        assert_eq!(region::decode(&golden, id, &vec![u64::MAX; count as usize]), Some(page));
    }
}

#[test]
fn golden_owner_pages_are_read_and_written_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let controller = |n: u16| Controller { number: n, uniquifier: 7, random: u64::MAX - 1 };
    let owned = OwnerPage {
        owner: Some(Owner { host: uuid(0xc0), boot: uuid(0xc1) }),
        term: 0x1122_3344_5566_7788,
        heartbeat: 99,
        unix_millis: 1_790_000_000_123,
        period_ms: 1000,
        fence_ms: 6000,
        name: "store-1.example".into(),
        controllers: (1..=3).map(controller).collect(),
        ..OwnerPage::nobody(uuid(0xa0))
    };
    for (name, page) in [("owned", owned), ("nobodys", OwnerPage::nobody(uuid(0xa0)))] {
        let path = folder.join(format!("v3-{name}.owner"));
        let golden = golden(&path, &owner::encode(&page));
        assert_eq!(owner::decode(&golden), Some(page));
    }
}

#[test]
fn golden_in_flight_pages_are_read_and_written_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let place = Place { array: uuid(0xa0), at: 5 * 4096 };
    let head = PageHead { group: GroupNo(0), lane: 3, sequence: 41, key: 0x1122_3344, epoch: 7 };
    let columns = |n: u64| Columns { stripe: n << 33 | n, from: 4096, to: 4608 + 512 * n as u32 };
    for (name, count) in [("none", 0), ("three", 3), ("more", 300)] {
        let entries: Vec<Columns> = (0..count).map(columns).collect();
        let mut image = vec![0; flight::page_bytes(entries.len())];
        flight::encode(place, &head, entries.len(), entries.iter().copied(), &mut image);
        let golden = golden(&folder.join(format!("v3-{name}.flight")), &image);
        let page = FlightPage { head, entries, bytes: golden.len() };
        assert_eq!(flight::decode(&golden, place), Some(page));
    }
}
