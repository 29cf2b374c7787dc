//! Validation of tool arguments: pydantic's lax rules for the part of JSON Schema that tools use.
//!
//! Written out rather than left to a JSON Schema library because models and people see pydantic's error items, and
//! because a lax validator also converts (`"2"` is a good integer). Formats, ranges and enums are not checked here,
//! as they are not in the Python provider.

use serde_json::{Map, Number, Value, json};

/// One thing that is wrong with the arguments of a call.
#[derive(Clone, Debug, PartialEq)]
struct ErrorItem {
    kind: &'static str,
    /// Keys and indexes that lead to the place.
    loc: Vec<Value>,
    message: String,
    input: Value,
}

/// Why arguments were refused: the list the model sees, an array of `{"type","loc","msg","input"}`.
#[derive(Clone, Debug, PartialEq)]
pub struct InvalidArguments(pub Value);

/// Parses a call's argument text and validates it against the tool's parameter schema.
///
/// Declared arguments come first in the result, in the schema's order, then the others.
///
/// # Errors
/// The text is not JSON, not an object, or does not fit the schema.
pub fn validate(raw: &str, schema: &Value) -> Result<Map<String, Value>, InvalidArguments> {
    let text = if raw.is_empty() { "{}" } else { raw };
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            let item = ErrorItem {
                kind: "json_invalid",
                loc: Vec::new(),
                message: format!("Invalid JSON: {error}"),
                input: Value::String(raw.to_owned()),
            };
            return Err(InvalidArguments(items_as_json(vec![item])));
        }
    };
    let mut errors = Vec::new();
    let checked = object(&value, schema, &mut Vec::new(), &mut errors);
    match checked {
        Some((Value::Object(arguments), _)) if errors.is_empty() => Ok(arguments),
        _ => Err(InvalidArguments(items_as_json(errors))),
    }
}

/// The items as the model sees them.
fn items_as_json(items: Vec<ErrorItem>) -> Value {
    let items = items.into_iter().map(|item| {
        json!({ "type": item.kind, "loc": item.loc, "msg": item.message, "input": item.input })
    });
    show_input_once(items.collect())
}

/// Error items as the model sees them. `input` is the whole argument object for a missing field, so it is shown once:
/// among the items at the top level, a later one whose input equals the first one's leaves it out.
#[must_use]
pub fn show_input_once(mut items: Vec<Value>) -> Value {
    let mut shown: Option<Value> = None;
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        let depth = item
            .get("loc")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        if depth > 1 {
            continue;
        }
        let input = item.get("input").cloned().unwrap_or_default();
        match &shown {
            Some(first) if *first == input => {
                item.shift_remove("input");
            }
            Some(_) => {}
            None => shown = Some(input),
        }
    }
    Value::Array(items)
}

/// How close an input was to what the schema asks for; a union takes its closest member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    /// Converted: `"1"` for an integer.
    Lax,
    /// Another type that Python takes without conversion: an integer for a number.
    Strict,
    Exact,
}

type Checked = Option<(Value, Closeness)>;

/// The members of a union, or `None` for a schema that is not one.
fn union_members(schema: &Value) -> Option<Vec<Value>> {
    if let Some(Value::Array(members)) = schema.get("anyOf") {
        return Some(
            members
                .iter()
                .filter(|member| member.is_object())
                .cloned()
                .collect(),
        );
    }
    let Some(Value::Array(types)) = schema.get("type") else {
        return None;
    };
    Some(
        types
            .iter()
            .filter(|name| name.is_string())
            .map(|name| {
                let mut member = schema.as_object().cloned().unwrap_or_default();
                member.insert("type".to_owned(), name.clone());
                Value::Object(member)
            })
            .collect(),
    )
}

fn fragment(
    value: &Value,
    schema: &Value,
    loc: &mut Vec<Value>,
    errors: &mut Vec<ErrorItem>,
) -> Checked {
    if let Some(members) = union_members(schema) {
        return if members.is_empty() {
            Some((value.clone(), Closeness::Exact))
        } else {
            union(value, &members, loc, errors)
        };
    }
    let mut fail = |kind, message: &str| {
        errors.push(ErrorItem {
            kind,
            loc: loc.clone(),
            message: message.to_owned(),
            input: value.clone(),
        });
        None
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => match value {
            Value::String(_) => Some((value.clone(), Closeness::Exact)),
            _ => fail("string_type", "Input should be a valid string"),
        },
        Some("integer") => integer(value)
            .map_err(|(kind, message)| fail(kind, message))
            .ok(),
        Some("number") => number(value)
            .map_err(|(kind, message)| fail(kind, message))
            .ok(),
        Some("boolean") => boolean(value)
            .map_err(|(kind, message)| fail(kind, message))
            .ok(),
        Some("null") => match value {
            Value::Null => Some((Value::Null, Closeness::Exact)),
            _ => fail("none_required", "Input should be null"),
        },
        Some("array") => array(value, schema, loc, errors),
        Some("object") => object(value, schema, loc, errors),
        _ => Some((value.clone(), Closeness::Exact)),
    }
}

fn union(
    value: &Value,
    members: &[Value],
    loc: &mut Vec<Value>,
    errors: &mut Vec<ErrorItem>,
) -> Checked {
    let mut best: Checked = None;
    let mut all_errors = Vec::new();
    for member in members {
        let mut member_errors = Vec::new();
        loc.push(Value::String(label(member)));
        let checked = fragment(value, member, loc, &mut member_errors);
        loc.pop();
        all_errors.append(&mut member_errors);
        if let Some((_, closeness)) = &checked
            && best.as_ref().is_none_or(|(_, so_far)| closeness > so_far)
        {
            best = checked;
        }
    }
    if best.is_none() {
        errors.append(&mut all_errors);
    }
    best
}

/// A union member's name in an error's `loc`.
fn label(schema: &Value) -> String {
    if let Some(members) = union_members(schema) {
        return match members.as_slice() {
            [] => "any".to_owned(),
            members => format!(
                "union[{}]",
                members.iter().map(label).collect::<Vec<_>>().join(",")
            ),
        };
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "str".to_owned(),
        Some("integer") => "int".to_owned(),
        Some("number") => "float".to_owned(),
        Some("boolean") => "bool".to_owned(),
        Some("null") => "none".to_owned(),
        Some("array") => match schema.get("items") {
            Some(items) if items.is_object() => format!("list[{}]", label(items)),
            _ => "list[any]".to_owned(),
        },
        Some("object") if schema.get("properties").is_some() => "typed-dict".to_owned(),
        Some("object") => "dict[any,any]".to_owned(),
        _ => "any".to_owned(),
    }
}

fn array(
    value: &Value,
    schema: &Value,
    loc: &mut Vec<Value>,
    errors: &mut Vec<ErrorItem>,
) -> Checked {
    let Value::Array(items) = value else {
        errors.push(ErrorItem {
            kind: "list_type",
            loc: loc.clone(),
            message: "Input should be a valid array".to_owned(),
            input: value.clone(),
        });
        return None;
    };
    let Some(item_schema) = schema.get("items").filter(|items| items.is_object()) else {
        return Some((value.clone(), Closeness::Exact));
    };
    let mut closeness = Closeness::Exact;
    let mut checked_items = Vec::with_capacity(items.len());
    let mut good = true;
    for (index, item) in items.iter().enumerate() {
        loc.push(json!(index));
        match fragment(item, item_schema, loc, errors) {
            Some((item, item_closeness)) => {
                closeness = closeness.min(item_closeness);
                checked_items.push(item);
            }
            None => good = false,
        }
        loc.pop();
    }
    good.then_some((Value::Array(checked_items), closeness))
}

fn object(
    value: &Value,
    schema: &Value,
    loc: &mut Vec<Value>,
    errors: &mut Vec<ErrorItem>,
) -> Checked {
    let Value::Object(map) = value else {
        errors.push(ErrorItem {
            kind: "dict_type",
            loc: loc.clone(),
            message: "Input should be an object".to_owned(),
            input: value.clone(),
        });
        return None;
    };
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Some((value.clone(), Closeness::Exact));
    };
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut closeness = Closeness::Exact;
    let mut checked = Map::new();
    let mut good = true;
    for (name, property) in properties {
        loc.push(Value::String(name.clone()));
        match map.get(name) {
            Some(given) => match fragment(given, property, loc, errors) {
                Some((given, given_closeness)) => {
                    closeness = closeness.min(given_closeness);
                    checked.insert(name.clone(), given);
                }
                None => good = false,
            },
            None if required.contains(&name.as_str()) => {
                errors.push(ErrorItem {
                    kind: "missing",
                    loc: loc.clone(),
                    message: "Field required".to_owned(),
                    input: value.clone(),
                });
                good = false;
            }
            None => {}
        }
        loc.pop();
    }
    let extra_allowed = schema.get("additionalProperties") == Some(&Value::Bool(true));
    for (name, given) in map
        .iter()
        .filter(|(name, _)| !properties.contains_key(*name))
    {
        if extra_allowed {
            checked.insert(name.clone(), given.clone());
            continue;
        }
        let mut place = loc.clone();
        place.push(Value::String(name.clone()));
        errors.push(ErrorItem {
            kind: "extra_forbidden",
            loc: place,
            message: "Extra inputs are not permitted".to_owned(),
            input: given.clone(),
        });
        good = false;
    }
    good.then_some((Value::Object(checked), closeness))
}

type Coerced = Result<(Value, Closeness), (&'static str, &'static str)>;

fn integer(value: &Value) -> Coerced {
    match value {
        Value::Bool(b) => Ok((json!(i32::from(*b)), Closeness::Lax)),
        Value::Number(number) if !number.as_str().contains(['.', 'e', 'E']) => {
            Ok((value.clone(), Closeness::Exact))
        }
        Value::Number(number) => match number.as_str().parse::<f64>() {
            Ok(float) if !float.is_finite() => {
                Err(("finite_number", "Input should be a finite number"))
            }
            Ok(float) if float.fract() == 0.0 => {
                let digits = format!("{float:.0}");
                Ok((
                    Value::Number(number_from_text(if digits == "-0" { "0" } else { &digits })),
                    Closeness::Lax,
                ))
            }
            _ => Err((
                "int_from_float",
                "Input should be a valid integer, got a number with a fractional part",
            )),
        },
        Value::String(text) => match integer_text(text) {
            Some(digits) => Ok((Value::Number(number_from_text(&digits)), Closeness::Lax)),
            None => Err((
                "int_parsing",
                "Input should be a valid integer, unable to parse string as an integer",
            )),
        },
        _ => Err(("int_type", "Input should be a valid integer")),
    }
}

/// Canonical digits of an integer written as text: white space around it, a sign, single underscores between digits
/// and a fraction of zeros are all right.
fn integer_text(text: &str) -> Option<String> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let whole = match rest.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => {
            whole
        }
        Some(_) => return None,
        None => rest,
    };
    let digits = without_underscores(whole)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match digits.trim_start_matches('0') {
        "" => Some("0".to_owned()),
        digits => Some(format!("{sign}{digits}")),
    }
}

/// Drops underscores that stand singly between two digits; any other underscore spoils the number.
fn without_underscores(text: &str) -> Option<String> {
    if text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return None;
    }
    Some(text.replace('_', ""))
}

fn number_from_text(digits: &str) -> Number {
    // With arbitrary precision any run of digits is a number, so the zero is never used.
    serde_json::from_str(digits).unwrap_or_else(|_| Number::from(0))
}

fn number(value: &Value) -> Coerced {
    const NOT_A_NUMBER: (&str, &str) = (
        "float_parsing",
        "Input should be a valid number, unable to parse string as a number",
    );
    match value {
        Value::Bool(b) => Ok((
            float_value(f64::from(u8::from(*b))).unwrap_or_default(),
            Closeness::Lax,
        )),
        Value::Number(number) => {
            let closeness = if number.as_str().contains(['.', 'e', 'E']) {
                Closeness::Exact
            } else {
                Closeness::Strict
            };
            match number.as_str().parse().ok().and_then(float_value) {
                Some(float) => Ok((float, closeness)),
                None => Err(("finite_number", "Input should be a finite number")),
            }
        }
        Value::String(text) => {
            let parsed = without_underscores(text.trim()).and_then(|text| text.parse::<f64>().ok());
            match parsed {
                // JSON has no spelling for these, so a tool could not be given them.
                Some(float) if !float.is_finite() => {
                    Err(("finite_number", "Input should be a finite number"))
                }
                Some(float) => Ok((float_value(float).unwrap_or_default(), Closeness::Lax)),
                None => Err(NOT_A_NUMBER),
            }
        }
        _ => Err(("float_type", "Input should be a valid number")),
    }
}

fn float_value(float: f64) -> Option<Value> {
    Number::from_f64(float).map(Value::Number)
}

fn boolean(value: &Value) -> Coerced {
    const UNREADABLE: (&str, &str) = (
        "bool_parsing",
        "Input should be a valid boolean, unable to interpret input",
    );
    let lax = |b: bool| Ok((Value::Bool(b), Closeness::Lax));
    match value {
        Value::Bool(_) => Ok((value.clone(), Closeness::Exact)),
        Value::Number(number) => match number.as_str().parse::<f64>() {
            Ok(1.0) => lax(true),
            Ok(0.0) => lax(false),
            Ok(float) if float.fract() != 0.0 => {
                Err(("bool_type", "Input should be a valid boolean"))
            }
            _ => Err(UNREADABLE),
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "t" | "yes" | "y" | "on" => lax(true),
            "0" | "false" | "f" | "no" | "n" | "off" => lax(false),
            _ => Err(UNREADABLE),
        },
        _ => Err(("bool_type", "Input should be a valid boolean")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    /// The expected values are what pydantic 2.14 does with the schema `{"x": <schema>}`, recorded once.
    fn check(schema: Value, argument: &str) -> Result<Value, Value> {
        let schema = json!({"type": "object", "properties": {"x": schema}, "required": ["x"]});
        match validate(&format!("{{\"x\": {argument}}}"), &schema) {
            Ok(arguments) => Ok(arguments["x"].clone()),
            Err(InvalidArguments(items)) => Err(items
                .as_array()
                .unwrap()
                .iter()
                .map(|item| json!([item["type"], item["loc"]]))
                .collect()),
        }
    }

    #[test]
    fn integers_take_what_pydantic_takes() {
        let integer = json!({"type": "integer"});
        for (argument, value) in [
            ("\"1.0\"", "1"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("true", "1"),
            ("\" 1 \"", "1"),
            ("\"1_000\"", "1000"),
            ("\"+5\"", "5"),
            ("\"01\"", "1"),
            ("\"-0\"", "0"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
        ] {
            assert_eq!(
                check(integer.clone(), argument).map(|v| v.to_string()),
                Ok(value.to_owned()),
                "{argument}"
            );
        }
        for (argument, kind) in [
            ("\"1e2\"", "int_parsing"),
            ("1.5", "int_from_float"),
            ("\"1__0\"", "int_parsing"),
            ("\"_1\"", "int_parsing"),
            ("\"1.\"", "int_parsing"),
            ("\"\"", "int_parsing"),
            ("null", "int_type"),
            ("[1]", "int_type"),
        ] {
            assert_eq!(
                check(integer.clone(), argument),
                Err(json!([[kind, ["x"]]])),
                "{argument}"
            );
        }
    }

    #[test]
    fn numbers_and_booleans_take_what_pydantic_takes() {
        let number = json!({"type": "number"});
        assert_eq!(check(number.clone(), "1").unwrap().to_string(), "1.0");
        assert_eq!(
            check(number.clone(), "\"1e2\"").unwrap().to_string(),
            "100.0"
        );
        assert_eq!(
            check(number.clone(), "\"x\""),
            Err(json!([["float_parsing", ["x"]]]))
        );
        assert_eq!(check(number, "null"), Err(json!([["float_type", ["x"]]])));
        let boolean = json!({"type": "boolean"});
        assert_eq!(check(boolean.clone(), "\"YES\""), Ok(json!(true)));
        assert_eq!(check(boolean.clone(), "1.0"), Ok(json!(true)));
        assert_eq!(
            check(boolean.clone(), "2"),
            Err(json!([["bool_parsing", ["x"]]]))
        );
        assert_eq!(
            check(boolean.clone(), "0.5"),
            Err(json!([["bool_type", ["x"]]]))
        );
        assert_eq!(
            check(boolean, "\" true\""),
            Err(json!([["bool_parsing", ["x"]]]))
        );
    }

    #[test]
    fn a_union_takes_its_closest_member() {
        let schema = json!({"type": ["integer", "string", "null"]});
        assert_eq!(check(schema.clone(), "\"1\""), Ok(json!("1")));
        assert_eq!(check(schema.clone(), "true"), Ok(json!(1)));
        assert_eq!(
            check(schema, "1.5"),
            Err(json!([
                ["int_from_float", ["x", "int"]],
                ["string_type", ["x", "str"]],
                ["none_required", ["x", "none"]]
            ]))
        );
    }

    #[test]
    fn union_members_are_named_in_the_place_of_an_error() {
        let schema = json!({"anyOf": [
            {"type": "array", "items": {"type": "string"}},
            {"type": "object"},
            {"type": "object", "properties": {}},
            {"type": ["integer", "null"]},
        ]});
        assert_eq!(
            check(schema, "\"q\""),
            Err(json!([
                ["list_type", ["x", "list[str]"]],
                ["dict_type", ["x", "dict[any,any]"]],
                ["dict_type", ["x", "typed-dict"]],
                ["int_parsing", ["x", "union[int,none]", "int"]],
                ["none_required", ["x", "union[int,none]", "none"]]
            ]))
        );
    }

    #[test]
    fn nested_objects_and_arrays_are_checked_to_the_bottom() {
        let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        assert_eq!(
            check(object, "{\"a\": \"q\", \"z\": 1}"),
            Err(json!([
                ["int_parsing", ["x", "a"]],
                ["extra_forbidden", ["x", "z"]]
            ]))
        );
        let array = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!(
            check(array, "[1, \"a\", 2.5]"),
            Err(json!([
                ["int_parsing", ["x", 1]],
                ["int_from_float", ["x", 2]]
            ]))
        );
    }

    #[test]
    fn of_two_missing_fields_only_the_first_shows_the_whole_object() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["a", "b"],
        });
        assert_eq!(
            validate("", &schema),
            Err(InvalidArguments(json!([
                {"type": "missing", "loc": ["a"], "msg": "Field required", "input": {}},
                {"type": "missing", "loc": ["b"], "msg": "Field required"},
            ])))
        );
    }

    #[test]
    fn text_that_is_not_json_is_shown_to_the_model_with_the_reason() {
        let schema = json!({"type": "object", "properties": {}});
        assert_eq!(
            validate("{not json", &schema),
            Err(InvalidArguments(json!([{
                "type": "json_invalid",
                "loc": [],
                "msg": "Invalid JSON: key must be a string at line 1 column 2",
                "input": "{not json",
            }])))
        );
        assert_eq!(
            validate("null", &schema),
            Err(InvalidArguments(json!([
                {"type": "dict_type", "loc": [], "msg": "Input should be an object", "input": null}
            ])))
        );
    }
}
