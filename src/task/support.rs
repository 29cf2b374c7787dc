//! Which tasks run natively, and why the others don't.

use crate::dag::definitions::{AgentTask, Argument, Task, TaskKind, ToolsetSpec};

/// Arguments of pydantic-ai's `Agent` that `agent_params` may hold here. `toolsets` are looked at as toolsets.
const AGENT_PARAMS: [&str; 5] = [
    "retries",
    "model_settings",
    "name",
    "end_strategy",
    "toolsets",
];

/// Why a task can't run here, as a sentence without operator, module or place; `None` when it can.
#[must_use]
pub fn obstacle(task: &Task) -> Option<String> {
    match &task.kind {
        TaskKind::Agent(agent) => agent_obstacle(agent),
        TaskKind::Python(_) | TaskKind::Empty => None,
        TaskKind::Unsupported { reason } => Some(reason.clone()),
    }
}

fn agent_obstacle(agent: &AgentTask) -> Option<String> {
    let not_yet = |what: &str| Some(format!("{what} is not run natively yet"));
    if agent.durable {
        return not_yet("durable=True");
    }
    if agent.enable_hitl_review {
        return not_yet("enable_hitl_review=True");
    }
    if !agent.capabilities.is_empty() {
        return not_yet("capabilities");
    }
    if let Argument::Dict(pairs) = &agent.agent_params {
        for (key, value) in pairs {
            let Argument::String(name) = key else {
                continue;
            };
            let empty = matches!(value, Argument::Null)
                || matches!(value, Argument::List(items) if items.is_empty());
            if !AGENT_PARAMS.contains(&name.as_str()) && !empty {
                return not_yet(&format!("agent_params[{name:?}]"));
            }
        }
    }
    agent.toolsets.iter().find_map(toolset_obstacle)
}

fn toolset_obstacle(toolset: &ToolsetSpec) -> Option<String> {
    toolset
        .obstacle()
        .or_else(|| toolset.inner().iter().find_map(toolset_obstacle))
}

/// The whole sentence: which operator of which module, where, why, and what to do.
#[must_use]
pub fn sentence(task: &Task, obstacle: &str) -> String {
    format!(
        "Task {} is {} {} ({}) at {}, which Updraft can't run: {}. Send it to a queue that a Python worker serves.",
        task.task_id,
        if task.operator.starts_with(['A', 'E', 'I', 'O', 'U']) {
            "an"
        } else {
            "a"
        },
        task.operator,
        task.module,
        task.location,
        obstacle.trim_end_matches('.')
    )
}
