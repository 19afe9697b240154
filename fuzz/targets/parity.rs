//! Fuzzes every operation of the parity crate against its definitions.
#![no_main]

#[path = "../../crates/parity/tests/support/case.rs"]
mod case;

libfuzzer_sys::fuzz_target!(|input: &[u8]| case::run(input));
