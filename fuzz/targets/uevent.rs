//! Fuzzes what the kernel announces of devices: see `crates/drives/tests/support/uevent.rs`.
#![no_main]

#[path = "../../crates/drives/tests/support/uevent.rs"]
mod case;

libfuzzer_sys::fuzz_target!(|input: &[u8]| case::run(input));
