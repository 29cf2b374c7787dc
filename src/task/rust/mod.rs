//! Tasks and toolsets that this build of the program has in Rust: what a Dag names with `@task.stub`, and by a name
//! among an agent's toolsets.
//!
//! They are registered once, before anything else (see [`crate::sdk`]), and known to the whole process.

mod context;
mod error;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use self::context::TaskContext;
pub use self::error::TaskError;
use super::attempt::{Attempt, Rendered};
use super::failure::Failure;
use crate::agent::{Telemetry, Toolset};
use crate::dag::definitions::StubTask;

/// A task's work, with its arguments as a JSON object.
pub(crate) type TaskFunction =
    Arc<dyn Fn(TaskContext, Value) -> BoxFuture<'static, Result<Value, TaskError>> + Send + Sync>;

/// Makes a toolset for one run of an agent.
pub(crate) type ToolsetFactory =
    Arc<dyn Fn(TaskContext) -> Result<Arc<dyn Toolset>, TaskError> + Send + Sync>;

/// What is written in Rust.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    /// By Dag and task.
    pub tasks: HashMap<(String, String), TaskFunction>,
    pub toolsets: HashMap<String, ToolsetFactory>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Makes it known. False when something was registered before: that stays.
pub(crate) fn install(registry: Registry) -> bool {
    REGISTRY.set(registry).is_ok()
}

fn registry() -> &'static Registry {
    REGISTRY.get_or_init(Registry::default)
}

/// Why a stub can't run in this build; `None` when it can.
pub(super) fn obstacle_of_task(stub: &StubTask, task_id: &str) -> Option<String> {
    let tasks = &registry().tasks;
    if tasks.contains_key(&(stub.dag_id.clone(), task_id.to_owned())) {
        return None;
    }
    Some("it stands for a task of another language, and this build of Updraft has no Rust function for it".to_owned())
}

/// Why there is no toolset of this name; `None` when there is one.
pub(super) fn obstacle_of_toolset(name: &str) -> Option<String> {
    let known = &registry().toolsets;
    if known.contains_key(name) {
        return None;
    }
    let mut known: Vec<_> = known.keys().map(|name| format!("{name:?}")).collect();
    known.sort_unstable();
    let known = if known.is_empty() {
        "has none in Rust".to_owned()
    } else {
        format!("has {}", known.join(", "))
    };
    Some(format!(
        "there is no toolset {name:?}: this build of Updraft {known}"
    ))
}

/// Runs a stub's function.
///
/// # Errors
/// There is none, its arguments don't fit, or what it says.
pub(super) async fn run(
    attempt: &Arc<Attempt>,
    stub: &StubTask,
    rendered: &Rendered,
    cancel: CancellationToken,
    telemetry: Option<Telemetry>,
) -> Result<Value, Failure> {
    let ti = &attempt.services.ti;
    let key = (ti.dag_id.clone(), ti.task_id.clone());
    let Some(function) = registry().tasks.get(&key) else {
        let text = obstacle_of_task(stub, &ti.task_id).unwrap_or_default();
        return Err(Failure::new("NotImplementedError", text).for_good());
    };
    let arguments = arguments(stub, rendered)?;
    let context = TaskContext::new(attempt, cancel.clone(), telemetry);
    let work = function(context, arguments);
    let done = cancel.run_until_cancelled(work).await;
    done.unwrap_or_else(|| Err(TaskError::failed("the task was stopped")))
        .map_err(Failure::from)
}

/// The toolset of this name, for one run of an agent.
///
/// # Errors
/// There is none, or it can't be made.
pub(super) fn toolset(attempt: &Arc<Attempt>, name: &str) -> Result<Arc<dyn Toolset>, Failure> {
    let Some(make) = registry().toolsets.get(name) else {
        let text = obstacle_of_toolset(name).unwrap_or_default();
        return Err(Failure::new("NotImplementedError", text).for_good());
    };
    make(TaskContext::new(attempt, CancellationToken::new(), None)).map_err(Failure::from)
}

/// The arguments by name, defaults included.
fn arguments(stub: &StubTask, rendered: &Rendered) -> Result<Value, Failure> {
    let mut named: Map<String, Value> = stub.defaults.clone();
    let positional = plain(rendered.field("op_args").clone());
    let positional = match positional {
        Value::Array(values) => values,
        _ => Vec::new(),
    };
    if positional.len() > stub.parameters.len() {
        let text = format!(
            "{}() takes {} positional arguments but {} were given",
            stub.name,
            stub.parameters.len(),
            positional.len()
        );
        return Err(Failure::new("TypeError", text));
    }
    named.extend(stub.parameters.iter().cloned().zip(positional));
    if let Value::Object(keywords) = rendered.field("op_kwargs") {
        for (name, value) in keywords {
            named.insert(name.clone(), plain(value.clone()));
        }
    }
    Ok(named.into())
}

/// A value in XCom's wire form as JSON: tuples and sets are arrays.
fn plain(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(mut map) => {
            let class = map.get("__classname__").and_then(Value::as_str);
            match class {
                Some("builtins.tuple" | "builtins.set" | "builtins.frozenset") => {
                    plain(map.remove("__data__").unwrap_or_default())
                }
                Some(_) => map.into(),
                None => map
                    .into_iter()
                    .map(|(key, item)| (key, plain(item)))
                    .collect::<Map<_, _>>()
                    .into(),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_bound_as_python_binds_them() {
        let stub = StubTask {
            dag_id: "d".to_owned(),
            name: "load".to_owned(),
            parameters: ["name", "sizes", "n"].map(ToOwned::to_owned).to_vec(),
            defaults: Map::from_iter([("n".to_owned(), json!(3))]),
            ..StubTask::default()
        };
        let tuple =
            json!({"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, 2]});
        let mut rendered = Rendered::default();
        rendered.fields.insert(
            "op_args".to_owned(),
            json!({
                "__classname__": "builtins.tuple", "__version__": 1, "__data__": ["x"]
            }),
        );
        rendered
            .fields
            .insert("op_kwargs".to_owned(), json!({"sizes": tuple}));
        assert_eq!(
            arguments(&stub, &rendered).unwrap(),
            json!({"n": 3, "name": "x", "sizes": [1, 2]})
        );
        rendered
            .fields
            .insert("op_args".to_owned(), json!([1, 2, 3, 4]));
        let failure = arguments(&stub, &rendered).unwrap_err();
        assert_eq!(
            failure.message,
            "load() takes 3 positional arguments but 4 were given"
        );
    }

    #[test]
    fn a_name_that_nobody_registered_is_told_with_those_that_are_there() {
        assert_eq!(
            obstacle_of_toolset("weather").unwrap(),
            "there is no toolset \"weather\": this build of Updraft has none in Rust"
        );
    }
}
