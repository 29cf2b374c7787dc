//! JSON text as pydantic writes it: what a model reads of arguments and results.

use serde_json::{Number, Value};

/// Compact JSON with numbers as pydantic writes them after reading: `1e5` becomes `100000.0`.
///
/// Numbers keep their source text inside `serde_json` here, so a value that came from a model must be normalised
/// before it goes back as text. (`json.dumps` writes small floats otherwise: `1e-07` for `1e-7`.)
#[must_use]
pub fn compact_json(value: &Value) -> String {
    canonical(value).to_string()
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(canonical_number(number)),
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), canonical(v))).collect())
        }
        other => other.clone(),
    }
}

fn canonical_number(number: &Number) -> Number {
    let text = number.as_str();
    if text == "-0" {
        return Number::from(0);
    }
    if !text.contains(['.', 'e', 'E']) {
        return number.clone();
    }
    // A number too large for a double has no JSON text in Python either; its own text does least harm.
    text.parse::<f64>()
        .ok()
        .and_then(Number::from_f64)
        .unwrap_or_else(|| number.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rewritten_as_pydantic_rewrites_them() {
        let value: Value = serde_json::from_str(
            "[1e5, 1.0, -0, -0.0, 1e16, 1e-7, 123456789012345678901234567890, 0.1, 1E400]",
        )
        .unwrap();
        assert_eq!(
            compact_json(&value),
            "[100000.0,1.0,0,-0.0,1e+16,1e-7,123456789012345678901234567890,0.1,1e+400]"
        );
    }
}
