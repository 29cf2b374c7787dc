//! The agent loop, its messages, limits and traits. Knows nothing of Airflow; model providers and toolsets live
//! elsewhere and implement the traits here.

pub mod arguments;
pub mod binary_content;
pub mod cost;
pub mod durable;
pub mod error;
pub mod events;
pub mod history;
pub mod message;
pub mod metrics;
pub mod model;
pub mod output;
pub mod pydantic_json;
pub mod render;
pub mod run;
pub mod spans;
mod tool_calls;
pub mod toolset;
pub mod usage;

pub use binary_content::{BinaryContent, ToolOutput};
pub use error::AgentError;
pub use model::{Model, ModelError, NativeTool};
pub use output::{EndStrategy, Output, OutputSpec};
pub use run::{Agent, RunInput, RunOutcome};
pub use spans::Telemetry;
pub use tool_calls::Retries;
pub use toolset::{ToolDefinition, ToolError, Toolset};
pub use usage::{RunUsage, UsageLimits};
