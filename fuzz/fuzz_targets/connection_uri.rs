//! Connections as environment variables hold them: `cp Cargo.lock fuzz/ && cargo +nightly fuzz run connection_uri`, so that the versions are the tested ones.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs.rs"]
mod inputs;

fuzz_target!(|data: &[u8]| inputs::connection(data));
