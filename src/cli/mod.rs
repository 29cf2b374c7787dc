//! One file per command. Only this folder and `main.rs` print for a person.
//!
//! A command is a file with `Arguments` (clap) and `run(Arguments) -> anyhow::Result<ExitCode>`, a variant of
//! `Command` and an arm in [`main`].
//!
//! Exit statuses: 0 all went well; 1 a task failed, or the command could not do its work; 2 wrong usage.

#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "the doc comments of arguments are help texts for a terminal: [edge] and <name> stand for themselves"
)]

mod check;
mod dag_files;
mod run;
mod sql;
mod task;
mod worker;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Runs Apache Airflow's LLM-agent tasks without CPython.
#[derive(Debug, Parser)]
#[command(name = "updraft", version, about, long_about = None, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Where the supervisor serves requests (set by a supervisor that starts this program as a task process).
    #[arg(long, hide = true, requires = "logs")]
    comm: Option<SocketAddr>,

    /// Where the supervisor takes log lines (set by a supervisor).
    #[arg(long, hide = true, requires = "comm")]
    logs: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Check(check::Arguments),
    Sql(sql::Arguments),
    Worker(worker::Arguments),
}

/// The whole program: reads the command line, runs the command, says what went wrong.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match (arguments.command, arguments.comm, arguments.logs) {
        (None, Some(comm), Some(logs)) => task::run(comm, logs),
        (Some(Command::Run(arguments)), ..) => run::run(arguments),
        (Some(Command::Check(arguments)), ..) => check::run(arguments),
        (Some(Command::Sql(arguments)), ..) => sql::run(arguments),
        (Some(Command::Worker(arguments)), ..) => worker::run(arguments),
        (None, ..) => {
            eprint!("{}", Arguments::command().render_help());
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_supervisor_starts_a_task_process_with_two_options_and_nothing_else() {
        let arguments =
            Arguments::try_parse_from(["updraft", "--comm=127.0.0.1:1", "--logs=127.0.0.1:2"])
                .expect("valid");
        assert!(arguments.command.is_none());
        assert!(Arguments::try_parse_from(["updraft", "--comm=127.0.0.1:1"]).is_err());
    }
}
