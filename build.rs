//! Rebuilds the crate when the Python code that is frozen into it changes: the macro that freezes it cannot say so.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/dag/python");
    println!("cargo::rerun-if-changed=src/dag/stdlib");
}
