//! The HTTP client for Airflow's API server: TLS as `[api]` says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Client, Identity};

use crate::airflow::config::{Config, ConfigError};

/// Why there is no HTTP client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpClientError {
    /// An option can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A certificate or key file can't be read.
    #[error("[api] {option} names {}, which can't be read: {source}", path.display())]
    File {
        /// The option of the section `[api]`.
        option: &'static str,
        /// What it names.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A certificate or key is none.
    #[error("[api] {option} names {}, which holds no PEM certificate or key: {source}", path.display())]
    Pem {
        /// The option of the section `[api]`.
        option: &'static str,
        /// What it names.
        path: PathBuf,
        /// Why not.
        #[source]
        source: reqwest::Error,
    },
    /// Only half of a client certificate is there.
    #[error("[api] client_ssl_cert and [api] client_ssl_key go together: set both or neither")]
    HalfIdentity,
    /// The client can't be built.
    #[error("the HTTP client can't be set up: {0}")]
    Client(#[from] reqwest::Error),
}

/// Makes the client. Requests get their time limits one by one; only connecting is limited here.
///
/// # Errors
/// See [`HttpClientError`].
pub fn client(config: &Config, connect_timeout: Duration) -> Result<Client, HttpClientError> {
    let mut builder = Client::builder()
        .user_agent(concat!("updraft/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        // Airflow's server closes idle connections after 5 s; a request that meets the closing is lost.
        .pool_idle_timeout(Duration::from_secs(4))
        .redirect(reqwest::redirect::Policy::none());
    for option in ["ssl_cert", "ssl_ca_file"] {
        if let Some(path) = config.get_path("api", option)? {
            let bundle = Certificate::from_pem_bundle(&read(option, &path)?).map_err(|source| {
                HttpClientError::Pem {
                    option,
                    path,
                    source,
                }
            })?;
            builder = builder.tls_certs_merge(bundle);
        }
    }
    match (
        config.get_path("api", "client_ssl_cert")?,
        config.get_path("api", "client_ssl_key")?,
    ) {
        (None, None) => {}
        (Some(certificate), Some(key)) => {
            let mut pem = read("client_ssl_key", &key)?;
            pem.push(b'\n');
            pem.extend(read("client_ssl_cert", &certificate)?);
            let identity = Identity::from_pem(&pem).map_err(|source| HttpClientError::Pem {
                option: "client_ssl_cert",
                path: certificate,
                source,
            })?;
            builder = builder.identity(identity);
        }
        _ => return Err(HttpClientError::HalfIdentity),
    }
    Ok(builder.build()?)
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, HttpClientError> {
    std::fs::read(path).map_err(|source| HttpClientError::File {
        option,
        path: path.to_owned(),
        source,
    })
}
