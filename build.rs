//! Rebuilds the crate when the Python code that is frozen into it changes, which the macro that freezes it cannot say;
//! and tells the linker how to make a release binary that takes less memory.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/dag/python");
    println!("cargo::rerun-if-changed=src/dag/stdlib");

    let is = |name, value| env::var(name).is_ok_and(|found| found == value);
    let layout = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default())
        .join("benches/code_layout.txt");
    if is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release") && layout.exists() {
        let arguments = [
            // What a task runs lies side by side, and the rest of the code stays out of its memory.
            format!("-Wl,--symbol-ordering-file={}", layout.display()),
            // The list may be older than the dependencies.
            "-Wl,--no-warn-symbol-ordering".to_owned(),
            // Addresses are fixed at link time: else each process writes 5 MB of them when it starts, and shares none of
            // these pages with others. What this gives up is a random place of the code; stack, heap and libraries keep
            // theirs.
            "-no-pie".to_owned(),
        ];
        if links_with(&arguments) {
            for argument in arguments {
                println!("cargo::rustc-link-arg-bin=updraft={argument}");
            }
        }
    }
}

/// Does the linker in use take these arguments? LLD does, which Rust brings for Linux on x86-64.
fn links_with(arguments: &[String]) -> bool {
    let Some(folder) = env::var_os("OUT_DIR") else {
        return false;
    };
    let program = Path::new(&folder).join("empty.rs");
    if std::fs::write(&program, "fn main() {}").is_err() {
        return false;
    }
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.arg(&program).arg("--out-dir").arg(&folder);
    if let Ok(target) = env::var("TARGET") {
        rustc.args(["--target", &target]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    if let Ok(flags) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    }
    rustc.args(
        arguments
            .iter()
            .map(|argument| format!("-Clink-arg={argument}")),
    );
    rustc.stdout(Stdio::null()).stderr(Stdio::null());
    rustc.status().is_ok_and(|status| status.success())
}
