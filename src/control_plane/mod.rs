//! The control plane: what answers a task's requests.
//!
//! Three things do: the Execution API over HTTP (`execution_api`), an in-memory one for local runs and tests
//! (`local`), and, inside a task process, the supervisor at the other end of the socket (`task::comms`).

pub mod execution_api;
pub mod http;
pub mod local;
pub mod resolve;
pub mod retry;

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::airflow::supervisor::{ErrorResponse, TaskReply, TaskRequest};

/// Answers one request of one task.
#[async_trait]
pub trait ControlPlane: Send + Sync {
    /// # Errors
    /// What the server refused or could not find, in the protocol's own terms.
    async fn handle(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse>;

    /// Answers a request on behalf of a span: `carrier` is its W3C trace context. Control planes that pass no trace
    /// context on need not care.
    ///
    /// # Errors
    /// See [`ControlPlane::handle`].
    async fn handle_traced(
        &self,
        request: TaskRequest,
        _carrier: Option<&BTreeMap<String, String>>,
    ) -> Result<TaskReply, ErrorResponse> {
        self.handle(request).await
    }
}
