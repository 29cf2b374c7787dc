//! Configuration files: `cp Cargo.lock fuzz/ && cargo +nightly fuzz run airflow_cfg`, so that the versions are the tested ones.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs.rs"]
mod inputs;

fuzz_target!(|data: &[u8]| inputs::airflow_cfg(data));
