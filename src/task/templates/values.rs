//! Values between XComs, templates and Python's way of writing them.

use std::fmt::Write as _;

use chrono::Duration;
use minijinja::value::{Object, ObjectRepr, Tuple, Value, ValueKind};
use serde_json::Value as Json;

use super::datetime::{PyDate, PyDateTime, PyTimeDelta, Zone};
use crate::airflow::python_text::{repr_float, repr_str};

/// What a template sees of a value in XCom wire form (Airflow's `serde` envelopes).
#[must_use]
pub fn from_wire(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Number(number) => from_number(number),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(from_wire).collect(),
        Json::Object(map) => {
            if let (Some(Json::String(class)), Some(data)) = (
                map.get("__classname__")
                    .filter(|_| map.contains_key("__version__")),
                map.get("__data__"),
            ) {
                return from_envelope(class, data);
            }
            if let (Some(Json::String(class)), Some(data)) = (map.get("__type"), map.get("__var")) {
                return from_envelope(class, data);
            }
            Value::from_pairs(
                map.iter()
                    .map(|(key, value)| (key.as_str(), from_wire(value))),
            )
        }
    }
}

fn from_number(number: &serde_json::Number) -> Value {
    if let Some(n) = number.as_i64() {
        return n.into();
    }
    if let Some(n) = number.as_u64() {
        return n.into();
    }
    let text = number.to_string();
    if let Ok(n) = text.parse::<i128>() {
        return n.into();
    }
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
        return text.into();
    }
    number.as_f64().map_or_else(|| text.into(), Value::from)
}

fn from_envelope(class: &str, data: &Json) -> Value {
    let list = || {
        data.as_array()
            .map(|items| items.iter().map(from_wire).collect::<Vec<_>>())
            .unwrap_or_default()
    };
    match class {
        "builtins.tuple" | "tuple" => Value::from(Tuple::from(list())),
        "builtins.set" | "set" | "builtins.frozenset" | "frozenset" => Value::from_object(PySet {
            items: list(),
            frozen: class.ends_with("frozenset"),
        }),
        "datetime.datetime" | "pendulum.datetime.DateTime" | "datetime" => {
            from_datetime(data).unwrap_or_else(|| from_wire(data))
        }
        "datetime.date" | "pendulum.date.Date" => data
            .as_str()
            .and_then(|text| text.parse().ok())
            .map_or_else(|| from_wire(data), |day| Value::from_object(PyDate(day))),
        "datetime.timedelta" | "timedelta" => data.as_f64().map_or_else(
            || from_wire(data),
            |seconds| {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "a span in microseconds; it saturates"
                )]
                Value::from_object(PyTimeDelta(Duration::microseconds(
                    (seconds * 1e6).round() as i64
                )))
            },
        ),
        _ => from_wire(data),
    }
}

/// Python's `datetime` data: `{"timestamp": seconds, "tz": envelope, name, offset or null}`; in the old form the
/// timestamp alone.
fn from_datetime(data: &Json) -> Option<Value> {
    let timestamp = data.get("timestamp").unwrap_or(data).as_f64()?;
    #[allow(clippy::cast_possible_truncation, reason = "microseconds of a date")]
    let utc =
        chrono::DateTime::from_timestamp_micros((timestamp * 1e6).round() as i64)?.naive_utc();
    let zone = match data.get("tz") {
        Some(Json::Null) => Zone::Naive,
        Some(tz) => zone_of(tz).unwrap_or(Zone::Named(chrono_tz::Tz::UTC)),
        None => Zone::Named(chrono_tz::Tz::UTC),
    };
    Some(Value::from_object(PyDateTime::new(utc, zone)))
}

fn zone_of(tz: &Json) -> Option<Zone> {
    match tz {
        Json::String(name) => Zone::parse(name),
        Json::Number(seconds) => {
            chrono::FixedOffset::east_opt(i32::try_from(seconds.as_i64()?).ok()?).map(Zone::Fixed)
        }
        Json::Array(items) => zone_of(items.first()?),
        Json::Object(map) => zone_of(map.get("__data__")?),
        Json::Bool(_) | Json::Null => None,
    }
}

/// A Python set: iterates like a list, prints in braces.
#[derive(Debug)]
struct PySet {
    items: Vec<Value>,
    frozen: bool,
}

impl Object for PySet {
    fn repr(self: &std::sync::Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &std::sync::Arc<Self>) -> minijinja::value::Enumerator {
        minijinja::value::Enumerator::Values(self.items.clone())
    }

    fn render(self: &std::sync::Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let items: Vec<_> = self.items.iter().map(repr).collect();
        let braces = if items.is_empty() {
            "set()".to_owned()
        } else {
            format!("{{{}}}", items.join(", "))
        };
        match (self.frozen, items.is_empty()) {
            (true, true) => f.write_str("frozenset()"),
            (true, false) => write!(f, "frozenset({braces})"),
            (false, _) => f.write_str(&braces),
        }
    }
}

/// Python's `str()` of a template value.
#[must_use]
pub fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => repr(value),
    }
}

/// Python's `repr()` of a template value; dates as pendulum prints them.
#[must_use]
pub fn repr(value: &Value) -> String {
    match value.kind() {
        ValueKind::Undefined => String::new(),
        ValueKind::None => "None".to_owned(),
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::Number if !value.is_integer() => {
            f64::try_from(value.clone()).map_or_else(|_| value.to_string(), repr_float)
        }
        ValueKind::String => value.as_str().map(repr_str).unwrap_or_default(),
        ValueKind::Seq => {
            let items: Vec<_> = value
                .try_iter()
                .into_iter()
                .flatten()
                .map(|item| repr(&item))
                .collect();
            match (value.is_tuple(), items.as_slice()) {
                (true, [only]) => format!("({only},)"),
                (true, _) => format!("({})", items.join(", ")),
                (false, _) => format!("[{}]", items.join(", ")),
            }
        }
        ValueKind::Map
            if value
                .as_object()
                .is_some_and(|object| object.repr() == ObjectRepr::Map) =>
        {
            let mut out = String::from("{");
            for (n, key) in value.try_iter().into_iter().flatten().enumerate() {
                let item = value.get_item(&key).unwrap_or_default();
                // Writing to a String can't fail.
                let _ = write!(
                    out,
                    "{}{}: {}",
                    if n == 0 { "" } else { ", " },
                    repr(&key),
                    repr(&item)
                );
            }
            out + "}"
        }
        _ => value.to_string(),
    }
}

/// The XCom wire form of a template value, for templates rendered to native objects and for arguments of functions.
#[must_use]
pub fn to_wire(value: &Value) -> Json {
    if let Some(at) = value.downcast_object_ref::<PyDateTime>() {
        return datetime_to_wire(at);
    }
    if let Some(day) = value.downcast_object_ref::<PyDate>() {
        return envelope("datetime.date", 2, day.0.to_string().into());
    }
    if let Some(span) = value.downcast_object_ref::<PyTimeDelta>() {
        #[allow(clippy::cast_precision_loss, reason = "Python sends a float")]
        let seconds = span.0.num_microseconds().unwrap_or(i64::MAX) as f64 / 1e6;
        return envelope("datetime.timedelta", 2, seconds.into());
    }
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => Json::Null,
        ValueKind::Bool => value.is_true().into(),
        ValueKind::Number if value.is_integer() => value
            .to_string()
            .parse::<serde_json::Number>()
            .map_or(Json::Null, Json::Number),
        ValueKind::Number => f64::try_from(value.clone()).map_or(Json::Null, Json::from),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Json = value
                .try_iter()
                .into_iter()
                .flatten()
                .map(|item| to_wire(&item))
                .collect();
            if value.is_tuple() {
                envelope("builtins.tuple", 1, items)
            } else {
                items
            }
        }
        ValueKind::Map => value
            .try_iter()
            .into_iter()
            .flatten()
            .map(|key| {
                (
                    text(&key),
                    to_wire(&value.get_item(&key).unwrap_or_default()),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        _ => text(value).into(),
    }
}

/// An aware datetime as Python's `serde` writes it. Fixed offsets become UTC: Python can't read them.
#[must_use]
pub fn datetime_to_wire(at: &PyDateTime) -> Json {
    #[allow(clippy::cast_precision_loss, reason = "Python sends a float")]
    let seconds = at.utc().and_utc().timestamp_micros() as f64 / 1e6;
    let tz = if at.is_naive() {
        Json::Null
    } else {
        envelope(
            "builtins.tuple",
            1,
            serde_json::json!(["UTC", "pendulum.tz.timezone.FixedTimezone", 1, true]),
        )
    };
    envelope(
        "datetime.datetime",
        2,
        serde_json::json!({ "timestamp": seconds, "tz": tz }),
    )
}

/// `{"__classname__", "__version__", "__data__"}`.
#[must_use]
pub fn envelope(class: &str, version: u32, data: Json) -> Json {
    serde_json::json!({ "__classname__": class, "__version__": version, "__data__": data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn values_print_as_python_prints_them() {
        let value = from_wire(&json!({
            "a": [1, 2.0, null, true, "it's"],
            "t": {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1]},
            "d": {"__classname__": "datetime.timedelta", "__version__": 2, "__data__": 86401.5},
        }));
        assert_eq!(
            text(&value),
            r#"{'a': [1, 2.0, None, True, "it's"], 't': (1,), 'd': 1 day, 0:00:01.500000}"#
        );
    }

    #[test]
    fn wire_values_survive_the_way_through_a_template() {
        let wire = json!([1, 12345678901234567890123_u128, "x", {"k": null}, 1.5, {
            "__classname__": "datetime.datetime", "__version__": 2,
            "__data__": {"timestamp": 1767323045.0, "tz": {"__classname__": "builtins.tuple", "__version__": 1,
                "__data__": ["UTC", "pendulum.tz.timezone.FixedTimezone", 1, true]}}
        }]);
        assert_eq!(to_wire(&from_wire(&wire)), wire);
    }

    #[test]
    fn a_pydantic_model_is_seen_as_its_fields() {
        let model =
            json!({"__classname__": "m.Answer", "__version__": 1, "__data__": {"text": "hi"}});
        assert_eq!(
            from_wire(&model).get_attr("text").unwrap().to_string(),
            "hi"
        );
    }
}
