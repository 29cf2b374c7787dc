//! One file per command. Only this folder and `main.rs` print for a person.
//!
//! A command is a file with `Arguments` (clap) and `run(Arguments) -> anyhow::Result<ExitCode>`, a variant of
//! `Command` and an arm in [`main`].
//!
//! Exit statuses: 0 all went well; 1 a task failed, or the command could not do its work; 2 wrong usage; 130 a local run
//! that Ctrl-C ended.

#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "the doc comments of arguments are help texts for a terminal: [edge] and <name> stand for themselves"
)]

/// `println!`, but for a reader that has gone: then nothing is said any more, and the exit status tells how it went.
macro_rules! outln {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        drop(writeln!(std::io::stdout(), $($argument)*));
    }};
}

mod check;
mod dag_files;
mod descriptors;
mod mcp;
mod pack;
mod run;
mod skills;
mod sql;
mod task;
mod worker;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::airflow::error_chain::error_chain;

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
    Skills(skills::Arguments),
    Mcp(mcp::Arguments),
    Pack(pack::Arguments),
    Worker(worker::Arguments),
}

/// The whole program: reads the command line, runs the command, says what went wrong.
#[must_use]
pub fn main() -> ExitCode {
    let json = wants_json(std::env::args_os().skip(1));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if json && error.use_stderr() => {
            say_wrong_usage(&in_short(&error.render().to_string()), json);
            return ExitCode::from(2);
        }
        // Prints what there is to say, which may be a help text, and ends.
        Err(error) => error.exit(),
    };
    let outcome = match (arguments.command, arguments.comm, arguments.logs) {
        (None, Some(comm), Some(logs)) => task::run(comm, logs),
        (Some(Command::Run(arguments)), ..) => run::run(arguments),
        (Some(Command::Check(arguments)), ..) => check::run(arguments),
        (Some(Command::Sql(arguments)), ..) => sql::run(arguments),
        (Some(Command::Skills(arguments)), ..) => skills::run(arguments),
        (Some(Command::Mcp(arguments)), ..) => mcp::run(arguments),
        (Some(Command::Pack(arguments)), ..) => pack::run(arguments),
        (Some(Command::Worker(arguments)), ..) => worker::run(arguments),
        (None, ..) => {
            eprint!("{}", Arguments::command().render_help());
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        say_wrong_usage(&error_chain(&*error), json);
        ExitCode::FAILURE
    })
}

/// Does the command line ask for JSON? Known before it is known to be right.
fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    arguments
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json")
}

/// What is wrong, without the reminder of how the command is used.
fn in_short(text: &str) -> String {
    let text = text.split("\n\nUsage:").next().unwrap_or(text).trim();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// Says why the command did nothing: to a person on stderr, to a program as one JSON object on stdout.
fn say_wrong_usage(text: &str, json: bool) {
    if json {
        outln!("{}", serde_json::json!({ "error": text }));
    } else {
        eprintln!("error: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn wrong_usage_is_said_in_one_sentence_to_programs() {
        let error = Arguments::try_parse_from(["updraft", "run", "--json"]).expect_err("no file");
        let text = in_short(&error.render().to_string());
        assert!(
            text.starts_with("the following required arguments were not provided"),
            "{text}"
        );
        assert!(!text.contains("Usage"), "{text}");
        let asks = |words: &[&str]| wants_json(words.iter().map(OsString::from));
        assert!(asks(&["run", "--json", "dag.py"]));
        assert!(!asks(&["run", "dag.py", "--", "--json"]));
    }

    #[test]
    fn a_worker_is_started_with_queues_and_spoken_to_without() {
        let parse = |words: &[&str]| {
            Arguments::try_parse_from(["updraft", "worker"].iter().chain(words)).is_ok()
        };
        assert!(parse(&["--queues", "a,b"]));
        assert!(!parse(&[]));
        assert!(parse(&["status", "--json"]));
        assert!(parse(&["stop", "--wait"]));
        assert!(parse(&[
            "maintenance",
            "on",
            "--comments",
            "why",
            "--worker-name",
            "w"
        ]));
        assert!(!parse(&["maintenance", "on"]));
        assert!(parse(&["maintenance", "off"]));
        assert!(!parse(&["--queues", "a", "status"]));
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
