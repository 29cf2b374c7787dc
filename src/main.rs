//! The `updraft` command.

fn main() {}
