//! An Avro schema in the form in which Python's reader gives it: full names, and other properties first.

use serde_json::{Map, Value};

const RESERVED: [&str; 9] = [
    "type",
    "name",
    "namespace",
    "fields",
    "items",
    "size",
    "symbols",
    "values",
    "doc",
];
/// Properties of a field that stand after its own, in this order.
const OPTIONAL: [&str; 3] = ["doc", "aliases", "default"];
const PRIMITIVE: [&str; 8] = [
    "boolean", "bytes", "double", "float", "int", "long", "null", "string",
];

/// The schema with every name in full.
pub(super) fn qualified(schema: Value) -> Value {
    of_schema(schema, "")
}

fn of_schema(schema: Value, namespace: &str) -> Value {
    match schema {
        Value::Array(members) => members
            .into_iter()
            .map(|member| of_schema(member, namespace))
            .collect(),
        Value::String(name) if PRIMITIVE.contains(&name.as_str()) => name.into(),
        Value::String(name) => full_name(&name, namespace).into(),
        Value::Object(schema) => of_object(schema, namespace).into(),
        other => other,
    }
}

fn of_object(mut schema: Map<String, Value>, namespace: &str) -> Map<String, Value> {
    let mut parsed: Map<String, Value> = schema
        .iter()
        .filter(|(key, _)| !RESERVED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let kind = schema.remove("type").unwrap_or_default();
    for (key, value) in [("type", Some(kind.clone())), ("doc", schema.remove("doc"))] {
        if let Some(value) = value {
            parsed.insert(key.to_owned(), value);
        }
    }
    let own = match (schema.get("name"), schema.get("namespace")) {
        (Some(Value::String(name)), Some(Value::String(own))) => Some(full_name(name, own)),
        (Some(Value::String(name)), _) => Some(full_name(name, namespace)),
        _ => None,
    };
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            parsed.insert(key.to_owned(), value);
        }
    };
    match kind.as_str() {
        Some("array") => {
            let items = schema
                .remove("items")
                .map(|items| of_schema(items, namespace));
            put("items", items);
        }
        Some("map") => {
            let values = schema
                .remove("values")
                .map(|values| of_schema(values, namespace));
            put("values", values);
        }
        Some("enum") => {
            put("name", own.map(Value::from));
            put("symbols", schema.remove("symbols"));
        }
        Some("fixed") => {
            put("name", own.map(Value::from));
            put("size", schema.remove("size"));
        }
        Some("record" | "error") => {
            let own = own.unwrap_or_default();
            let inner = own.rsplit_once('.').map_or("", |(namespace, _)| namespace);
            let fields = match schema.remove("fields") {
                Some(Value::Array(fields)) => fields,
                _ => Vec::new(),
            };
            let fields: Vec<Value> = fields
                .into_iter()
                .map(|field| of_field(field, inner))
                .collect();
            put("name", Some(own.clone().into()));
            put("fields", Some(fields.into()));
        }
        _ => {}
    }
    parsed
}

fn of_field(field: Value, namespace: &str) -> Value {
    let Value::Object(mut field) = field else {
        return field;
    };
    let name = field.remove("name");
    let kind = field.remove("type");
    let optional = OPTIONAL.map(|key| (key, field.shift_remove(key)));
    let kind = kind.map(|kind| of_schema(kind, namespace));
    let last = [("name", name), ("type", kind)];
    for (key, value) in optional.into_iter().chain(last) {
        if let Some(value) = value {
            field.insert(key.to_owned(), value);
        }
    }
    field.into()
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_full_and_properties_stand_where_python_puts_them() {
        let schema = json!({
            "type": "record", "name": "R", "namespace": "n.s", "doc": "d",
            "fields": [
                {"name": "a", "type": "long", "doc": "x"},
                {"name": "d", "type": {"type": "int", "logicalType": "date"}},
                {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
                {"name": "again", "type": ["null", "E"], "default": null, "extra": 5},
            ],
        });
        // As fastavro 1.x gives it.
        let expected = r#"{"type":"record","doc":"d","name":"n.s.R","fields":[{"doc":"x","name":"a","type":"long"},{"name":"d","type":{"logicalType":"date","type":"int"}},{"name":"e","type":{"type":"enum","name":"n.s.E","symbols":["A"]}},{"extra":5,"default":null,"name":"again","type":["null","n.s.E"]}]}"#;
        assert_eq!(qualified(schema).to_string(), expected);
    }
}
