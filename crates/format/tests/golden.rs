//! Golden images: records of each release, kept forever, that every later one must read.
//!
//! `PALISADE_WRITE_GOLDEN=1 cargo test -p palisade-format --test golden` writes those that are
//! missing; existing ones are never rewritten.

mod common;

use common::{SHAPES, eventful, plain};
use palisade_format::{decode, encode};
use std::path::Path;

#[test]
fn golden_images_are_read_and_written_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (level, drives) in SHAPES {
        for (kind, record) in
            [("plain", plain(level, drives)), ("eventful", eventful(level, drives))]
        {
            let path = folder.join(format!("v1-{level}-{drives}-{kind}.slot"));
            let image = encode(&record);
            if !path.exists() && std::env::var_os("PALISADE_WRITE_GOLDEN").is_some() {
                std::fs::write(&path, &image).unwrap();
            }
            let golden = std::fs::read(&path).unwrap();
            assert_eq!(decode(&golden), Ok(record), "{}", path.display());
            assert!(golden == image, "{} would be written differently", path.display());
        }
    }
}
