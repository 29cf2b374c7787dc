//! Any text, in any dialect: `cp Cargo.lock fuzz/ && cargo +nightly fuzz run sql_guard`, so that the versions are the
//! tested ones.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../body.rs"]
mod body;

fuzz_target!(|data: &[u8]| {
    if let Some((dialect, sql)) = body::from_bytes(data) {
        body::check(dialect, sql);
    }
});
