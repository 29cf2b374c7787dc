//! Python's text forms of values: `repr`, `json.dumps`, `str.casefold`.
//!
//! Tool results, XComs and error texts are compared and counted as text, so these must be Python's to the byte.

use std::fmt::Write;

use serde_json::Value;

/// How `json.dumps` was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonStyle {
    pub item_separator: &'static str,
    pub key_separator: &'static str,
    pub ensure_ascii: bool,
}

impl JsonStyle {
    /// The defaults of `json.dumps`: `", "`, `": "`, and `\uXXXX` for everything outside ASCII.
    pub const LOOSE: Self = Self {
        item_separator: ", ",
        key_separator: ": ",
        ensure_ascii: true,
    };
    /// `separators=(",", ":"), ensure_ascii=False`.
    pub const COMPACT: Self = Self {
        item_separator: ",",
        key_separator: ":",
        ensure_ascii: false,
    };
}

/// `json.dumps(value)` in a style.
#[must_use]
pub fn dumps(value: &Value, style: JsonStyle) -> String {
    let mut out = String::new();
    write_json(&mut out, value, style);
    out
}

/// Appends `json.dumps(value)`.
pub fn write_json(out: &mut String, value: &Value, style: JsonStyle) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_json_string(out, text, style),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(style.item_separator);
                }
                write_json(out, item, style);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(style.item_separator);
                }
                write_json_string(out, key, style);
                out.push_str(style.key_separator);
                write_json(out, item, style);
            }
            out.push('}');
        }
    }
}

/// Integers keep their digits; anything with a fraction or an exponent is a float to Python.
fn write_number(out: &mut String, number: &serde_json::Number) {
    let text = number.to_string();
    if text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-')
    {
        out.push_str(&text);
    } else if let Ok(float) = text.parse::<f64>() {
        write_json_float(out, float);
    } else {
        out.push_str(&text);
    }
}

/// Appends a float as `json.dumps` does: `1.0`, `1e+16`, and bare `NaN`, `Infinity`, `-Infinity`.
pub fn write_json_float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        out.push_str(&repr_float(value));
    }
}

/// Appends a JSON string.
pub fn write_json_string(out: &mut String, text: &str, style: JsonStyle) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (style.ensure_ascii && !(' '..='~').contains(&c)) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a String can't fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `repr(float)`: the shortest digits that read back as the same number, with an exponent below 1e-4 and from 1e16.
#[must_use]
pub fn repr_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() {
            "-0.0"
        } else {
            "0.0"
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let fixed = format!("{value}");
        if fixed.contains('.') {
            fixed
        } else {
            fixed + ".0"
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
    }
}

/// `repr(str)`: single quotes unless the text holds one and no double quote.
#[must_use]
pub fn repr_str(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                // Writing to a String can't fail.
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// `repr` of a JSON value: `{'a': None, 'b': [True, 1.0]}`.
#[must_use]
pub fn repr_value(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&repr_number(number)),
        Value::String(text) => out.push_str(&repr_str(text)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&repr_str(key));
                out.push_str(": ");
                write_repr(out, item);
            }
            out.push('}');
        }
    }
}

/// Integers of any size are as they are written; anything with a fraction or an exponent is a float.
fn repr_number(number: &serde_json::Number) -> String {
    let text = number.as_str();
    if text == "-0" {
        return "0".to_owned();
    }
    if !text.contains(['.', 'e', 'E']) {
        return text.to_owned();
    }
    text.parse().map_or_else(|_| text.to_owned(), repr_float)
}

/// Python's `str.isprintable` for one character, as far as the standard library's tables go: controls, separators
/// other than the space, format characters and private use are not printable.
fn is_printable(c: char) -> bool {
    c == ' '
        || !(c.is_control()
            || c.is_whitespace()
            || matches!(c,
                '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{10ffff}'))
}

/// `str.casefold`: full Unicode case folding, under which `STRASSE` and `straße` are equal.
#[must_use]
pub fn casefold(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        caseless::default_case_fold_str(text)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_json_value_reads_as_python_prints_it() {
        let value: Value = serde_json::from_str(
            r#"{"message":"slow","code":null,"ok":true,"n":[1,2.0,1e-7,1E400]}"#,
        )
        .unwrap();
        assert_eq!(
            repr_value(&value),
            "{'message': 'slow', 'code': None, 'ok': True, 'n': [1, 2.0, 1e-07, inf]}"
        );
    }

    #[test]
    fn floats_read_as_python_prints_them() {
        let cases = [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-0.0, "-0.0"),
            (1e300, "1e+300"),
            (5e-324, "5e-324"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(repr_float(value), expected);
        }
    }

    #[test]
    fn strings_are_quoted_as_python_repr_does() {
        assert_eq!(repr_str("salaries"), "'salaries'");
        assert_eq!(repr_str("it's"), "\"it's\"");
        assert_eq!(repr_str("it's \"it\""), "'it\\'s \"it\"'");
        assert_eq!(
            repr_str("a\tb\\\u{1}\u{200b}日"),
            "'a\\tb\\\\\\x01\\u200b日'"
        );
    }

    #[test]
    fn loose_json_escapes_what_is_not_ascii_and_compact_json_keeps_it() {
        let value = json!({"a": ["日😀\u{7f}\n", 1, 2.50, null, true]});
        assert_eq!(
            dumps(&value, JsonStyle::LOOSE),
            r#"{"a": ["\u65e5\ud83d\ude00\u007f\n", 1, 2.5, null, true]}"#
        );
        assert_eq!(
            dumps(&value, JsonStyle::COMPACT),
            "{\"a\":[\"日😀\u{7f}\\n\",1,2.5,null,true]}"
        );
    }

    #[test]
    fn integers_of_any_size_keep_their_digits() {
        let value: Value = serde_json::from_str("[123456789012345678901234567890, 1e16]").unwrap();
        assert_eq!(
            dumps(&value, JsonStyle::COMPACT),
            "[123456789012345678901234567890,1e+16]"
        );
    }

    #[test]
    fn casefold_is_more_than_lower_case() {
        assert_eq!(casefold("STRASSE"), casefold("straße"));
        assert_ne!(casefold("istanbul"), casefold("İstanbul"));
    }
}
