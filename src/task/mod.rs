//! The task process: one try of one task, from its start-up details to its terminal message.
//!
//! | file | what it does |
//! |---|---|
//! | `process` | from the first connection to the exit status |
//! | `confine` | what the process gives up before it begins |
//! | `comms`, `log` | the two sockets of the supervisor protocol |
//! | `startup` | the Dag file, its Dag, its task |
//! | `attempt` | the task with everything it needs, and its rendered arguments |
//! | `context`, `templates`, `arguments`, `mapping` | how arguments get their values |
//! | `outcome` | runs the task and says what became of it |
//! | `agent_task`, `agent_model` | the kind of task that is not Python, and the model it asks |
//! | `dag_agent`, `agent_runs` | agents that Dag code builds and runs |
//! | `durable` | where the journal of a durable task is kept |
//! | `loggers` | the Python loggers that lines stand under |
//! | `served` | toolsets that are no task's: those of `updraft mcp serve` |
//! | `dag_code` | what the interpreter is asked for: Python tasks, hooks, callbacks, retry policies |
//! | `hitl_review` | answers of agents that a person reads and sends back |
//! | `rust` | tasks and toolsets that are written in Rust |
//! | `llm` | `LLMOperator` and the operators that derive from it |

pub mod agent_model;
mod agent_runs;
pub mod agent_task;
pub mod arguments;
pub mod attempt;
pub mod comms;
pub mod confine;
pub mod context;
mod dag_agent;
pub mod dag_code;
mod durable;
pub mod failure;
mod framework_spans;
mod hitl_review;
pub mod host;
mod kept_files;
mod llm;
pub mod log;
pub mod loggers;
pub mod mapping;
mod native_hooks;
mod native_toolsets;
pub mod outcome;
pub mod process;
mod prompt_cache;
mod python_output;
mod python_toolset;
pub mod rendered_fields;
pub(crate) mod rust;
pub mod served;
pub mod services;
pub mod startup;
pub mod support;
pub mod templates;
pub mod toolsets;
pub mod usage_limits;
pub mod xcom_push;

#[cfg(test)]
mod context_tests;

use failure::Failure;

/// Runs something that blocks, such as rendering templates, on a thread where it may.
///
/// # Errors
/// It panicked: a fault of Updraft, which must not take the task process down without a word.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Failure::new(
            "updraft.InternalError",
            format!("a fault of Updraft: {error}"),
        )
    })
}
