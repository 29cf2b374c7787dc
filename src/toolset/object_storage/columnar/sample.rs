//! Rows as Python prints them: `json.dumps(rows, indent=2)`, with secrets masked before.

use datafusion::arrow::array::RecordBatch;
use serde_json::Value;

use crate::airflow::python_text::{JsonStyle, write_json, write_json_float, write_json_string};
use crate::hook::Cell;
use crate::toolset::datafusion::cell;
use crate::toolset::object_storage::storage::StorageError;
use crate::toolset::sql::Mask;

/// The first rows of the batches, a list of objects.
pub(super) fn rows(
    batches: &[RecordBatch],
    limit: usize,
    mask: &Mask,
) -> Result<String, StorageError> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows().min(limit - rows.len()) {
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns());
            let row = columns.map(|(field, column)| {
                let value = cell(column.as_ref(), row)
                    .map_err(|error| StorageError::exception("ValueError", error.to_string()))?;
                Ok((field.name().clone(), value))
            });
            rows.push(Cell::Object(row.collect::<Result<_, StorageError>>()?));
        }
    }
    let mut out = String::new();
    write(&mut out, &Cell::List(rows), 0, mask);
    Ok(out)
}

/// A JSON value in the same style.
pub(in crate::toolset::object_storage) fn json(value: &Value, mask: &Mask) -> String {
    let mut out = String::new();
    write(&mut out, &cell_of(value), 0, mask);
    out
}

fn cell_of(value: &Value) -> Cell {
    match value {
        Value::Array(items) => Cell::List(items.iter().map(cell_of).collect()),
        Value::Object(entries) => Cell::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), cell_of(value)))
                .collect(),
        ),
        Value::String(text) => Cell::Text(text.clone()),
        other => Cell::Json(other.clone()),
    }
}

fn write(out: &mut String, cell: &Cell, depth: usize, mask: &Mask) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    let style = JsonStyle::LOOSE;
    match cell {
        Cell::Null => out.push_str("null"),
        Cell::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Cell::Int(value) => out.push_str(&value.to_string()),
        Cell::Float(value) => write_json_float(out, *value),
        Cell::Text(text) => write_json_string(out, &mask(text), style),
        Cell::Bytes(bytes) => {
            write_json_string(out, &mask(&String::from_utf8_lossy(bytes)), style);
        }
        Cell::Json(value @ (Value::Array(_) | Value::Object(_) | Value::String(_))) => {
            write(out, &cell_of(value), depth, mask);
        }
        Cell::Json(value) => write_json(out, value, style),
        Cell::List(items) if items.is_empty() => out.push_str("[]"),
        Cell::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                line(out, depth + 1);
                write(out, item, depth + 1, mask);
            }
            line(out, depth);
            out.push(']');
        }
        Cell::Object(entries) if entries.is_empty() => out.push_str("{}"),
        Cell::Object(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                line(out, depth + 1);
                write_json_string(out, &mask(key), style);
                out.push_str(": ");
                write(out, value, depth + 1, mask);
            }
            line(out, depth);
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_indented_by_two_and_masked() {
        let mask: Mask = Arc::new(|text| text.replace("made-up", "***"));
        let value = json!({"a": [1, {"b": "made-up é"}], "made-up": {}, "c": []});
        assert_eq!(
            super::json(&value, &mask),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"*** \\u00e9\"\n    }\n  ],\n  \"***\": {},\n  \"c\": []\n}"
        );
    }
}
