//! Fuzzes what clients ask for: see `crates/redfish/tests/support/case.rs`.
#![no_main]

use redfish::{access, events, messages, service, view};

#[allow(dead_code, reason = "each target has one case of it")]
#[path = "../../crates/redfish/tests/support/case.rs"]
mod case;
#[allow(dead_code, reason = "the crate's own tests use all of it")]
#[path = "../../crates/redfish/src/sample.rs"]
mod sample;

libfuzzer_sys::fuzz_target!(|input: &[u8]| case::filter(input));
