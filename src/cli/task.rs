//! The task process: what a supervisor starts, with `--comm` and `--logs`.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Context;

use super::descriptors;
use crate::airflow::config::Config;
use crate::task::confine::confine;
use crate::task::process;

/// One thread serves the sockets and the models; a second does what blocks.
pub fn run(comm: SocketAddr, logs: SocketAddr) -> anyhow::Result<ExitCode> {
    descriptors::close_inherited();
    confine(&Config::from_env())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime could not be started")?;
    let ended = runtime.block_on(process::run(comm, logs));
    // A prompt function that does not end must not keep the process alive.
    runtime.shutdown_background();
    ended?;
    Ok(ExitCode::SUCCESS)
}
