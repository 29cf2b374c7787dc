//! A task's result becomes XComs.

use futures::future::try_join_all;
use serde_json::{Map, Value};

use super::arguments::python_class;
use super::services::{RETURN_VALUE, Services};
use crate::airflow::supervisor::{ErrorResponse, TaskRequest};
use crate::airflow::xcom::{UnsendableValue, check_wire};
use crate::dag::definitions::Task;

/// Why a result can't be pushed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// A downstream task is mapped over this task's result, and there is none.
    #[error("did not push XCom for task mapping")]
    NothingToMapOver,
    /// A downstream task is mapped over something that has no length.
    #[error("unmappable return type {class:?}")]
    Unmappable { class: String },
    #[error("Returned output was type {class} expected dictionary for multiple_outputs")]
    NotADict { class: String },
    #[error("the result can't be an XCom: {0}")]
    Unsendable(#[from] UnsendableValue),
    #[error("XCom {key} could not be pushed: {source}")]
    Refused {
        key: String,
        #[source]
        source: ErrorResponse,
    },
}

impl PushError {
    /// The class of Python's exception for it.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::NothingToMapOver => "airflow.sdk.exceptions.XComForMappingNotPushed",
            Self::Unmappable { .. } => "airflow.sdk.exceptions.UnmappableXComTypePushed",
            Self::NotADict { .. } => "TypeError",
            Self::Unsendable(_) => "ValueError",
            Self::Refused { .. } => "airflow.sdk.exceptions.AirflowRuntimeError",
        }
    }
}

/// The model that answered an agent; Airflow's interface shows it.
pub(super) const MODEL_NAME_KEY: &str = "__AIRFLOW__COMMON_AI_MODEL_NAME__";

/// Pushes one value, in wire form.
///
/// # Errors
/// The server refuses it.
pub(super) async fn push_one(
    services: &Services,
    key: &str,
    value: Value,
) -> Result<(), PushError> {
    let pushed = services.request(services.set_xcom(key, value, None)).await;
    pushed.map(drop).map_err(|source| PushError::Refused {
        key: key.to_owned(),
        source,
    })
}

/// The requests that push a result, in order. The value is in wire form.
///
/// # Errors
/// See [`PushError`].
pub fn requests(
    task: &Task,
    mapped: bool,
    result: &Value,
    services: &Services,
) -> Result<Vec<TaskRequest>, PushError> {
    let needs_length = task.mapped_over && !mapped;
    if !task.do_xcom_push || result.is_null() {
        return if needs_length {
            Err(PushError::NothingToMapOver)
        } else {
            Ok(Vec::new())
        };
    }
    check_wire(result)?;
    let mapped_length = match (needs_length, length(result)) {
        (false, _) => None,
        (true, Some(length)) => Some(length),
        (true, None) => {
            return Err(PushError::Unmappable {
                class: python_class(result),
            });
        }
    };
    let mut requests = Vec::new();
    if task.multiple_outputs {
        let outputs = outputs(result).ok_or_else(|| PushError::NotADict {
            class: python_class(result),
        })?;
        requests.extend(
            outputs
                .iter()
                .map(|(key, value)| services.set_xcom(key, value.clone(), None)),
        );
    }
    requests.push(services.set_xcom(RETURN_VALUE, result.clone(), mapped_length));
    Ok(requests)
}

/// Sends them, side by side.
///
/// # Errors
/// The first that is refused.
pub async fn push(requests: Vec<TaskRequest>, services: &Services) -> Result<(), PushError> {
    let pushes = requests.into_iter().map(|request| async move {
        let key = match &request {
            TaskRequest::SetXCom { key, .. } => key.clone(),
            _ => String::new(),
        };
        let pushed = services.request(request).await;
        pushed.map_err(|source| PushError::Refused { key, source })
    });
    try_join_all(pushes).await?;
    Ok(())
}

fn outputs(result: &Value) -> Option<&Map<String, Value>> {
    result
        .as_object()
        .filter(|map| !map.contains_key("__classname__"))
}

/// `len()` of what can be mapped over: lists, tuples and dicts, no text, no sets.
fn length(value: &Value) -> Option<u64> {
    match value {
        Value::Array(items) => Some(items.len() as u64),
        Value::Object(map) => match map.get("__classname__").and_then(Value::as_str) {
            None => Some(map.len() as u64),
            Some("builtins.tuple") => map
                .get("__data__")
                .and_then(Value::as_array)
                .map(|items| items.len() as u64),
            Some(_) => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::control_plane::local::LocalControlPlane;
    use crate::task::context_tests::{services, task_instance, task_json};

    fn pushed(
        task: Value,
        mapped: bool,
        result: &Value,
    ) -> Result<Vec<(String, Option<u64>)>, String> {
        let mut whole = task_json("t");
        whole
            .as_object_mut()
            .unwrap()
            .extend(task.as_object().unwrap().clone());
        let task: Task = serde_json::from_value(whole).unwrap();
        let services = services(LocalControlPlane::new(), task_instance("t", -1));
        requests(&task, mapped, result, &services)
            .map(|requests| {
                requests
                    .into_iter()
                    .map(|request| match request {
                        TaskRequest::SetXCom {
                            key, mapped_length, ..
                        } => (key, mapped_length),
                        other => panic!("{other:?}"),
                    })
                    .collect()
            })
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn results_are_pushed_whole_and_multiple_outputs_one_by_one_before() {
        let key = |name: &str| (name.to_owned(), None);
        assert_eq!(
            pushed(json!({}), false, &json!("x")),
            Ok(vec![key("return_value")])
        );
        assert_eq!(pushed(json!({}), false, &Value::Null), Ok(vec![]));
        assert_eq!(
            pushed(json!({"do_xcom_push": false}), false, &json!(1)),
            Ok(vec![])
        );
        let multiple = json!({"multiple_outputs": true});
        assert_eq!(
            pushed(multiple.clone(), false, &json!({"a": 1, "b": 2})),
            Ok(vec![key("a"), key("b"), key("return_value")])
        );
        assert_eq!(
            pushed(multiple, false, &json!([1])),
            Err(
                "Returned output was type list expected dictionary for multiple_outputs".to_owned()
            )
        );
    }

    #[tokio::test]
    async fn what_others_are_mapped_over_needs_a_length() {
        let over = json!({"mapped_over": true});
        assert_eq!(
            pushed(over.clone(), false, &json!([1, 2])),
            Ok(vec![("return_value".to_owned(), Some(2))])
        );
        assert_eq!(
            pushed(over.clone(), true, &json!([1, 2])),
            Ok(vec![("return_value".to_owned(), None)])
        );
        assert_eq!(
            pushed(over.clone(), false, &Value::Null),
            Err("did not push XCom for task mapping".to_owned())
        );
        assert_eq!(
            pushed(over, false, &json!("text")),
            Err("unmappable return type \"str\"".to_owned())
        );
    }

    #[tokio::test]
    async fn reserved_keys_are_refused() {
        assert!(pushed(json!({}), false, &json!({"__id__": 1})).is_err());
    }
}
