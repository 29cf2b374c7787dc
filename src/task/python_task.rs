//! Plain Python tasks (`@task`, `PythonOperator`): the function runs in the Dag interpreter.

use serde_json::Value;

use super::attempt::{Attempt, Rendered};
use super::failure::Failure;
use crate::dag::PythonError;
use crate::dag::definitions::FunctionCall;

/// Calls the function with its rendered arguments; its result is in XCom wire form.
///
/// # Errors
/// The exception that it raised.
pub async fn call(
    attempt: &Attempt,
    call: &FunctionCall,
    rendered: &Rendered,
) -> Result<Value, Failure> {
    let Some(interpreter) = attempt.interpreter() else {
        return Err(Failure::new(
            "RuntimeError",
            "the Dag interpreter has ended",
        ));
    };
    let args = match rendered.field("op_args") {
        Value::Null => Value::Array(Vec::new()),
        Value::Object(tuple) => tuple.get("__data__").cloned().unwrap_or_default(),
        other => other.clone(),
    };
    let kwargs = match rendered.field("op_kwargs") {
        Value::Null => Value::Object(serde_json::Map::new()),
        other => other.clone(),
    };
    let context = attempt.dag_code_context(rendered);
    interpreter
        .call(call.function, args, kwargs, &context)
        .await
        .map_err(|error: PythonError| Failure::of_python(&error))
}
