//! Values and types as DuckDB writes them in text, and as its Python package would hand them over.

use serde_json::Value;

use crate::hook::{Cell, python_value};

/// How a column is asked for, and what its text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Bool,
    Integer,
    Float,
    Decimal,
    Timestamp,
    /// Lists, structures, maps: as JSON.
    Nested,
    Bytes,
    Interval,
    /// The text itself: strings, dates, times, UUIDs, enumerations, bits.
    Text,
}

impl Shown {
    /// By the type's name, as DESCRIBE prints it.
    pub(super) fn of(declared: &str) -> Self {
        let name = declared.split('(').next().unwrap_or_default();
        if declared.ends_with(']') || matches!(name, "STRUCT" | "MAP" | "UNION" | "JSON") {
            return Self::Nested;
        }
        match name {
            "BOOLEAN" => Self::Bool,
            "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "HUGEINT" | "UTINYINT"
            | "USMALLINT" | "UINTEGER" | "UBIGINT" | "UHUGEINT" => Self::Integer,
            "FLOAT" | "DOUBLE" => Self::Float,
            "DECIMAL" => Self::Decimal,
            "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE" | "TIMESTAMP_S" | "TIMESTAMP_MS" => {
                Self::Timestamp
            }
            "BLOB" => Self::Bytes,
            "INTERVAL" => Self::Interval,
            _ => Self::Text,
        }
    }

    /// What is asked of the database for a column.
    pub(super) fn expression(self, column: &str) -> String {
        match self {
            Self::Nested => format!("CAST(to_json({column}) AS VARCHAR)"),
            Self::Bytes => format!("hex({column})"),
            // Months, days and microseconds; Python's package counts 30 days a month.
            Self::Interval => format!(
                "CAST((datepart('year', {column}) * 12 + datepart('month', {column})) * 2592000000000::HUGEINT \
                 + datepart('day', {column}) * 86400000000::HUGEINT + datepart('hour', {column}) * 3600000000::HUGEINT \
                 + datepart('minute', {column}) * 60000000::HUGEINT + datepart('microsecond', {column}) AS VARCHAR)"
            ),
            Self::Float => format!("CAST(CAST({column} AS DOUBLE) AS VARCHAR)"),
            _ => format!("CAST({column} AS VARCHAR)"),
        }
    }

    /// `None` for a text that is not in the form its type has.
    pub(super) fn cell(self, text: &str) -> Option<Cell> {
        Some(match self {
            Self::Bool => Cell::Bool(match text {
                "true" => true,
                "false" => false,
                _ => return None,
            }),
            Self::Integer => match text.parse() {
                Ok(value) => Cell::Int(value),
                Err(_) => Cell::Json(Value::Number(text.parse().ok()?)),
            },
            Self::Float => Cell::Float(text.parse().ok()?),
            Self::Decimal => Cell::Text(python_value::decimal(text)?),
            Self::Timestamp => {
                Cell::Text(python_value::datetime(text).unwrap_or_else(|| text.to_owned()))
            }
            Self::Nested => Cell::Json(serde_json::from_str(text).ok()?),
            Self::Bytes => Cell::Bytes(bytes(text)?),
            Self::Interval => Cell::Text(python_value::timedelta(text.parse().ok()?)?),
            Self::Text => Cell::Text(text.to_owned()),
        })
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<char> = hex.chars().collect();
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(high.to_digit(16)? * 16 + low.to_digit(16)?).ok(),
            _ => None,
        })
        .collect()
}

/// The text of a type: DuckDB's own, with the space that SQLAlchemy puts between two arguments.
pub(super) fn type_text(declared: &str) -> String {
    declared.replace(',', ", ").replace(",  ", ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_what_python_would_show() {
        let cell = |ty: &str, text: &str| Shown::of(ty).cell(text).unwrap();
        assert_eq!(cell("DECIMAL(10,2)", "1.50"), Cell::Text("1.50".to_owned()));
        assert_eq!(cell("BLOB", "00FF41"), Cell::Bytes(vec![0, 255, 65]));
        assert_eq!(
            cell("INTERVAL", "86400000000"),
            Cell::Text("1 day, 0:00:00".to_owned())
        );
        assert_eq!(
            cell("INTEGER[]", "[1,null]"),
            Cell::Json(serde_json::json!([1, null]))
        );
        assert_eq!(cell("BIGINT", "-5"), Cell::Int(-5));
        assert_eq!(type_text("DECIMAL(10,2)"), "DECIMAL(10, 2)");
    }
}
