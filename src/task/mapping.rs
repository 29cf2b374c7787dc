//! Mapped tasks: which arguments one map index gets, and how many map indexes there are.

use serde_json::Value;

use super::arguments::{ArgumentError, Resolver, python_repr};
use super::templates::values::envelope;
use crate::dag::definitions::{Argument, Expansion};

/// Why a task can't be expanded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MappingError {
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The value of an upstream task is not a list or a dict.
    #[error("argument {name} can't be mapped over: it is {value}, not a list or a dict")]
    Unmappable { name: String, value: String },
    /// An item of `expand_kwargs` is not a dict.
    #[error("expand_kwargs() expects a list[dict], and item {index} is {value}")]
    NotADict { index: usize, value: String },
    /// The upstream value has changed since the scheduler expanded the task, or the job is malformed.
    #[error(
        "map index {map_index} does not exist: the task expands to {count} task instances; clear the upstream task, \
         so that the scheduler expands this one again"
    )]
    NoSuchIndex { map_index: i64, count: usize },
}

/// What is mapped over: literal items keep their templates, values of upstream tasks are never rendered.
enum Items<'a> {
    Literal(Vec<&'a Argument>),
    Pairs(&'a [(Argument, Argument)]),
    Values(Vec<Value>),
}

impl Items<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Literal(items) => items.len(),
            Self::Pairs(pairs) => pairs.len(),
            Self::Values(values) => values.len(),
        }
    }
}

fn items<'a>(
    name: &str,
    argument: &'a Argument,
    resolver: &Resolver<'_>,
) -> Result<Items<'a>, MappingError> {
    match argument {
        Argument::List(items) | Argument::Tuple(items) | Argument::Set(items) => {
            Ok(Items::Literal(items.iter().collect()))
        }
        Argument::Dict(pairs) => Ok(Items::Pairs(pairs)),
        other => values(name, resolver.value(name, other)?).map(Items::Values),
    }
}

/// The items of an upstream value: those of a list, or the pairs of a dict.
fn values(name: &str, value: Value) -> Result<Vec<Value>, MappingError> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Object(mut map) if map.contains_key("__classname__") => match map.remove("__data__")
        {
            Some(data @ (Value::Array(_) | Value::Object(_))) => values(name, data),
            _ => Err(MappingError::Unmappable {
                name: name.to_owned(),
                value: python_repr(&map.into()),
            }),
        },
        Value::Object(map) => Ok(map
            .into_iter()
            .map(|(key, value)| {
                envelope("builtins.tuple", 1, Value::Array(vec![key.into(), value]))
            })
            .collect()),
        other => Err(MappingError::Unmappable {
            name: name.to_owned(),
            value: python_repr(&other),
        }),
    }
}

/// The number of task instances that an expansion makes.
///
/// # Errors
/// What is mapped over can't be had, or is no list.
pub fn count(expansion: &Expansion, resolver: &Resolver<'_>) -> Result<usize, MappingError> {
    match expansion {
        Expansion::Product(arguments) => {
            let mut count = 1_usize;
            for (name, argument) in arguments {
                count = count.saturating_mul(items(name, argument, resolver)?.len());
            }
            Ok(count)
        }
        Expansion::Kwargs(argument) => Ok(items("expand_kwargs", argument, resolver)?.len()),
    }
}

/// The arguments of one map index, in XCom wire form, in the order of `expand`.
///
/// # Errors
/// What is mapped over can't be had, is no list, or has no such index.
pub fn arguments(
    expansion: &Expansion,
    map_index: i64,
    resolver: &Resolver<'_>,
) -> Result<Vec<(String, Value)>, MappingError> {
    let index_of = |count: usize| {
        usize::try_from(map_index)
            .ok()
            .filter(|index| *index < count)
            .ok_or(MappingError::NoSuchIndex { map_index, count })
    };
    match expansion {
        Expansion::Product(pairs) => {
            let mut all = Vec::new();
            let mut count = 1_usize;
            for (name, argument) in pairs {
                let items = items(name, argument, resolver)?;
                count = count.saturating_mul(items.len());
                all.push((name, items));
            }
            let mut index = index_of(count)?;
            let mut chosen = Vec::new();
            for (name, items) in all.iter().rev() {
                let len = items.len().max(1);
                let position = index % len;
                index /= len;
                let value = match items {
                    Items::Literal(items) => match items.get(position) {
                        Some(item) => resolver.value(name, item)?,
                        None => Value::Null,
                    },
                    Items::Pairs(pairs) => match pairs.get(position) {
                        Some((key, value)) => envelope(
                            "builtins.tuple",
                            1,
                            vec![resolver.value(name, key)?, resolver.value(name, value)?].into(),
                        ),
                        None => Value::Null,
                    },
                    Items::Values(values) => values.get(position).cloned().unwrap_or_default(),
                };
                chosen.push(((*name).clone(), value));
            }
            chosen.reverse();
            Ok(chosen)
        }
        Expansion::Kwargs(argument) => {
            let items = items("expand_kwargs", argument, resolver)?;
            let index = index_of(items.len())?;
            if let Items::Literal(literals) = &items
                && let Some(Argument::Dict(pairs)) = literals.get(index)
            {
                let mut chosen = Vec::new();
                for (key, value) in pairs {
                    let name = match key {
                        Argument::String(name) => name.clone(),
                        other => python_repr(&super::arguments::literal(other)),
                    };
                    chosen.push((name.clone(), resolver.value(&name, value)?));
                }
                return Ok(chosen);
            }
            let value = match items {
                Items::Literal(literals) => match literals.get(index) {
                    Some(item) => resolver.value("expand_kwargs", item)?,
                    None => Value::Null,
                },
                Items::Values(values) => values.into_iter().nth(index).unwrap_or_default(),
                Items::Pairs(_) => Value::Null,
            };
            match value {
                Value::Object(map) => Ok(map.into_iter().collect()),
                other => Err(MappingError::NotADict {
                    index,
                    value: python_repr(&other),
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::airflow::supervisor::TaskRequest;
    use crate::control_plane::ControlPlane;
    use crate::control_plane::local::LocalControlPlane;
    use crate::task::context_tests::{dag, services, task_instance, task_json};

    /// Resolves with an upstream task `up` whose result is `upstream`.
    async fn with_upstream<T: Send + 'static>(
        upstream: Value,
        test: impl FnOnce(&Resolver<'_>) -> T + Send + 'static,
    ) -> T {
        let plane = LocalControlPlane::new();
        let set = TaskRequest::SetXCom {
            key: "return_value".to_owned(),
            value: upstream,
            dag_id: "d".to_owned(),
            run_id: "r".to_owned(),
            task_id: "up".to_owned(),
            map_index: None,
            dag_result: false,
            mapped_length: None,
        };
        plane.handle(set).await.unwrap();
        let services = services(plane, task_instance("t", 0));
        tokio::task::spawn_blocking(move || {
            let dag = dag(
                &json!([task_json("up"), task_json("t")]),
                &json!({}),
                &json!({}),
            );
            test(&Resolver {
                services: &services,
                dag: &dag,
                task: &dag.tasks[1],
                templates: None,
                resolve_object: &|_| panic!("no objects here"),
            })
        })
        .await
        .unwrap()
    }

    fn expansion(value: Value) -> Expansion {
        serde_json::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn the_last_argument_of_a_product_varies_fastest() {
        let product = expansion(
            json!({"product": [["a", [1, 2]], ["b", {"$": "xcom", "task_id": "up", "key": "return_value"}]]}),
        );
        let (count, chosen) = with_upstream(json!(["x", "y", "z"]), move |resolver| {
            let chosen: Vec<_> = (0..6)
                .map(|index| {
                    let arguments = arguments(&product, index, resolver).unwrap();
                    arguments
                        .into_iter()
                        .map(|(name, value)| format!("{name}={value}"))
                        .collect::<Vec<_>>()
                        .join(" ")
                })
                .collect();
            (count(&product, resolver).unwrap(), chosen)
        })
        .await;
        assert_eq!(count, 6);
        assert_eq!(
            chosen,
            [
                r#"a=1 b="x""#,
                r#"a=1 b="y""#,
                r#"a=1 b="z""#,
                r#"a=2 b="x""#,
                r#"a=2 b="y""#,
                r#"a=2 b="z""#
            ]
        );
    }

    #[tokio::test]
    async fn a_dict_is_mapped_over_as_pairs() {
        let product = expansion(
            json!({"product": [["a", {"$": "xcom", "task_id": "up", "key": "return_value"}]]}),
        );
        let chosen = with_upstream(json!({"k": 1, "l": 2}), move |resolver| {
            arguments(&product, 1, resolver).unwrap()
        })
        .await;
        assert_eq!(
            chosen,
            [(
                "a".to_owned(),
                json!({"__classname__": "builtins.tuple", "__version__": 1, "__data__": ["l", 2]})
            )]
        );
    }

    #[tokio::test]
    async fn kwargs_come_from_literals_and_from_upstream() {
        let literal = expansion(json!({"kwargs": [{"x": 1}, {"x": 2, "y": 3}]}));
        let upstream =
            expansion(json!({"kwargs": {"$": "xcom", "task_id": "up", "key": "return_value"}}));
        let (a, b, c) = with_upstream(json!([{"z": 1}, "text"]), move |resolver| {
            (
                arguments(&literal, 1, resolver).unwrap(),
                arguments(&upstream, 0, resolver).unwrap(),
                arguments(&upstream, 1, resolver).unwrap_err().to_string(),
            )
        })
        .await;
        assert_eq!(a, [("x".to_owned(), json!(2)), ("y".to_owned(), json!(3))]);
        assert_eq!(b, [("z".to_owned(), json!(1))]);
        assert_eq!(
            c,
            "expand_kwargs() expects a list[dict], and item 1 is 'text'"
        );
    }

    #[tokio::test]
    async fn what_can_not_be_mapped_over_and_indexes_that_are_not_there_say_so() {
        let product = || {
            expansion(
                json!({"product": [["a", {"$": "xcom", "task_id": "up", "key": "return_value"}]]}),
            )
        };
        let (one, two) = (product(), product());
        let error = with_upstream(json!("text"), move |resolver| {
            arguments(&one, 0, resolver).unwrap_err().to_string()
        })
        .await;
        assert_eq!(
            error,
            "argument a can't be mapped over: it is 'text', not a list or a dict"
        );
        let error = with_upstream(json!([1]), move |resolver| {
            arguments(&two, 4, resolver).unwrap_err().to_string()
        })
        .await;
        assert!(
            error.starts_with("map index 4 does not exist: the task expands to 1 task instances"),
            "{error}"
        );
    }
}
