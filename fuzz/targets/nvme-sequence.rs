//! Fuzzes what hosts send to a target: see `crates/nvme-target/tests/support/sequence.rs`.
#![no_main]

// The names that the workspace has for them.
extern crate palisade_nvme as nvme;
extern crate palisade_parity as parity;

#[path = "../../crates/nvme-target/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|input: &[u8]| support::sequence::run(input));
