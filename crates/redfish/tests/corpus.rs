//! The corpora of the fuzz targets of this crate, and both with bytes changed.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

use redfish::{access, events, messages, service, view};

#[path = "support/case.rs"]
mod case;
#[path = "../../../fuzz/replay.rs"]
mod replay;
#[allow(dead_code, reason = "the crate's own tests use all of it")]
#[path = "../src/sample.rs"]
mod sample;

use std::path::Path;

type Case = fn(&[u8]);

const TARGETS: [(&str, Case); 2] = [("filter", case::filter), ("request", case::request)];

#[test]
fn corpora_of_requests() {
    for (target, case) in TARGETS {
        replay::corpus(target, 10, case);
    }
}

/// Of inputs that are longer only the whole is tried.
const CHANGED_BYTES: usize = 64;

/// Every byte of every short input is left out, doubled, and changed in some ways.
#[test]
fn corpora_with_bytes_changed() {
    for (target, case) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        for path in replay::files(&folder) {
            let input = std::fs::read(path).expect("readable");
            if input.len() > CHANGED_BYTES {
                continue;
            }
            for at in 0..input.len() {
                case(&input[..at]);
                case(&[&input[..at], &input[at + 1..]].concat());
                case(&[&input[..=at], &input[at..]].concat());
                for byte in [0, b'(', b'\'', b'"', b'%', b'{', 0xff, input[at] ^ 1] {
                    let mut other = input.clone();
                    other[at] = byte;
                    case(&other);
                }
            }
        }
    }
}
