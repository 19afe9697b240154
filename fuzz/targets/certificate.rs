//! Fuzzes what clients send: see `fuzz/case.rs`.
#![no_main]

use control::{certificate, stranger};

#[allow(dead_code, reason = "each target has one case of it")]
#[path = "../case.rs"]
mod case;

libfuzzer_sys::fuzz_target!(|input: &[u8]| case::certificate(input));
