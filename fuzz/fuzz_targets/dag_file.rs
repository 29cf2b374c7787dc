//! Dag files, up to the limits of the interpreter: `cp Cargo.lock fuzz/ && cargo +nightly fuzz run dag_file`, so that the versions are the tested ones.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs.rs"]
mod inputs;

fuzz_target!(|data: &[u8]| inputs::dag_file(data, std::time::Duration::from_secs(2)));
