//! `usage_limits`: a dict of numbers, or of texts that templates made of numbers.

use serde_json::Value;

use super::arguments::{python_class, python_repr};
use super::failure::Failure;
use crate::agent::UsageLimits;
use crate::airflow::python_text::repr_str;

/// Field names, sorted, for the error that lists them.
const FIELDS: [&str; 8] = [
    "cost_limit",
    "count_tokens_before_request",
    "input_tokens_limit",
    "output_tokens_limit",
    "per_request_input_tokens_limit",
    "request_limit",
    "tool_calls_limit",
    "total_tokens_limit",
];

const ADVICE: &str = "if it is templated, check the rendered value.";

fn invalid(text: String) -> Failure {
    Failure::new("ValueError", text)
}

/// The limits of a rendered `usage_limits`; `None` when there are none.
///
/// # Errors
/// A value that is no limit, in the provider's words.
pub fn usage_limits(rendered: &Value) -> Result<Option<UsageLimits>, Failure> {
    let fields = match rendered {
        Value::Null => return Ok(None),
        Value::Object(map) => match map.get("__data__") {
            Some(Value::Object(data)) if map.contains_key("__classname__") => data,
            _ => map,
        },
        other => {
            let repr = python_repr(other);
            let shown = if repr.chars().count() > 100 {
                format!("{}...", repr.chars().take(100).collect::<String>())
            } else {
                repr
            };
            return Err(Failure::new(
                "TypeError",
                format!(
                    "usage_limits must be a UsageLimits, a dict, or None (got {}: {shown}); {ADVICE}",
                    python_class(other)
                ),
            ));
        }
    };
    let mut limits = UsageLimits::default();
    for (field, value) in fields {
        if !FIELDS.contains(&field.as_str()) {
            return Err(invalid(format!(
                "usage_limits has no field {}; valid fields are: {}",
                repr_str(field),
                FIELDS.join(", ")
            )));
        }
        match field.as_str() {
            "cost_limit" => limits.cost_limit = decimal(field, value)?,
            "count_tokens_before_request" => {
                limits.count_tokens_before_request = boolean(field, value)?
            }
            "request_limit" => limits.request_limit = integer(field, value)?,
            "tool_calls_limit" => limits.tool_calls_limit = integer(field, value)?,
            "input_tokens_limit" => limits.input_tokens_limit = integer(field, value)?,
            "output_tokens_limit" => limits.output_tokens_limit = integer(field, value)?,
            "per_request_input_tokens_limit" => {
                limits.per_request_input_tokens_limit = integer(field, value)?
            }
            _ => limits.total_tokens_limit = integer(field, value)?,
        }
    }
    Ok(Some(limits))
}

fn must(field: &str, what: &str, shown: &str) -> Failure {
    invalid(format!(
        "usage_limits[{}] must be {what} (got {shown}); {ADVICE}",
        repr_str(field)
    ))
}

fn not_finite(field: &str, shown: &str) -> Failure {
    invalid(format!(
        "usage_limits[{}] must be a finite number (got {shown}); a non-finite value would silently disable that limit.",
        repr_str(field)
    ))
}

fn negative(field: &str, shown: &str) -> Failure {
    invalid(format!(
        "usage_limits[{}] must not be negative (got {shown})",
        repr_str(field)
    ))
}

fn integer(field: &str, value: &Value) -> Result<Option<u64>, Failure> {
    let (text, shown) = match value {
        Value::Null => return Ok(None),
        Value::Bool(b) => {
            let shown = if *b { "True" } else { "False" };
            return Err(invalid(format!(
                "usage_limits[{}] must be an integer, not a bool (got {shown}); {ADVICE}",
                repr_str(field)
            )));
        }
        Value::Number(number) => (number.to_string(), python_repr(value)),
        Value::String(text) => (text.trim().replace('_', ""), repr_str(text)),
        other => {
            return Err(must(
                field,
                "a number",
                &format!("{}: {}", python_class(other), python_repr(other)),
            ));
        }
    };
    if let Ok(number) = text.parse::<i128>() {
        return match u64::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) if number < 0 => Err(negative(field, &number.to_string())),
            // No run comes near it.
            Err(_) => Ok(Some(u64::MAX)),
        };
    }
    match text.parse::<f64>() {
        Ok(number) if !number.is_finite() => Err(not_finite(field, &shown)),
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and not negative; it saturates"
        )]
        Ok(number) if number.fract() == 0.0 => {
            if number < 0.0 {
                Err(negative(field, &format!("{number:.0}")))
            } else {
                Ok(Some(number as u64))
            }
        }
        _ => Err(must(field, "an integer", &shown)),
    }
}

fn decimal(field: &str, value: &Value) -> Result<Option<crate::agent::cost::Cost>, Failure> {
    let (text, shown) = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => (number.to_string(), python_repr(value)),
        Value::String(text) => (text.trim().replace('_', ""), repr_str(text)),
        Value::Object(map)
            if map.get("__classname__").and_then(Value::as_str) == Some("decimal.Decimal") =>
        {
            let text = map
                .get("__data__")
                .map(ToString::to_string)
                .unwrap_or_default();
            (text.clone(), text)
        }
        other => {
            return Err(must(
                field,
                "a number",
                &format!("{}: {}", python_class(other), python_repr(other)),
            ));
        }
    };
    match text.parse::<f64>() {
        Err(_) => return Err(must(field, "a number", &shown)),
        Ok(number) if number.is_infinite() => {
            let sign = if number < 0.0 { "-" } else { "" };
            return Err(not_finite(field, &format!("Decimal('{sign}Infinity')")));
        }
        Ok(number) if number.is_nan() => return Err(not_finite(field, "Decimal('NaN')")),
        Ok(number) if number < 0.0 => {
            return Err(negative(field, &format!("Decimal({})", repr_str(&text))));
        }
        Ok(_) => {}
    }
    text.parse()
        .map(Some)
        .map_err(|_| must(field, "a number", &shown))
}

fn boolean(field: &str, value: &Value) -> Result<bool, Failure> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(b) => Ok(*b),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "on" | "t" | "true" | "y" | "yes" | "1" => Ok(true),
            "off" | "f" | "false" | "n" | "no" | "0" => Ok(false),
            _ => Err(must(
                field,
                "one of ['0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes']",
                &repr_str(text),
            )),
        },
        other => Err(must(
            field,
            "a bool",
            &format!("{}: {}", python_class(other), python_repr(other)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn texts_are_read_as_the_numbers_they_are() {
        let limits = usage_limits(
            &json!({"request_limit": "5.0", "tool_calls_limit": 3, "total_tokens_limit": null,
            "count_tokens_before_request": "No", "cost_limit": "0.5"}),
        )
        .unwrap()
        .unwrap();
        assert_eq!(limits.request_limit, Some(5));
        assert_eq!(limits.tool_calls_limit, Some(3));
        assert_eq!(
            limits.cost_limit.map(|cost| cost.to_string()).as_deref(),
            Some("0.5")
        );
        assert_eq!(usage_limits(&Value::Null).unwrap(), None);
    }

    #[test]
    fn refusals_are_the_providers() {
        let cases = [
            (
                json!({"request_limit": ""}),
                "usage_limits['request_limit'] must be an integer (got ''); if it is templated, check the rendered value.",
            ),
            (
                json!({"cost_limit": "x"}),
                "usage_limits['cost_limit'] must be a number (got 'x'); if it is templated, check the rendered value.",
            ),
            (
                json!({"request_limit": -1}),
                "usage_limits['request_limit'] must not be negative (got -1)",
            ),
            (
                json!({"cost_limit": "inf"}),
                "usage_limits['cost_limit'] must be a finite number (got Decimal('Infinity')); a non-finite value would \
              silently disable that limit.",
            ),
            (
                json!({"zz": 1}),
                "usage_limits has no field 'zz'; valid fields are: cost_limit, \
              count_tokens_before_request, input_tokens_limit, output_tokens_limit, per_request_input_tokens_limit, \
              request_limit, tool_calls_limit, total_tokens_limit",
            ),
            (
                json!("str"),
                "usage_limits must be a UsageLimits, a dict, or None (got str: 'str'); if it is templated, \
              check the rendered value.",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(usage_limits(&given).unwrap_err().message, expected);
        }
    }
}
