//! For authors who write tasks, toolsets and agents in Rust.
//!
//! A Dag names them, and the rest is as for Python: the scheduler, retries, XComs, connections, the log, the interface.
//!
//! ```python
//! @dag
//! def harbour():
//!     @task.stub(queue="agents")
//!     def berth(ship: str, nights: int = 1): ...
//!
//!     AgentOperator(task_id="ask", prompt="...", llm_conn_id="llm", toolsets=["tides"], queue="agents")
//!     berth("Aurora")
//! ```
//!
//! The program that runs them is `updraft` with these in it: its worker, `run`, `check` and everything else.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use updraft::sdk::{App, TaskContext, TaskError};
//!
//! #[derive(Deserialize)]
//! struct Stay {
//!     ship: String,
//!     nights: u32,
//! }
//!
//! #[derive(Serialize)]
//! struct Berth {
//!     quay: String,
//!     price: u32,
//! }
//!
//! async fn berth(context: TaskContext, stay: Stay) -> Result<Berth, TaskError> {
//!     let Some(quay) = context.variable("quay").await? else {
//!         return Err(TaskError::skipped(format!("no quay for {}", stay.ship)));
//!     };
//!     Ok(Berth { quay, price: 40 * stay.nights })
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     App::new().task("harbour", "berth", berth).main()
//! }
//! ```
//!
//! `examples/harbour.rs` is the whole of it, with a Dag beside it.

//! Agents ([`Agent`]) run in such a task, and in a program that has nothing of Airflow but connections in its environment
//! ([`Environment`]).

mod agent;
mod app;
mod environment;
mod team;
mod tool;

pub use agent::{Agent, AgentBuilder, Answer, RunError};
pub use app::App;
pub use environment::Environment;
pub use tool::Tool;

pub use crate::agent::{Model, Retries, ToolDefinition, ToolError, Toolset, UsageLimits};
pub use crate::airflow::connection::Connection;
pub use crate::hook::ConnectionSource;
pub use crate::task::rust::{TaskContext, TaskError};
