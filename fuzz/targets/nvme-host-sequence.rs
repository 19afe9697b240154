//! Fuzzes what controllers send to a host: see `crates/nvme-host/tests/support/sequence.rs`.
#![no_main]

// The names that the workspace has for them.
extern crate palisade_nvme as nvme;
extern crate palisade_parity as parity;

#[path = "../../crates/nvme-host/tests/support/sequence.rs"]
mod sequence;

libfuzzer_sys::fuzz_target!(|input: &[u8]| sequence::run(input));
