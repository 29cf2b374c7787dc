//! `updraft worker`: takes the place of `airflow edge worker` for agent tasks.

mod control;

use std::process::ExitCode;

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::descriptors;
use crate::airflow::config::Config;
use crate::secrets::backend::with_secret_options;
use crate::telemetry::worker_log;
use crate::worker::control::Wish;
use crate::worker::{Settings, run as run_worker};

/// Run tasks for an Airflow that uses the EdgeExecutor.
///
/// Configured as Airflow's own worker: AIRFLOW__SECTION__KEY variables, then airflow.cfg under AIRFLOW_HOME. At least
/// [edge] api_url and [api_auth] jwt_secret must be set. The options here win over both.
///
/// SIGTERM or SIGINT: takes no new jobs and ends when the running tasks have ended. A second one terminates them.
/// The commands below tell a running worker on this machine the same, and more.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<control::Command>,
    #[command(flatten)]
    start: Start,
}

#[derive(Debug, clap::Args)]
struct Start {
    /// Queues to serve, separated by commas. Give this worker queues of its own: other queues may hold work for Python.
    #[arg(short, long, value_delimiter = ',', required = true, value_parser = NonEmptyStringValueParser::new())]
    queues: Vec<String>,
    /// How many tasks run at a time [default: [edge] worker_concurrency, 8].
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// The worker's name; unique among all workers [default: the name of this machine].
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,
    /// URL of the Edge API, ending in /edge_worker/v1/rpcapi [default: [edge] api_url].
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// URL of the Execution API [default: [core] execution_api_server_url, else derived from the Edge API's].
    #[arg(long, value_name = "URL")]
    execution_api_url: Option<String>,
    /// Version of Airflow to report; the server may take its own only [default: AIRFLOW__UPDRAFT__AIRFLOW_VERSION, else the server's, from 3.1 on].
    #[arg(long, value_name = "VERSION")]
    airflow_version: Option<String>,
    /// Version of the edge3 provider to report [default: AIRFLOW__UPDRAFT__EDGE_PROVIDER_VERSION, else the server's].
    #[arg(long, value_name = "VERSION")]
    edge_provider_version: Option<String>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Some(command) => control::run(command),
        None => start(arguments.start),
    }
}

fn start(arguments: Start) -> anyhow::Result<ExitCode> {
    descriptors::close_inherited();
    // The worker's memory and environment hold keys: they are not for other processes of its user, such as its tasks.
    nix::sys::prctl::set_dumpable(false).context("the worker can't be kept from being read")?;
    let mut config = Config::from_env();
    let flags = [
        (
            "edge",
            "worker_concurrency",
            arguments.concurrency.map(|slots| slots.to_string()),
        ),
        ("edge", "api_url", arguments.api_url),
        (
            "core",
            "execution_api_server_url",
            arguments.execution_api_url,
        ),
        ("updraft", "airflow_version", arguments.airflow_version),
        (
            "updraft",
            "edge_provider_version",
            arguments.edge_provider_version,
        ),
    ];
    for (section, key, value) in flags {
        if let Some(value) = value {
            config = config.with_flag(section, key, value);
        }
    }
    let config = with_secret_options(config);
    // A worker waits most of the time: two threads serve many tasks and keep heartbeats on time.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_all()
        .build()
        .context("the worker's threads can't be started")?;
    runtime.block_on(async {
        let mut settings =
            Settings::from_config(&config, arguments.worker_name, Some(arguments.queues))?;
        worker_log::start(&config, &settings.masker)?;
        let name = settings.name.clone();
        if let Some((python, _)) = &mut settings.runtimes.python {
            let version = python.probe(&name).await?;
            tracing::info!(
                "what does not run natively runs on {} with Airflow {version}",
                python.program().display()
            );
        }
        let (tell, wishes) = mpsc::unbounded_channel();
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut signals = signal(kind).context("signals can't be received")?;
            let tell = tell.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() && tell.send(Wish::End).is_ok() {}
            });
        }
        run_worker(settings, tell, wishes).await?;
        anyhow::Ok(ExitCode::SUCCESS)
    })
}
