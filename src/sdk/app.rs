//! The program of an author: `updraft` with tasks and toolsets in it.

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use futures::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::agent::Toolset;
use crate::cli;
use crate::task::rust::{self, Registry, TaskContext, TaskError};

/// `updraft`, with what is written in Rust for it.
#[derive(Default)]
#[must_use = "nothing is registered before main() runs"]
pub struct App {
    registry: Registry,
}

impl App {
    /// The program as it is, with nothing of its own yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The function of a stub task (`@task.stub`) of a Dag. `task_id` has the prefixes of its task groups.
    ///
    /// The stub's arguments are `function`'s second one: they are bound to the names of the stub's parameters as in
    /// Python, upstream results, templates and mapped values among them, and read into `A` (`()` or
    /// [`serde::de::IgnoredAny`] for none). Tuples and sets of Python are lists. What it returns is pushed as the XCom
    /// `return_value`.
    pub fn task<F, W, A, R>(mut self, dag_id: &str, task_id: &str, function: F) -> Self
    where
        F: Fn(TaskContext, A) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, TaskError>> + Send + 'static,
        A: DeserializeOwned,
        R: Serialize,
    {
        let function = Arc::new(move |context: TaskContext, arguments: serde_json::Value| {
            let called = read(arguments).map(|arguments| function(context, arguments));
            async move {
                let result = called?.await?;
                Ok(serde_json::to_value(result)?)
            }
            .boxed()
        });
        let key = (dag_id.to_owned(), task_id.to_owned());
        self.registry.tasks.insert(key, function);
        self
    }

    /// A toolset that agents of Dags use by `name`: `AgentOperator(toolsets=["tides"])`. It is made for each run of an
    /// agent; its tools are logged and masked as those of the toolsets that come with the program.
    pub fn toolset<T, F>(mut self, name: &str, make: F) -> Self
    where
        T: Toolset + 'static,
        F: Fn(TaskContext) -> Result<T, TaskError> + Send + Sync + 'static,
    {
        let make = Arc::new(move |context| Ok(Arc::new(make(context)?) as Arc<dyn Toolset>));
        self.registry.toolsets.insert(name.to_owned(), make);
        self
    }

    /// Reads the command line and does what it says, as `updraft` itself does.
    #[must_use]
    pub fn main(self) -> ExitCode {
        if !rust::install(self.registry) {
            eprintln!("error: App::main can be called once");
            return ExitCode::FAILURE;
        }
        cli::main()
    }
}

fn read<A: DeserializeOwned>(arguments: serde_json::Value) -> Result<A, TaskError> {
    let is_empty = arguments.as_object().is_some_and(serde_json::Map::is_empty);
    serde_json::from_value(arguments).or_else(|error| {
        // Nothing is nothing, whether it is written as `{}` or `()`.
        let nothing = is_empty.then(|| serde_json::from_value(serde_json::Value::Null).ok());
        nothing
            .flatten()
            .ok_or_else(|| TaskError::failed(format!("the task's arguments: {error}")))
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Stay {
        ship: String,
    }

    #[test]
    fn arguments_are_read_into_the_functions_own_type() {
        read::<()>(json!({})).unwrap();
        let stay: Stay = read(json!({"ship": "Aurora"})).unwrap();
        assert_eq!(stay.ship, "Aurora");
        let error = read::<Stay>(json!({"ship": 7})).unwrap_err().to_string();
        assert!(
            error.starts_with("the task's arguments: invalid type: "),
            "{error}"
        );
        let error = read::<Stay>(json!({})).unwrap_err().to_string();
        assert!(error.contains("missing field `ship`"), "{error}");
    }
}
