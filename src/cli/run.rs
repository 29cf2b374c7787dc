//! `updraft run`: the tasks of a Dag, here and now.

use std::path::PathBuf;
use std::process::ExitCode;

/// Run a Dag's tasks here and now: no Airflow, no network, no key needed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The Dag file.
    dag_file: PathBuf,
    /// Run this task alone, without its upstream tasks.
    task_id: Option<String>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!(
        "{}: running Dags is not wired up in this build",
        arguments.dag_file.display()
    )
}
