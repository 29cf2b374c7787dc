//! Tool schemas as OpenAI's APIs want them, and whether they meet the rules of strict mode.

use serde_json::{Map, Value, json};

/// Keywords that strict mode does not know.
const NOT_STRICT: &[&str] = &[
    "minLength",
    "maxLength",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
];

/// The string formats that strict mode knows.
const STRICT_FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Keywords that give an array's items a type.
const TYPED: &[&str] = &["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"];

/// OpenAI's limits on one strict schema.
const MAX_DEPTH: usize = 10;
const MAX_PROPERTIES: usize = 5000;

/// Rewrites a schema, and says whether it is to be sent as `strict`.
///
/// Without `wanted` the schema means what it did, and is strict when it meets the rules; `Some(true)` makes it meet
/// them, and `Some(false)` leaves objects open.
pub(super) fn transform(schema: &Value, wanted: Option<bool>) -> (Value, bool) {
    let Value::Object(map) = schema else {
        return (schema.clone(), false);
    };
    let mut map = map.clone();
    let definitions = map.remove("$defs");
    let root_ref = map.get("$ref").and_then(Value::as_str).map(str::to_owned);
    let mut walk = Walk {
        wanted,
        strict: true,
        root_ref,
    };
    let mut root = walk.object(map);
    for (key, entries) in [
        ("$defs", definitions),
        ("definitions", root.remove("definitions")),
    ] {
        if let Some(Value::Object(entries)) = entries
            && !entries.is_empty()
        {
            let entries = entries
                .into_iter()
                .map(|(name, entry)| (name, walk.node(entry)))
                .collect();
            root.insert(key.to_owned(), Value::Object(entries));
        }
    }
    // A recursive root is a reference to one of its own definitions: that definition is put in its place.
    if let Some(name) = walk
        .root_ref
        .as_deref()
        .and_then(|path| path.strip_prefix("#/$defs/"))
    {
        let name = name.replace("~1", "/").replace("~0", "~");
        if let Some(Value::Object(definition)) =
            root.get("$defs").and_then(|defs| defs.get(&name)).cloned()
        {
            root.remove("$ref");
            root.extend(definition);
        }
    }
    let root = Value::Object(root);
    let strict = wanted.unwrap_or_else(|| walk.strict && !too_large(&root));
    (root, strict)
}

struct Walk {
    wanted: Option<bool>,
    strict: bool,
    root_ref: Option<String>,
}

impl Walk {
    fn node(&mut self, schema: Value) -> Value {
        match schema {
            Value::Object(map) => Value::Object(self.object(map)),
            other => other,
        }
    }

    fn children(&mut self, map: &mut Map<String, Value>, key: &str) {
        if let Some(Value::Object(children)) = map.get_mut(key) {
            for child in children.values_mut() {
                *child = self.node(child.take());
            }
        }
    }

    fn members(&mut self, map: &mut Map<String, Value>, key: &str) {
        if let Some(Value::Array(members)) = map.get_mut(key) {
            for member in members {
                *member = self.node(member.take());
            }
        }
    }

    fn object(&mut self, mut map: Map<String, Value>) -> Map<String, Value> {
        const UNIONS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
        match map.get("type").cloned() {
            Some(Value::String(kind)) if kind == "object" => {
                self.children(&mut map, "properties");
                self.children(&mut map, "patternProperties");
                if let Some(additional) = map.get_mut("additionalProperties") {
                    *additional = self.node(additional.take());
                }
            }
            Some(Value::String(kind)) if kind == "array" => {
                if self.wanted != Some(false) {
                    one_item_tuple(&mut map);
                }
                self.members(&mut map, "prefixItems");
                self.members(&mut map, "items");
                if let Some(items @ Value::Object(_)) = map.get_mut("items") {
                    *items = self.node(items.take());
                }
            }
            None => {
                for union in UNIONS {
                    map = self.union(map, union);
                }
                return self.finish(map);
            }
            Some(_) => {}
        }
        for union in UNIONS {
            self.members(&mut map, union);
        }
        self.finish(map)
    }

    /// A union of one is that one, under whatever stands beside it.
    fn union(&mut self, mut map: Map<String, Value>, kind: &str) -> Map<String, Value> {
        self.members(&mut map, kind);
        let single = match map.get(kind) {
            Some(Value::Array(members)) => match members.as_slice() {
                [Value::Object(only)] if only.get("not") != Some(&json!({})) => Some(only.clone()),
                _ => None,
            },
            _ => None,
        };
        match single {
            Some(mut only) => {
                map.remove(kind);
                only.extend(map);
                only
            }
            None => map,
        }
    }

    fn finish(&mut self, mut map: Map<String, Value>) -> Map<String, Value> {
        for key in ["title", "$schema", "discriminator"] {
            map.remove(key);
        }
        if self.wanted == Some(true) {
            for key in NOT_STRICT.iter().copied().chain(["default"]) {
                map.remove(key);
            }
            if let Some(members) = map.remove("oneOf") {
                map.insert("anyOf".to_owned(), members);
            }
        }
        let mut strict = !map.contains_key("default") && !map.contains_key("oneOf");
        if let Some(target) = map.get("$ref").and_then(Value::as_str).map(str::to_owned) {
            if Some(&target) == self.root_ref.as_ref() {
                map.insert("$ref".to_owned(), "#".into());
            } else if target.starts_with("#/") && !is_definition(&target) {
                strict = false;
            }
            // Strict mode allows nothing beside `$ref`, but anything beside `anyOf`.
            if map.len() > 1
                && let Some(target) = map.remove("$ref")
            {
                map.insert("anyOf".to_owned(), json!([{ "$ref": target }]));
            }
        }
        strict &= !NOT_STRICT.iter().any(|key| map.contains_key(*key));
        if let Some(format) = map.get("format") {
            strict &= format
                .as_str()
                .is_none_or(|format| format.is_empty() || STRICT_FORMATS.contains(&format));
        }
        if let Some(Value::String(pattern)) = map.get("pattern") {
            strict &= !has_lookaround(pattern);
        }
        match map.get("type").and_then(Value::as_str) {
            Some("object") if self.wanted == Some(true) => {
                let names: Vec<Value> = match map.get("properties") {
                    Some(Value::Object(properties)) => {
                        properties.keys().map(|name| name.as_str().into()).collect()
                    }
                    _ => Vec::new(),
                };
                map.insert("required".to_owned(), names.into());
                map.insert("additionalProperties".to_owned(), false.into());
            }
            Some("object") if self.wanted == Some(false) => {}
            Some("object") => strict &= close_object(&mut map),
            Some("array") => {
                let typed = match map.get("items") {
                    Some(Value::Object(items)) => TYPED.iter().any(|key| items.contains_key(*key)),
                    _ => false,
                };
                // Types by position are not the type of the items, which is what strict mode wants.
                let tuple = map
                    .get("prefixItems")
                    .and_then(Value::as_array)
                    .is_some_and(|items| !items.is_empty());
                strict &= typed && !tuple;
            }
            _ => {}
        }
        self.strict &= strict;
        map
    }
}

/// A tuple of one is an array of that one.
fn one_item_tuple(map: &mut Map<String, Value>) {
    let item = match map
        .get("prefixItems")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([item]) if map.get("maxItems").and_then(Value::as_u64) == Some(1) => item.clone(),
        _ => return,
    };
    map.remove("prefixItems");
    map.insert("items".to_owned(), item);
}

/// Spells out what an object schema leaves open, and says whether it fits strict mode.
fn close_object(map: &mut Map<String, Value>) -> bool {
    map.entry("properties").or_insert_with(|| json!({}));
    match map.get("additionalProperties") {
        None | Some(Value::Null | Value::Bool(false)) => {
            map.insert("additionalProperties".to_owned(), false.into());
        }
        Some(_) => return false,
    }
    let (Some(Value::Object(properties)), Some(Value::Array(required))) =
        (map.get("properties"), map.get("required"))
    else {
        return false;
    };
    properties.keys().all(|name| {
        required
            .iter()
            .any(|required| required.as_str() == Some(name))
    })
}

fn is_definition(target: &str) -> bool {
    ["#/$defs/", "#/definitions/"].iter().any(|prefix| {
        target
            .strip_prefix(prefix)
            .is_some_and(|name| !name.is_empty() && !name.contains('/'))
    })
}

fn has_lookaround(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.find(['\\', '(']) {
        let tail = rest.get(at..).unwrap_or_default();
        if tail.starts_with('\\') {
            let mut chars = tail.chars();
            chars.next();
            chars.next();
            rest = chars.as_str();
        } else if ["(?=", "(?!", "(?<=", "(?<!"]
            .iter()
            .any(|token| tail.starts_with(token))
        {
            return true;
        } else {
            rest = tail.get(1..).unwrap_or_default();
        }
    }
    false
}

/// More levels of objects or more properties than strict mode allows, in the root or in any one definition.
fn too_large(root: &Value) -> bool {
    let mut parts = vec![root];
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(entries)) = root.get(key) {
            parts.extend(entries.values());
        }
    }
    parts.into_iter().any(|part| {
        let mut properties = 0;
        let depth = measure(part, true, &mut properties);
        depth > MAX_DEPTH || properties > MAX_PROPERTIES
    })
}

fn measure(schema: &Value, root: bool, properties: &mut usize) -> usize {
    match schema {
        Value::Object(map) => {
            let own = match map.get("properties") {
                Some(Value::Object(own)) => {
                    *properties += own.len();
                    1
                }
                _ => 0,
            };
            let below = map
                .iter()
                .filter(|(key, _)| !(root && matches!(key.as_str(), "$defs" | "definitions")))
                .map(|(_, child)| measure(child, false, properties))
                .max()
                .unwrap_or(0);
            own + below
        }
        Value::Array(items) => items
            .iter()
            .map(|item| measure(item, false, properties))
            .max()
            .unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_schema_whose_properties_are_all_required_is_strict() {
        let (schema, strict) = transform(
            &json!({
                "type": "object", "title": "Query", "properties": {"sql": {"type": "string", "title": "Sql"}},
                "required": ["sql"],
            }),
            None,
        );
        assert_eq!(
            schema,
            json!({
                "type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"],
                "additionalProperties": false,
            })
        );
        assert!(strict);
    }

    #[test]
    fn an_optional_property_or_no_required_list_is_not_strict() {
        let (schema, strict) = transform(&json!({"type": "object", "properties": {}}), None);
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        );
        assert!(!strict);
        let optional = json!({
            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"],
        });
        assert!(!transform(&optional, None).1);
    }

    #[test]
    fn one_loose_part_anywhere_makes_the_whole_schema_loose() {
        let with = |property: Value| {
            let schema =
                json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
            transform(&schema, None).1
        };
        assert!(with(json!({"type": "string", "format": "date"})));
        assert!(with(json!({"type": "array", "items": {"type": "string"}})));
        assert!(with(json!({"type": "string", "pattern": "\\(?=x"})));
        for loose in [
            json!({"type": "string", "default": "x"}),
            json!({"type": "string", "minLength": 1}),
            json!({"type": "string", "format": "uri"}),
            json!({"type": "string", "pattern": "(?=x)"}),
            json!({"type": "array"}),
            json!({"type": "array", "items": {"description": "any"}}),
            json!({"oneOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "object", "additionalProperties": true}),
            json!({"$ref": "#/properties/b"}),
        ] {
            assert!(!with(loose.clone()), "{loose}");
        }
    }

    #[test]
    fn a_reference_with_company_moves_into_an_any_of() {
        let (schema, strict) = transform(
            &json!({
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A", "description": "An A."}},
                "required": ["a"],
                "$defs": {"A": {"type": "object", "properties": {}, "required": [], "title": "A"}},
            }),
            None,
        );
        assert_eq!(
            schema["properties"]["a"],
            json!({"description": "An A.", "anyOf": [{"$ref": "#/$defs/A"}]})
        );
        assert_eq!(
            schema["$defs"]["A"],
            json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
        );
        assert!(strict);
    }

    #[test]
    fn an_author_can_have_a_schema_made_strict_or_left_open() {
        let loose = json!({
            "type": "object", "properties": {"a": {"type": "string", "default": "x"}},
        });
        assert_eq!(
            transform(&loose, Some(true)),
            (
                json!({
                    "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                    "additionalProperties": false,
                }),
                true
            )
        );
        assert_eq!(transform(&loose, Some(false)), (loose, false));
    }
}
