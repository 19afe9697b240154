//! Fuzzes what hosts and targets read of each other: see `crates/nvme/tests/support/case.rs`.
#![no_main]

#[path = "../../crates/nvme/tests/support/case.rs"]
mod case;

libfuzzer_sys::fuzz_target!(|input: &[u8]| case::run(input));
