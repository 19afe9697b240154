//! Fuzzes what is read from drives: see `crates/format/tests/support/case.rs`.
#![no_main]

extern crate palisade_parity as parity;

#[allow(dead_code, reason = "each target has one case of it")]
#[path = "../../crates/format/tests/support/case.rs"]
mod case;

libfuzzer_sys::fuzz_target!(|input: &[u8]| case::journal(input));
