//! A session with a server: how it starts, and how what it does is stopped.

use std::time::Duration;

use tiberius::error::Error;
use tiberius::{Client, Config};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

use super::error;
use super::settings::Settings;
use crate::hook::session_slot::ServerSession;

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// A session that is open.
pub(super) struct Session {
    pub client: Client<Compat<TcpStream>>,
    /// Whether the server can't be spoken to any more.
    pub lost: bool,
}

impl Session {
    /// Connects, to where the server sends the client if it does, and makes the session's settings.
    ///
    /// # Errors
    /// The text that pymssql has for it.
    pub(super) async fn open(settings: &Settings) -> Result<Self, String> {
        let opening = async {
            let host = &settings.host;
            let first = settings.config.clone();
            let outcome = match connect(first, host).await? {
                Err(Error::Routing { host, port }) => {
                    let mut next = settings.config.clone();
                    next.host(&host);
                    next.port(port);
                    connect(next, &host).await?
                }
                outcome => outcome,
            };
            let mut client = outcome.map_err(|failure| error::login(&failure, host))?;
            if !settings.start.trim().is_empty() {
                let started = async {
                    client
                        .simple_query(settings.start.as_str())
                        .await?
                        .into_results()
                        .await
                };
                started
                    .await
                    .map_err(|failure| error::statement(&failure))?;
            }
            Ok(Self {
                client,
                lost: false,
            })
        };
        tokio::time::timeout(settings.login_timeout, opening)
            .await
            .unwrap_or_else(|_| Err(error::unreachable(&settings.host, None)))
    }
}

type Connected = Result<Client<Compat<TcpStream>>, Error>;

async fn connect(config: Config, host: &str) -> Result<Connected, String> {
    let stream = TcpStream::connect(config.get_addr())
        .await
        .map_err(|cause| {
            let known = cause.raw_os_error().is_some();
            error::unreachable(host, known.then_some(&cause))
        })?;
    stream
        .set_nodelay(true)
        .map_err(|cause| error::unreachable(host, Some(&cause)))?;
    Ok(Client::connect(config, stream.compat_write()).await)
}

impl ServerSession for Session {
    fn is_lost(&self) -> bool {
        self.lost
    }

    async fn stop(mut self) {
        match tokio::time::timeout(FAREWELL, self.client.cancel_query()).await {
            Ok(Ok(())) => {}
            // What a server does for a client that has hung up, it ends as well.
            Ok(Err(failure)) => {
                tracing::warn!("the running statement could not be cancelled: {failure}")
            }
            Err(_) => tracing::warn!(
                "the running statement could not be cancelled: the server does not answer"
            ),
        }
        self.close().await;
    }

    async fn close(self) {
        match tokio::time::timeout(FAREWELL, self.client.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => tracing::debug!("the session with the server ended: {failure}"),
            Err(_) => tracing::debug!("the server did not take leave in time"),
        }
    }
}
