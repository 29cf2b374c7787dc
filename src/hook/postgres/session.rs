//! A session with a server: how it starts, and how what it does is stopped.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::{CancelToken, Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error;
use super::settings::{Host, Settings};
use super::tls;
use crate::hook::session_slot::ServerSession;

/// How long a request to stop a statement, or the end of a session, may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// A session that is open.
pub(super) struct Session {
    pub client: Client,
    cancel: CancelToken,
    tls: MakeRustlsConnect,
    traffic: JoinHandle<()>,
}

impl Session {
    /// Connects to the first host and address that answers.
    ///
    /// # Errors
    /// What psycopg would say: the last failure, and a list of all when there were several addresses.
    pub(super) async fn open(settings: &Settings) -> Result<Self, String> {
        let mut failures = Vec::new();
        for (host, port) in &settings.hosts {
            for place in places(host, *port).await? {
                match at(&place, settings).await {
                    Ok(session) => return Ok(session),
                    Err(failure) => failures.push((place, failure)),
                }
            }
        }
        let Some((_, last)) = failures.last() else {
            return Err("no host to connect to".to_owned());
        };
        let mut text = last.clone();
        if failures.len() > 1 {
            text.push_str("\nMultiple connection attempts failed. All failures were:");
            for (place, failure) in &failures {
                text.push_str(&format!("\n- {}: {failure}", place.described()));
            }
        }
        Err(text)
    }
}

impl ServerSession for Session {
    fn is_lost(&self) -> bool {
        self.client.is_closed()
    }

    async fn stop(self) {
        let asked =
            tokio::time::timeout(FAREWELL, self.cancel.cancel_query(self.tls.clone())).await;
        match asked {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(
                    "the running statement could not be cancelled: {}",
                    error::connect(&error)
                );
            }
            Err(_) => tracing::warn!(
                "the running statement could not be cancelled: the server does not answer"
            ),
        }
        self.close().await;
    }

    async fn close(self) {
        let Self {
            client, traffic, ..
        } = self;
        drop(client);
        let abort = traffic.abort_handle();
        if tokio::time::timeout(FAREWELL, traffic).await.is_err() {
            abort.abort();
        }
    }
}

/// One address to try.
struct Place {
    name: String,
    port: u16,
    kind: PlaceKind,
}

enum PlaceKind {
    Socket,
    Tcp(IpAddr),
}

impl Place {
    /// As psycopg lists an attempt.
    fn described(&self) -> String {
        let Self { name, port, kind } = self;
        match kind {
            PlaceKind::Socket => format!("host: '{name}', port: {port}, hostaddr: None"),
            PlaceKind::Tcp(address) => {
                format!("host: '{name}', port: {port}, hostaddr: '{address}'")
            }
        }
    }

    fn config(&self, base: &Config) -> Config {
        let mut config = base.clone();
        config.port(self.port);
        match self.kind {
            PlaceKind::Socket => config.host_path(&self.name),
            PlaceKind::Tcp(address) => config.host(&self.name).hostaddr(address),
        };
        config
    }

    fn failure(&self, reason: &str) -> String {
        let Self { name, port, kind } = self;
        match kind {
            PlaceKind::Socket => {
                let socket = Path::new(name).join(format!(".s.PGSQL.{port}"));
                format!(
                    "connection to server on socket \"{}\" failed: {reason}",
                    socket.display()
                )
            }
            PlaceKind::Tcp(address) => {
                format!("connection to server at \"{address}\", port {port} failed: {reason}")
            }
        }
    }
}

async fn places(host: &Host, port: u16) -> Result<Vec<Place>, String> {
    let (name, addresses) = match host {
        Host::Socket(folder) => {
            return Ok(vec![Place {
                name: folder.display().to_string(),
                port,
                kind: PlaceKind::Socket,
            }]);
        }
        Host::Tcp(name, Some(address)) => (name, vec![*address]),
        Host::Tcp(name, None) => {
            let found = tokio::net::lookup_host((name.as_str(), port)).await;
            let mut addresses: Vec<IpAddr> = found
                .map_err(|error| {
                    let text = error.to_string();
                    let reason = text.rsplit(": ").next().unwrap_or(&text);
                    format!("failed to resolve host '{name}': [Errno -2] {reason}")
                })?
                .map(|address| address.ip())
                .collect();
            addresses.dedup();
            (name, addresses)
        }
    };
    Ok(addresses
        .into_iter()
        .map(|address| Place {
            name: name.clone(),
            port,
            kind: PlaceKind::Tcp(address),
        })
        .collect())
}

/// Tries one address, with and without TLS as the mode says.
async fn at(place: &Place, settings: &Settings) -> Result<Session, String> {
    let tls_config =
        tls::client_config(&settings.verification, settings.client_certificate.as_ref())
            .map_err(|reason| format!("connection failed: {}", place.failure(&reason)))?;
    let tls = MakeRustlsConnect::new(tls_config);
    let mut reasons = Vec::new();
    for &mode in settings.tls_mode.attempts() {
        let mut config = place.config(&settings.config);
        config.ssl_mode(mode);
        let connecting = config.connect(tls.clone());
        let Ok(outcome) = tokio::time::timeout(settings.connect_timeout, connecting).await else {
            return Err("connection timeout expired".to_owned());
        };
        match outcome {
            Ok((client, connection)) => {
                let traffic = tokio::spawn(async move {
                    // A failure reaches whoever waits for an answer as well; nobody waiting, the next call sees it.
                    if let Err(error) = connection.await {
                        tracing::debug!("the session with the server ended: {error}");
                    }
                });
                return Ok(Session {
                    cancel: client.cancel_token(),
                    client,
                    tls,
                    traffic,
                });
            }
            Err(failure) => {
                reasons.push(place.failure(&reason(&failure, &place.kind)));
                if !may_go_otherwise(&failure, mode) {
                    break;
                }
            }
        }
    }
    // libpq's two words for it: "bad" when there was nothing to talk to in the first place.
    let word = match place.kind {
        PlaceKind::Socket if reasons.iter().any(|reason| reason.contains("No such file")) => {
            "is bad"
        }
        PlaceKind::Socket | PlaceKind::Tcp(_) => "failed",
    };
    Err(format!("connection {word}: {}", reasons.join("\n")))
}

fn reason(failure: &Error, place: &PlaceKind) -> String {
    let mut text = error::connect(failure);
    if failure.as_db_error().is_none()
        && (text.starts_with("Connection refused") || text.starts_with("No such file"))
    {
        text.push_str(match place {
            PlaceKind::Socket => {
                "\n\tIs the server running locally and accepting connections on that socket?"
            }
            PlaceKind::Tcp(_) => {
                "\n\tIs the server running on that host and accepting TCP/IP connections?"
            }
        });
    }
    text
}

/// Whether the other way of the TLS mode may help: the server rejected the client, or TLS itself failed.
fn may_go_otherwise(failure: &Error, mode: SslMode) -> bool {
    match failure.as_db_error() {
        Some(server) => server.code().code().starts_with("28"),
        None => mode == SslMode::Prefer && failure.to_string().contains("TLS"),
    }
}
