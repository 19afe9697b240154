//! The corpora of the fuzz targets of this crate, and the golden records with bytes changed.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

#[path = "support/case.rs"]
mod case;

use std::fs;
use std::path::{Path, PathBuf};

type Case = fn(&[u8]);

const TARGETS: [(&str, Case); 4] = [
    ("record", case::record),
    ("superblock", case::superblock),
    ("region-map", case::region_map),
    ("journal", case::journal),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it lies in the tree");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files
}

#[test]
fn corpora_of_the_fuzz_targets() {
    for (target, case) in TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let files = files(&corpus);
        assert!(files.len() >= 10, "{} files in {}", files.len(), corpus.display());
        for file in files {
            println!("{}", file.display());
            case(&fs::read(&file).expect("readable"));
        }
    }
}

/// Every byte of every golden image is changed in three ways, with right checksums.
#[test]
fn golden_images_with_bytes_changed() {
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")) {
        let mut golden = fs::read(&path).expect("readable");
        let case = match path.extension().and_then(|e| e.to_str()) {
            Some("page") => case::region_map,
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
