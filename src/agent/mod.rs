//! The agent loop, its messages, limits and traits. Knows nothing of Airflow.

pub mod message;
pub mod model;
pub mod toolset;

pub use model::{Model, ModelError};
pub use toolset::{ToolDefinition, ToolError, Toolset};
