//! Schemas that Anthropic holds a model to.

use serde_json::{Map, Value, json};

/// String formats that can be held to.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// What a schema may hold beside its type, when the model is held to it.
const KEPT: &[&str] = &[
    "$ref",
    "$defs",
    "type",
    "anyOf",
    "allOf",
    "enum",
    "const",
    "description",
    "properties",
    "required",
    "items",
    "default",
];

/// Without titles; and, when `strict`, with closed objects, and with what can't be held to told in the description.
pub(in crate::model) fn transform(schema: &Value, strict: bool) -> Value {
    match schema {
        Value::Object(map) => Value::Object(object(map, strict)),
        other => other.clone(),
    }
}

fn object(map: &Map<String, Value>, strict: bool) -> Map<String, Value> {
    let mut out = Map::new();
    let mut told = Vec::new();
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(children)) => {
                let children = children
                    .iter()
                    .map(|(name, child)| (name.clone(), transform(child, strict)))
                    .collect();
                out.insert(key.clone(), Value::Object(children));
            }
            ("anyOf" | "allOf", Value::Array(members)) => {
                let members = members.iter().map(|member| transform(member, strict));
                out.insert(key.clone(), members.collect());
            }
            ("oneOf", Value::Array(members)) if strict => {
                let members = members.iter().map(|member| transform(member, strict));
                out.insert("anyOf".to_owned(), members.collect());
            }
            ("items", Value::Object(_)) => {
                out.insert(key.clone(), transform(value, strict));
            }
            ("title" | "$schema", _) => {}
            ("additionalProperties", _) if strict => {}
            ("format", Value::String(format)) if strict && FORMATS.contains(&format.as_str()) => {
                out.insert(key.clone(), value.clone());
            }
            (name, _) if strict && !KEPT.contains(&name) => told.push(format!("{name}: {value}")),
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    if strict && out.get("type") == Some(&json!("object")) {
        out.insert("additionalProperties".to_owned(), false.into());
    }
    if !told.is_empty() {
        let told = format!("{{{}}}", told.join(", "));
        let text = match out.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description}\n\n{told}"),
            None => told,
        };
        out.insert("description".to_owned(), text.into());
    }
    out
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_strict_schema_is_closed_and_tells_what_it_can_not_hold_to() {
        let schema = json!({
            "title": "Berth", "type": "object", "required": ["number"],
            "properties": {"number": {"type": "integer", "minimum": 1, "description": "Its number.", "title": "Number"}},
        });
        assert_eq!(
            transform(&schema, true),
            json!({
                "type": "object", "required": ["number"], "additionalProperties": false,
                "properties": {"number": {"type": "integer", "description": "Its number.\n\n{minimum: 1}"}},
            })
        );
        assert_eq!(
            transform(&schema, false),
            json!({
                "type": "object", "required": ["number"],
                "properties": {"number": {"type": "integer", "minimum": 1, "description": "Its number."}},
            })
        );
    }
}
