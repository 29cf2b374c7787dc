//! Which tasks run natively, and why the others don't.

use super::rust;
use crate::dag::definitions::{AgentTask, Argument, Expansion, Task, TaskKind, ToolsetSpec};
use crate::model::prefixes::obstacle_of_name;

/// Arguments of pydantic-ai's `Agent` that `agent_params` may hold here. `toolsets` and `tools` are looked at as
/// toolsets, `capabilities` as capabilities.
const AGENT_PARAMS: [&str; 7] = [
    "retries",
    "model_settings",
    "name",
    "end_strategy",
    "toolsets",
    "tools",
    "capabilities",
];

/// Arguments of AI operators that are read from the Dag file once, so that no map index can have its own.
pub(super) const NOT_MAPPABLE: [&str; 23] = [
    "output_type",
    "serialize_output",
    "output_retries",
    "allow_multiple_branches",
    "allowed_sql_types",
    "datasource_config",
    "data_sources",
    "toolsets",
    "capabilities",
    "enable_tool_logging",
    "durable",
    "cache_prompt",
    "enable_hitl_review",
    "max_hitl_iterations",
    "hitl_timeout",
    "hitl_poll_interval",
    "require_approval",
    "decision_policy",
    "approval_timeout",
    "on_approval_timeout",
    "allow_modifications",
    "approval_notifiers",
    "approval_assigned_users",
];

/// Why a task can't run here, as a sentence without operator, module or place; `None` when it can.
#[must_use]
pub fn obstacle(task: &Task) -> Option<String> {
    match &task.kind {
        TaskKind::Agent(agent) => mapping_obstacle(task).or_else(|| agent_obstacle(agent)),
        TaskKind::Python(_) | TaskKind::Empty => None,
        TaskKind::Stub(stub) => rust::obstacle_of_task(stub, &task.task_id),
        TaskKind::Unsupported { reason } => Some(reason.clone()),
    }
}

fn mapping_obstacle(task: &Task) -> Option<String> {
    // A decorated function is mapped over its own arguments.
    if !task.is_mapped || task.operator.starts_with('@') {
        return None;
    }
    let mapped = |name: &&&str| match task.expansions.last() {
        Some(Expansion::Product(arguments)) => arguments.iter().any(|(mapped, _)| mapped == **name),
        _ => false,
    };
    let name = NOT_MAPPABLE.iter().find(mapped)?;
    Some(format!(
        "its {name} is mapped over, and can't differ between map indexes natively yet"
    ))
}

fn agent_obstacle(agent: &AgentTask) -> Option<String> {
    let not_yet = |what: &str| Some(format!("{what} is not run natively yet"));
    if let Some(name) = &agent.capabilities.unsupported {
        return not_yet(&format!("the capability {name}"));
    }
    if let Some(fault) = &agent.capabilities.fault {
        return Some(fault.clone());
    }
    if let Argument::String(model_id) = &agent.model_id
        && let Some(obstacle) = obstacle_of_name(model_id)
    {
        return Some(obstacle);
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
    if let ToolsetSpec::Named { name } = toolset {
        return rust::obstacle_of_toolset(name);
    }
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

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::task::context_tests::{dag, task_json};

    #[test]
    fn what_is_read_once_for_all_map_indexes_can_not_be_mapped_over() {
        let obstacle_of = |operator: &str, mapped_over: &str| {
            let mut task = task_json("ask");
            task["operator"] = operator.into();
            task["is_mapped"] = true.into();
            task["expansions"] = json!([{ "product": [[mapped_over, [true, false]]] }]);
            task["kind"] = json!({ "agent": { "llm_conn_id": "llm", "output_type": "text" } });
            let dag = dag(&json!([task]), &json!({}), &json!({}));
            obstacle(&dag.tasks[0])
        };
        assert_eq!(
            obstacle_of("LLMOperator", "require_approval").as_deref(),
            Some(
                "its require_approval is mapped over, and can't differ between map indexes natively yet"
            )
        );
        assert_eq!(obstacle_of("LLMOperator", "prompt"), None);
        // An argument of the function, whatever it is called.
        assert_eq!(obstacle_of("@task.llm", "require_approval"), None);
    }
}
