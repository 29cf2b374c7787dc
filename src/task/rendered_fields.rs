//! Rendered template fields as the user interface shows them (`SetRenderedFields`).

use serde_json::{Map, Value};

use super::arguments::python_repr;
use super::templates::values::{from_wire, text};
use crate::secrets::Masker;

const PREFIX: &str =
    "Truncated. You can change this behaviour in [core]max_templated_field_length. ";
const SUFFIX: &str = "...";
/// The class of the object form of `usage_limits`.
const USAGE_LIMITS: &str = "pydantic_ai.usage.UsageLimits";
/// With less room than this Airflow shows no content at all.
const LEAST_CONTENT: usize = 7;

/// One field: containers of plain values, masked under its name, and cut when its text is too long.
#[must_use]
pub fn rendered_field(name: &str, value: &Value, max_length: usize, masker: &Masker) -> Value {
    let plain = plain(value);
    let redacted = masker.redact_value(plain.clone(), Some(name));
    let length = match &plain {
        Value::String(text) => text.chars().count(),
        other => python_repr(other).chars().count(),
    };
    if length <= max_length {
        return redacted;
    }
    let shown = match &redacted {
        Value::String(text) => text.clone(),
        other => python_repr(other),
    };
    cut(&shown, max_length).into()
}

fn cut(shown: &str, max_length: usize) -> String {
    let room = max_length.saturating_sub(PREFIX.len() + SUFFIX.len());
    if max_length == 0 {
        return String::new();
    }
    if room < LEAST_CONTENT {
        return format!("{PREFIX}{SUFFIX}");
    }
    let content: String = shown.chars().take(room).collect();
    format!("{PREFIX}{}{SUFFIX}", content.trim_end())
}

/// Dict keys are sorted; tuples and sets become lists; anything else its text.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(map) => {
            let data = map.get("__data__").unwrap_or(&Value::Null);
            match map.get("__classname__").and_then(Value::as_str) {
                Some("builtins.tuple") => plain(data),
                Some("builtins.set" | "builtins.frozenset") => {
                    let mut items: Vec<_> =
                        data.as_array().into_iter().flatten().map(plain).collect();
                    items.sort_by_key(python_repr);
                    items.into()
                }
                Some(USAGE_LIMITS) => usage_limits(data).into(),
                Some(_) if data.is_object() && !is_time(map) => plain(data),
                Some(_) => text(&from_wire(value)).into(),
                None if map.get("$").and_then(Value::as_str) == Some("object") => {
                    map.get("repr").cloned().unwrap_or_default()
                }
                None => {
                    let mut pairs: Vec<_> = map
                        .iter()
                        .map(|(key, value)| (key.clone(), plain(value)))
                        .collect();
                    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
                    pairs.into_iter().collect::<Map<_, _>>().into()
                }
            }
        }
        other => other.clone(),
    }
}

/// `repr` of pydantic-ai's `UsageLimits`, which shows the fields that differ from their defaults.
fn usage_limits(fields: &Value) -> String {
    let shown: Vec<_> = fields
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| match (name.as_str(), value) {
            (_, Value::Null | Value::Bool(false)) if name != "request_limit" => None,
            ("request_limit", Value::Number(number)) if number.as_u64() == Some(50) => None,
            ("cost_limit", value) => Some(format!("cost_limit=Decimal({})", python_repr(value))),
            (name, value) => Some(format!("{name}={}", python_repr(value))),
        })
        .collect();
    format!("UsageLimits({})", shown.join(", "))
}

fn is_time(envelope: &Map<String, Value>) -> bool {
    envelope
        .get("__classname__")
        .and_then(Value::as_str)
        .is_some_and(|class| class.starts_with("datetime.") || class.starts_with("pendulum."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn fields_are_plain_sorted_and_masked_by_name() {
        let masker = Masker::new();
        let value = json!({"b": {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, "x"]}, "a": null,
            "password": "hunter2"});
        let rendered = rendered_field("op_kwargs", &value, 4096, &masker);
        assert_eq!(
            rendered.to_string(),
            r#"{"a":null,"b":[1,"x"],"password":"***"}"#
        );
    }

    #[test]
    fn limits_are_shown_as_python_shows_them() {
        let limits = json!({"__classname__": USAGE_LIMITS, "__version__": 0, "__data__": {"cost_limit": "0.5",
            "request_limit": 3, "tool_calls_limit": null, "count_tokens_before_request": false}});
        assert_eq!(
            rendered_field("usage_limits", &limits, 4096, &Masker::new()),
            "UsageLimits(cost_limit=Decimal('0.5'), request_limit=3)"
        );
    }

    #[test]
    fn a_long_field_is_cut_to_the_limit_with_a_word_about_it() {
        let rendered = rendered_field("prompt", &json!("y".repeat(9999)), 100, &Masker::new());
        let text = rendered.as_str().unwrap();
        assert!(
            text.starts_with("Truncated. You can change this behaviour")
                && text.ends_with("yyy..."),
            "{text}"
        );
        assert_eq!(text.len(), 100);
    }
}
