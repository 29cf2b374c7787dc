//! The server over streamable HTTP, and who may use it.

use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::ToolsetServer;

/// Where the protocol is spoken, under the server's address.
const PATH: &str = "/mcp";

/// Where to serve, and for whom.
#[derive(Clone, Debug)]
pub struct HttpAddress {
    /// `HOST:PORT`; port 0 takes a free one.
    pub address: String,
    /// What a client must send as `Authorization: Bearer ...`.
    pub token: Option<SecretString>,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The address can't be used.
    #[error("{address} can't be served on: {source}")]
    Bind {
        address: String,
        #[source]
        source: std::io::Error,
    },
    /// Whoever reaches the address could use the tools.
    #[error(
        "{0} can be reached from other machines, and without a token anybody there could use the tools: set the \
         environment variable that --token-env names, or serve on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The server broke off.
    #[error("the server broke off: {0}")]
    Serve(#[source] std::io::Error),
}

/// Serves until `ended` is cancelled. `ready` is told the URL.
///
/// # Errors
/// See [`HttpError`].
pub async fn serve_http(
    server: ToolsetServer,
    http: &HttpAddress,
    ended: CancellationToken,
    ready: impl FnOnce(&str),
) -> Result<(), HttpError> {
    let bind = |source| HttpError::Bind {
        address: http.address.clone(),
        source,
    };
    let listener = TcpListener::bind(&http.address).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let mut config = StreamableHttpServerConfig::default().enforce_origin_validation();
    config.cancellation_token = ended.child_token();
    if http.token.is_some() {
        // By what names it is reached nobody knows here: a proxy may stand before it. The token keeps strangers out.
        config = config.disable_allowed_hosts();
    } else if !address.ip().is_loopback() {
        return Err(HttpError::Open(address));
    }
    let service = StreamableHttpService::new(
        move || Ok(server.for_session()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let mut router = Router::new().route_service(PATH, service);
    if let Some(token) = &http.token {
        router = router.layer(from_fn_with_state(Arc::new(token.clone()), check_token));
    }
    ready(&format!("http://{address}{PATH}"));
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { ended.cancelled().await })
        .await
        .map_err(HttpError::Serve)
}

async fn check_token(
    State(token): State<Arc<SecretString>>,
    request: Request,
    next: Next,
) -> Response {
    let given = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let matches = given.is_some_and(|given| {
        verify_slices_are_equal(given, token.expose_secret().as_bytes()).is_ok()
    });
    if matches {
        next.run(request).await
    } else {
        (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response()
    }
}
