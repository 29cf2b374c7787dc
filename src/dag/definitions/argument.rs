//! Arguments of operators, and how they cross from the interpreter.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Handle;

/// An argument of an operator: JSON, with references where Python objects stood.
///
/// On the wire from the interpreter it is JSON in which `{"$": kind, ...}` stands for an object:
///
/// | kind | other keys |
/// |---|---|
/// | `tuple`, `set` | `items` |
/// | `dict` | `items`: pairs, for a dict with a key `$` or with keys that are not strings |
/// | `datetime`, `date`, `time`, `timedelta` | `value`: ISO 8601 text; seconds for a timedelta |
/// | `xcom` | `task_id`, `key` |
/// | `object` | `handle`, `class` (`module.QualName`), `repr`, and `resolve`: true when it must be asked for its value at run time (`.map(f)`, `.zip(..)`, `.concat(..)`) |
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Argument {
    #[default]
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    List(Vec<Argument>),
    Tuple(Vec<Argument>),
    Set(Vec<Argument>),
    Dict(Vec<(Argument, Argument)>),
    /// A date or time: its Python class and its ISO text (seconds for a timedelta).
    Time {
        class: TimeClass,
        value: String,
    },
    /// `task.output`, `task.output["key"]`: the XCom of an upstream task.
    XCom {
        task_id: String,
        key: String,
    },
    /// Anything else: an object in the interpreter.
    Object {
        handle: Handle,
        class: String,
        repr: String,
        resolve: bool,
    },
}

/// Which of Python's date and time classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeClass {
    DateTime,
    Date,
    Time,
    TimeDelta,
}

/// An argument that the interpreter wrote wrongly: a fault of Updraft, not of the Dag file.
#[derive(Debug, thiserror::Error)]
#[error("unreadable argument from the Dag interpreter: {0}")]
pub struct MalformedArgument(String);

impl TryFrom<Value> for Argument {
    type Error = MalformedArgument;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(b),
            Value::Number(n) => Self::Number(n),
            Value::String(s) => Self::String(s),
            Value::Array(items) => Self::List(arguments(items)?),
            Value::Object(map) => match map.get("$") {
                None => Self::Dict(
                    map.into_iter()
                        .map(|(k, v)| Ok((Self::String(k), Self::try_from(v)?)))
                        .collect::<Result<_, MalformedArgument>>()?,
                ),
                Some(_) => tagged(map)?,
            },
        })
    }
}

fn arguments(items: Vec<Value>) -> Result<Vec<Argument>, MalformedArgument> {
    items.into_iter().map(Argument::try_from).collect()
}

fn tagged(mut map: Map<String, Value>) -> Result<Argument, MalformedArgument> {
    let kind = text(&mut map, "$")?;
    Ok(match kind.as_str() {
        "tuple" => Argument::Tuple(arguments(list(&mut map, "items")?)?),
        "set" => Argument::Set(arguments(list(&mut map, "items")?)?),
        "dict" => Argument::Dict(
            list(&mut map, "items")?
                .into_iter()
                .map(|pair| match pair {
                    Value::Array(mut kv) if kv.len() == 2 => {
                        let value = kv.pop().unwrap_or_default();
                        let key = kv.pop().unwrap_or_default();
                        Ok((Argument::try_from(key)?, Argument::try_from(value)?))
                    }
                    other => Err(MalformedArgument(format!(
                        "a pair was expected, not {other}"
                    ))),
                })
                .collect::<Result<_, _>>()?,
        ),
        "datetime" => Argument::Time {
            class: TimeClass::DateTime,
            value: text(&mut map, "value")?,
        },
        "date" => Argument::Time {
            class: TimeClass::Date,
            value: text(&mut map, "value")?,
        },
        "time" => Argument::Time {
            class: TimeClass::Time,
            value: text(&mut map, "value")?,
        },
        "timedelta" => Argument::Time {
            class: TimeClass::TimeDelta,
            value: text(&mut map, "value")?,
        },
        "xcom" => Argument::XCom {
            task_id: text(&mut map, "task_id")?,
            key: text(&mut map, "key")?,
        },
        "object" => Argument::Object {
            handle: Handle(
                map.get("handle")
                    .and_then(Value::as_u64)
                    .ok_or_else(|| MalformedArgument("an object without a handle".to_owned()))?,
            ),
            class: text(&mut map, "class")?,
            repr: text(&mut map, "repr")?,
            resolve: map.get("resolve").and_then(Value::as_bool).unwrap_or(false),
        },
        other => return Err(MalformedArgument(format!("unknown kind {other:?}"))),
    })
}

fn text(map: &mut Map<String, Value>, key: &str) -> Result<String, MalformedArgument> {
    match map.remove(key) {
        Some(Value::String(s)) => Ok(s),
        other => Err(MalformedArgument(format!(
            "{key:?} must be text, not {other:?}"
        ))),
    }
}

fn list(map: &mut Map<String, Value>, key: &str) -> Result<Vec<Value>, MalformedArgument> {
    match map.remove(key) {
        Some(Value::Array(items)) => Ok(items),
        other => Err(MalformedArgument(format!(
            "{key:?} must be a list, not {other:?}"
        ))),
    }
}

impl From<Argument> for Value {
    fn from(argument: Argument) -> Self {
        let object = |kind: &str, rest: Value| {
            let mut map = Map::new();
            map.insert("$".to_owned(), kind.into());
            if let Value::Object(rest) = rest {
                map.extend(rest);
            }
            Self::Object(map)
        };
        let values = |items: Vec<Argument>| items.into_iter().map(Self::from).collect::<Vec<_>>();
        match argument {
            Argument::Null => Self::Null,
            Argument::Bool(b) => b.into(),
            Argument::Number(n) => Self::Number(n),
            Argument::String(s) => s.into(),
            Argument::List(items) => values(items).into(),
            Argument::Tuple(items) => {
                object("tuple", serde_json::json!({ "items": values(items) }))
            }
            Argument::Set(items) => object("set", serde_json::json!({ "items": values(items) })),
            Argument::Dict(pairs) => object(
                "dict",
                serde_json::json!({
                    "items": pairs.into_iter().map(|(k, v)| values(vec![k, v])).collect::<Vec<_>>()
                }),
            ),
            Argument::Time { class, value } => object(
                match class {
                    TimeClass::DateTime => "datetime",
                    TimeClass::Date => "date",
                    TimeClass::Time => "time",
                    TimeClass::TimeDelta => "timedelta",
                },
                serde_json::json!({ "value": value }),
            ),
            Argument::XCom { task_id, key } => object(
                "xcom",
                serde_json::json!({ "task_id": task_id, "key": key }),
            ),
            Argument::Object {
                handle,
                class,
                repr,
                resolve,
            } => object(
                "object",
                serde_json::json!({ "handle": handle, "class": class, "repr": repr, "resolve": resolve }),
            ),
        }
    }
}
