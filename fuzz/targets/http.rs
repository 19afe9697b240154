//! Fuzzes what clients send: see `fuzz/case.rs`.
#![no_main]

use control::{certificate, stranger};

#[allow(dead_code, reason = "each target has one case of it")]
#[path = "../case.rs"]
mod case;

thread_local! {
    static STRANGER: stranger::Stranger =
        stranger::Stranger::new().unwrap_or_else(|error| panic!("{}", error.error));
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| STRANGER.with(|own| case::http(own, input)));
