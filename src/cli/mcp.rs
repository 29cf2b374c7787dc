//! `updraft mcp`: our toolsets for agents of other frameworks.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use secrecy::{ExposeSecret as _, SecretString};
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
    /// [default: UPDRAFT_MCP_TOKEN, where there is one]
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
}

/// The variable with the token when no other is named.
const TOKEN_ENV: &str = "UPDRAFT_MCP_TOKEN";
/// How long it may take to end after a signal.
const END_LIMIT: Duration = Duration::from_secs(15);

/// Serves until the client leaves or a signal comes.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let McpCommand::Serve(serve) = arguments.command;
    let token = serve.token(|name| std::env::var_os(name))?;
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
    if let Some(token) = &token {
        masker.add_secret(token.expose_secret());
    }
    let outcome = runtime.block_on(serve_until_told(&serve, served, token));
    // What still waits, such as a read of standard input, must not keep the process.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

impl Serve {
    /// The token that clients must send. Whoever asks for one must not be left without.
    fn token(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> anyhow::Result<Option<SecretString>> {
        if self.http.is_none() {
            return Ok(None);
        }
        let name = self.token_env.as_deref().unwrap_or(TOKEN_ENV);
        let Some(token) = variable(name) else {
            anyhow::ensure!(
                self.token_env.is_none(),
                "--token-env names {name}, and there is no such environment variable: put the token in it"
            );
            return Ok(None);
        };
        let token = token
            .into_string()
            .ok()
            .filter(|token| !token.trim().is_empty())
            .with_context(|| {
                format!("the environment variable {name} holds no token: put the token in it, or unset it to serve without")
            })?;
        Ok(Some(token.into()))
    }
}

async fn serve_until_told(
    serve: &Serve,
    served: Served,
    token: Option<SecretString>,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals can't be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals can't be received")?;
    let told = CancellationToken::new();
    let work = async {
        let served = served.open().await?;
        let outcome = offer(serve, &served, token, &told).await;
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
    // Dropping the rest ends its child processes.
    tokio::select! {
        outcome = &mut work => outcome,
        _ = terminate.recv() => anyhow::bail!("ended by a second signal before the toolsets had closed"),
        _ = interrupt.recv() => anyhow::bail!("ended by a second signal before the toolsets had closed"),
        () = tokio::time::sleep(END_LIMIT) => anyhow::bail!(
            "the toolsets had not closed {} s after the signal", END_LIMIT.as_secs()
        ),
    }
}

async fn offer(
    serve: &Serve,
    served: &Served,
    token: Option<SecretString>,
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
    let http = HttpAddress {
        address: address.clone(),
        token,
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

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn token(
        http: bool,
        token_env: Option<&str>,
        value: Option<&[u8]>,
    ) -> Result<Option<String>, String> {
        let serve = Serve {
            spec: PathBuf::new(),
            http: http.then(|| "127.0.0.1:0".to_owned()),
            token_env: token_env.map(str::to_owned),
        };
        let expected = token_env.unwrap_or("UPDRAFT_MCP_TOKEN");
        let variable = |name: &str| {
            assert_eq!(name, expected);
            value.map(|value| OsString::from_vec(value.to_vec()))
        };
        let token = serve.token(variable).map_err(|error| error.to_string())?;
        Ok(token.map(|token| token.expose_secret().to_owned()))
    }

    #[test]
    fn whoever_asks_for_a_token_is_not_served_without_one() {
        let given: Option<&[u8]> = Some(b"made-up-token");
        for name in [None, Some("DOCK_TOKEN")] {
            assert_eq!(
                token(true, name, given),
                Ok(Some("made-up-token".to_owned()))
            );
            for empty in [&b""[..], b" ", b"\xff"] {
                let refused = token(true, name, Some(empty)).unwrap_err();
                assert!(refused.contains("holds no token"), "{refused}");
            }
        }
        assert_eq!(token(true, None, None), Ok(None));
        let refused = token(true, Some("DOCK_TOKEN"), None).unwrap_err();
        assert!(
            refused.contains("--token-env names DOCK_TOKEN"),
            "{refused}"
        );
        assert_eq!(token(false, Some("DOCK_TOKEN"), None), Ok(None));
    }
}
