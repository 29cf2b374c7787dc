//! The control plane: what answers a task's requests.
//!
//! Three things do: the Execution API over HTTP (`execution_api`), an in-memory one for local runs and tests
//! (`local`), and, inside a task process, the supervisor at the other end of the socket (`task::comms`).

pub mod resolve;

use async_trait::async_trait;

use crate::airflow::supervisor::{ErrorResponse, TaskReply, TaskRequest};

/// Answers one request of one task.
#[async_trait]
pub trait ControlPlane: Send + Sync {
    /// # Errors
    /// What the server refused or could not find, in the protocol's own terms.
    async fn handle(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse>;
}
