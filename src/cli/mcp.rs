//! `updraft mcp`: our toolsets for agents of other frameworks.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use secrecy::SecretString;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::airflow::config::Config;
use crate::secrets::{Masker, SearchPath};
use crate::task::served::{self, Served};
use crate::toolset::mcp::serve::{HttpAddress, ToolsetServer, serve_http};

/// Offer toolsets to agents of other frameworks, over the Model Context Protocol.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, clap::Subcommand)]
enum McpCommand {
    Serve(Serve),
}

/// Serve the toolsets that a file names, on standard input and output or over HTTP.
///
/// Connections come from AIRFLOW_CONN_<ID> variables and the configured secrets backend. Secrets are masked in what tools
/// give back. The log goes to standard error.
#[derive(Debug, clap::Args)]
struct Serve {
    /// The YAML file that names the toolsets.
    #[arg(long, value_name = "FILE")]
    spec: PathBuf,
    /// Serve streamable HTTP at http://HOST:PORT/mcp instead of standard input and output.
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// The environment variable with the token that HTTP clients must send as "Authorization: Bearer TOKEN".
    #[arg(long, value_name = "NAME", default_value = "UPDRAFT_MCP_TOKEN")]
    token_env: String,
}

/// Serves until the client leaves or a signal comes.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let McpCommand::Serve(serve) = arguments.command;
    let config = Arc::new(Config::from_env());
    let masker = Masker::from_config(&config)?;
    let search_path = SearchPath::from_config(&config)?;
    crate::telemetry::worker_log::start(&config, &masker)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the asynchronous runtime could not be started")?;
    let served = served::load(&serve.spec, &config, search_path, &masker, runtime.handle())?;
    let outcome = runtime.block_on(serve_until_told(&serve, served, &masker));
    // What still waits, such as a read of standard input, must not keep the process.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

async fn serve_until_told(serve: &Serve, served: Served, masker: &Masker) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals can't be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals can't be received")?;
    let told = CancellationToken::new();
    let work = async {
        let served = served.open().await?;
        let outcome = offer(serve, &served, masker, &told).await;
        served.close().await;
        outcome
    };
    tokio::pin!(work);
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        outcome = &mut work => return outcome,
    }
    told.cancel();
    work.await
}

async fn offer(
    serve: &Serve,
    served: &Served,
    masker: &Masker,
    told: &CancellationToken,
) -> anyhow::Result<()> {
    let mut instructions: Vec<String> = served.instructions.iter().cloned().collect();
    for toolset in &served.toolsets {
        instructions.extend(toolset.instructions().await?);
    }
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    let name = served.name.as_deref().unwrap_or("updraft");
    let server = ToolsetServer::new(served.toolsets.clone(), name, instructions);
    let Some(address) = &serve.http else {
        return tokio::select! {
            ended = server.serve_stdio() => ended.map_err(anyhow::Error::msg),
            () = told.cancelled() => Ok(()),
        };
    };
    let token = match std::env::var(&serve.token_env) {
        Ok(token) if !token.is_empty() => Some(token),
        _ => None,
    };
    if let Some(token) = &token {
        masker.add_secret(token);
    }
    let http = HttpAddress {
        address: address.clone(),
        token: token.map(SecretString::from),
    };
    let guarded = if http.token.is_some() {
        ", with a token"
    } else {
        ""
    };
    serve_http(server, &http, told.clone(), |url| {
        eprintln!("serving {} on {url}{guarded}", serve.spec.display());
    })
    .await?;
    Ok(())
}
