//! The corpora of the fuzz targets of the control plane.

use super::*;
use std::path::Path;

#[path = "../../../fuzz/case.rs"]
mod case;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn corpora_of_strangers_bytes() {
    let stranger = Stranger::new().expect("it starts");
    replay::corpus("http", 10, |input| case::http(&stranger, input));
    replay::corpus("certificate", 10, case::certificate);
}

/// Every byte of every input is left out, and changed; every beginning is tried.
#[test]
fn corpora_of_strangers_bytes_that_are_changed() {
    let stranger = Stranger::new().expect("it starts");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/http");
    for path in replay::files(&folder) {
        let input = std::fs::read(path).expect("readable");
        for at in 0..input.len() {
            case::http(&stranger, &input[..at]);
            case::http(&stranger, &[&input[..at], &input[at + 1..]].concat());
            let mut other = input.clone();
            other[at] ^= 1;
            case::http(&stranger, &other);
        }
    }
}
