//! `/health` and `/metrics` over HTTP, at `[updraft] metrics_address`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::metrics::Metrics;
use super::status::Snapshot;

/// How many heartbeats in a row may go amiss before the worker is called unhealthy. (The server waits for five.)
const MISSED_HEARTBEATS: u32 = 3;

#[derive(Clone)]
struct Served {
    status: watch::Receiver<Snapshot>,
    metrics: Arc<Metrics>,
    longest_silence: Duration,
}

/// The endpoint, until it is dropped.
pub(super) struct Endpoint {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Endpoint {
    /// Serves at `address`.
    ///
    /// # Errors
    /// Nothing can listen there.
    pub async fn start(
        address: SocketAddr,
        heartbeat_interval: Duration,
        metrics: Arc<Metrics>,
        status: watch::Receiver<Snapshot>,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/health", get(health))
            .route("/metrics", get(figures))
            .with_state(Served {
                status,
                metrics,
                longest_silence: heartbeat_interval * MISSED_HEARTBEATS,
            });
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!("/health and /metrics are no longer served: {error}");
            }
        });
        Ok(Self { address, server })
    }

    /// Where it is reached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn health(State(served): State<Served>) -> Response {
    let now = served.status.borrow().clone();
    let status = now.now();
    let healthy = status.registered
        && now
            .heartbeat_age()
            .is_some_and(|age| age <= served.longest_silence);
    let code = if healthy {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({
        "status": if healthy { "healthy" } else { "unhealthy" },
        "state": status.state,
        "registered": status.registered,
        "heartbeat_age": status.heartbeat_age,
        "jobs": status.job_count,
        "free_concurrency": status.free_concurrency,
    });
    (code, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn figures(State(served): State<Served>) -> Response {
    let now = served.status.borrow().clone();
    let text = served.metrics.render(&now);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, kind)], text).into_response()
}
