//! Tool schemas as Gemini wants them.

use serde_json::{Map, Value, json};

/// Rewrites a schema to the keywords that Gemini knows.
pub(super) fn transform(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    let mut definitions = None;
    for (key, value) in map {
        match (key.as_str(), value) {
            ("$defs", Value::Object(_)) => definitions = Some(children(value)),
            ("properties" | "patternProperties", Value::Object(_)) => {
                out.insert(key.clone(), children(value));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(members)) => {
                out.insert(key.clone(), members.iter().map(transform).collect());
            }
            ("items" | "additionalProperties", Value::Object(_)) => {
                out.insert(key.clone(), transform(value));
            }
            (
                "$schema" | "title" | "discriminator" | "examples" | "exclusiveMinimum"
                | "exclusiveMaximum",
                _,
            )
            | ("const", Value::Null) => {}
            ("const", value) => {
                out.insert("enum".to_owned(), json!([value]));
                let kind = match value {
                    Value::String(_) => "string",
                    Value::Bool(_) => "boolean",
                    Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
                    _ => "number",
                };
                if !map.contains_key("type") {
                    out.insert("type".to_owned(), kind.into());
                }
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    one_choice(&mut out);
    if out.get("type") == Some(&json!("string"))
        && let Some(Value::String(format)) = out.shift_remove("format")
    {
        let text = match out.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description} (format: {format})"),
            None => format!("Format: {format}"),
        };
        out.insert("description".to_owned(), text.into());
    }
    if let Some(definitions) = definitions {
        out.insert("$defs".to_owned(), definitions);
    }
    Value::Object(out)
}

fn children(map: &Value) -> Value {
    let children = map.as_object().into_iter().flatten();
    let children = children.map(|(name, child)| (name.clone(), transform(child)));
    Value::Object(children.collect())
}

/// A choice between single values is one enumeration, which Gemini keeps to more strictly; what is said of each value
/// moves to the description.
fn one_choice(schema: &mut Map<String, Value>) {
    let Some(Value::Array(options)) = schema.get("anyOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut told = Vec::new();
    let mut kinds: Vec<Option<Value>> = Vec::new();
    for option in options {
        let Value::Object(option) = option else {
            return;
        };
        let known = |key: &String| matches!(key.as_str(), "enum" | "type" | "description");
        let Some([value]) = option
            .get("enum")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .filter(|_| option.keys().all(known))
        else {
            return;
        };
        if let Some(description) = option.get("description").and_then(Value::as_str) {
            let name = value
                .as_str()
                .map_or_else(|| value.to_string(), ToOwned::to_owned);
            told.push(format!("{name}: {description}"));
        }
        values.push(value.clone());
        kinds.push(option.get("type").cloned());
    }
    kinds.dedup();
    let [kind] = kinds.as_slice() else {
        return;
    };
    let own_kind = schema.get("type");
    if schema.contains_key("enum") || (own_kind.is_some() && own_kind != kind.as_ref()) {
        return;
    }
    schema.shift_remove("anyOf");
    schema.insert("enum".to_owned(), values.into());
    if let Some(kind) = kind {
        schema.insert("type".to_owned(), kind.clone());
    }
    if !told.is_empty() {
        if let Some(Value::String(text)) = schema.get("description").filter(|text| **text != "") {
            told.insert(0, text.clone());
        }
        schema.insert("description".to_owned(), told.join("\n").into());
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_gemini_does_not_know_is_left_out_or_said_in_words() {
        assert_eq!(
            transform(&json!({
                "title": "Trip", "type": "object", "properties": {
                    "day": {"type": "string", "format": "date", "description": "When."},
                    "kind": {"const": "sea", "title": "Kind"},
                    "length": {"type": "number", "exclusiveMinimum": 0},
                },
            })),
            json!({
                "type": "object", "properties": {
                    "day": {"type": "string", "description": "When. (format: date)"},
                    "kind": {"enum": ["sea"], "type": "string"},
                    "length": {"type": "number"},
                },
            })
        );
    }

    #[test]
    fn described_members_of_an_enum_become_one_enumeration() {
        assert_eq!(
            transform(&json!({"description": "How bad.", "anyOf": [
                {"const": 1, "description": "Hardly."}, {"const": 2, "description": "Very."},
            ]})),
            json!({"description": "How bad.\n1: Hardly.\n2: Very.", "enum": [1, 2], "type": "integer"})
        );
    }
}
