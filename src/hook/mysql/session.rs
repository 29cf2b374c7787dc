//! A session with a server: how it starts, and how what it does is stopped.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Opts};

use super::error;
use super::settings::{Place, Settings, TlsMode};
use crate::hook::session_slot::ServerSession;

/// How long connecting may take. The Python hook sets no limit of its own, and an agent should not wait for minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request to stop a statement, or the end of a session, may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// A session that is open.
pub(super) struct Session {
    pub conn: Conn,
    /// MariaDB names the limit of a statement's time otherwise.
    pub is_mariadb: bool,
    options: Opts,
    lost: bool,
}

impl Session {
    /// Connects, with TLS where the settings and the server have it.
    ///
    /// # Errors
    /// The text that `MySQLdb` has for it.
    pub(super) async fn open(settings: &Settings) -> Result<Self, String> {
        // The driver takes the process's cryptography, and rustls names none by itself where several are linked. One
        // that is there already stays.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let with_tls = settings.tls_mode != TlsMode::Disable;
        let mut options = settings.options(with_tls);
        let mut outcome = connect(&options).await;
        if settings.tls_mode == TlsMode::Prefer
            && matches!(
                outcome,
                Some(Err(Error::Driver(DriverError::NoClientSslFlagFromServer)))
            )
        {
            options = settings.options(false);
            outcome = connect(&options).await;
        }
        let mut conn = match (outcome, &settings.place) {
            (Some(Ok(conn)), _) => conn,
            (Some(Err(failure)), place) => return Err(error::connect(&failure, place)),
            (None, Place::Host(host)) => return Err(error::unreachable_host(host)),
            (None, Place::Socket(socket)) => return Err(error::unreachable_host(socket)),
        };
        let version: Option<String> = conn
            .query_first("SELECT VERSION()")
            .await
            .map_err(|failure| error::statement(&failure))?;
        Ok(Self {
            conn,
            is_mariadb: version.is_some_and(|version| version.contains("MariaDB")),
            options,
            lost: false,
        })
    }

    /// Takes back everything that a call may have left: the transaction, locks, variables, temporary tables. False when
    /// the server can't, or is gone.
    pub(super) async fn reset(&mut self) -> bool {
        matches!(self.conn.reset().await, Ok(true))
    }

    /// Remembers that the server can't be spoken to any more.
    pub(super) fn note(&mut self, error: &Error) {
        self.lost |= error.is_fatal();
    }
}

/// `None` when time is up.
async fn connect(options: &Opts) -> Option<Result<Conn, Error>> {
    tokio::time::timeout(CONNECT_TIMEOUT, Conn::new(options.clone()))
        .await
        .ok()
}

impl ServerSession for Session {
    fn is_lost(&self) -> bool {
        self.lost || self.conn.is_disconnected()
    }

    async fn stop(self) {
        let id = self.conn.id();
        let options = self.options.clone();
        let asked = tokio::time::timeout(FAREWELL, async move {
            let mut messenger = Conn::new(options).await?;
            messenger.query_drop(format!("KILL QUERY {id}")).await?;
            messenger.disconnect().await
        })
        .await;
        match asked {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => tracing::warn!(
                "the running statement could not be cancelled: {}",
                error::statement(&failure)
            ),
            Err(_) => tracing::warn!(
                "the running statement could not be cancelled: the server does not answer"
            ),
        }
        self.close().await;
    }

    async fn close(self) {
        // The rest of a result is not read first: the server notices that nobody listens.
        match tokio::time::timeout(FAREWELL, self.conn.disconnect()).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => tracing::debug!("the session with the server ended: {failure}"),
            Err(_) => tracing::debug!("the server did not take leave in time"),
        }
    }
}
