//! The `updraft` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    updraft::cli::main()
}
