//! Spans out of a task: where they go, which span the task itself is, and that none is lost at its end.
//!
//! Airflow's `[traces] otel_on` switches it on; where to, the `OTEL_...` variables say. What the GenAI spans are called
//! and hold is the agent's business (`agent::spans`).

mod masking;
mod otlp;
mod task_span;
pub mod worker_log;

pub use otlp::{GenAi, Telemetry, TelemetryError};
pub use task_span::{TaskSpan, identity, propagate};
