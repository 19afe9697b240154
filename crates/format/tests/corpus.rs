//! The corpora of the fuzz targets of this crate, and the golden records with bytes changed.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

#[path = "support/case.rs"]
mod case;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use std::fs;
use std::path::Path;

type Case = fn(&[u8]);

const TARGETS: [(&str, Case); 5] = [
    ("record", case::record),
    ("superblock", case::superblock),
    ("region-map", case::region_map),
    ("journal", case::journal),
    ("flight", case::flight),
];

#[test]
fn corpora_of_the_fuzz_targets() {
    for (target, case) in TARGETS {
        replay::corpus(target, 10, case);
    }
}

/// Every byte of every golden image is changed in three ways, with right checksums.
#[test]
fn golden_images_with_bytes_changed() {
    for path in replay::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")) {
        let mut golden = fs::read(&path).expect("readable");
        let case = match path.extension().and_then(|e| e.to_str()) {
            Some("page") => case::region_map,
            Some("flight") => case::flight,
            Some("batch") => {
                // The head alone: its bytes are told in it.
                let head = u32::from_le_bytes(golden[72..76].try_into().expect("four bytes"));
                golden.truncate(head as usize);
                case::journal
            }
            _ => case::record,
        };
        let used = golden.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let mut input = [&[0], &golden[..]].concat();
        for at in 1..=used {
            for change in [0x01, 0x80, 0xff] {
                input[at] ^= change;
                case(&input);
                input[at] ^= change;
            }
        }
    }
}
