//! The result of `query` as JSON, within a budget of rows and bytes.

use super::{Mask, masked};
use crate::airflow::python_text::{JsonStyle, write_json, write_json_float, write_json_string};
use crate::hook::{Cell, ResultSet};

/// How much of a result the model is shown.
#[derive(Clone, Copy, Debug)]
pub(in crate::toolset) struct QueryLimits {
    pub max_rows: i64,
    /// Bytes of the column names and rows; the rest of the object comes on top.
    pub max_result_bytes: i64,
}

/// Rows are kept as a prefix: the first that does not fit ends the list, so that nothing is missing in between.
pub(in crate::toolset) fn render(result: &ResultSet, limits: QueryLimits, mask: &Mask) -> String {
    let QueryLimits {
        max_rows,
        max_result_bytes,
    } = limits;
    let columns = columns_json(&result.columns, mask);
    let total_rows = result
        .total_rows
        .filter(|&total| total > result.rows.len() as u64);
    let mut budget = max_result_bytes.saturating_sub(size(&columns));
    let mut out = Object::default();
    if budget < 0 {
        let count = result.columns.len();
        let plural = if count == 1 { "" } else { "s" };
        out.raw("column_count", &count.to_string());
        out.raw("rows", "[]");
        out.raw("row_count", "0");
        out.raw("truncated", "true");
        out.text("truncated_by", "max_result_bytes");
        out.text(
            "hint",
            &format!(
                "This query returns {count} column{plural}, whose names alone exceed max_result_bytes \
                 ({max_result_bytes}). Select the specific columns you need instead of all of them."
            ),
        );
        if let Some(total) = total_rows {
            out.raw("total_rows", &total.to_string());
        }
        return out.close();
    }

    let shown = usize::try_from(max_rows)
        .unwrap_or(0)
        .min(result.rows.len());
    let more_rows = result.rows.len() > shown;
    let mut rows = String::from("[");
    let mut kept = 0;
    for row in result.rows.iter().take(shown) {
        let row = row_json(row, mask);
        let cost = size(&row) + i64::from(kept > 0);
        if cost > budget {
            break;
        }
        budget -= cost;
        if kept > 0 {
            rows.push(',');
        }
        rows.push_str(&row);
        kept += 1;
    }
    rows.push(']');

    let byte_stop = kept < shown;
    out.raw("columns", &columns);
    out.raw("rows", &rows);
    out.raw("row_count", &kept.to_string());
    if let Some(total) = total_rows {
        out.raw("total_rows", &total.to_string());
    }
    if byte_stop || more_rows {
        out.raw("truncated", "true");
        out.text(
            "truncated_by",
            if byte_stop {
                "max_result_bytes"
            } else {
                "max_rows"
            },
        );
    }
    if byte_stop {
        let reason = match kept {
            0 => format!("The first row alone exceeds max_result_bytes ({max_result_bytes})."),
            kept => format!(
                "Stopped after {kept} row{}: the next row did not fit in max_result_bytes ({max_result_bytes}).",
                if kept == 1 { "" } else { "s" }
            ),
        };
        out.text(
            "hint",
            &format!(
                "{reason} Select fewer columns, or aggregate, instead of returning whole rows."
            ),
        );
    } else if more_rows {
        out.text(
            "hint",
            &format!(
                "Only the first {max_rows} rows are shown. Filter or aggregate in SQL rather than paging through \
                 the result."
            ),
        );
    }
    out.close()
}

fn size(json: &str) -> i64 {
    i64::try_from(json.len()).unwrap_or(i64::MAX)
}

fn columns_json(columns: &[String], mask: &Mask) -> String {
    let mut out = String::from("[");
    for (index, name) in columns.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_json_string(&mut out, &mask(name), JsonStyle::COMPACT);
    }
    out.push(']');
    out
}

fn row_json(row: &[Cell], mask: &Mask) -> String {
    let mut out = String::from("[");
    for (index, cell) in row.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_cell(&mut out, cell, mask);
    }
    out.push(']');
    out
}

fn write_cell(out: &mut String, cell: &Cell, mask: &Mask) {
    match cell {
        Cell::Null => out.push_str("null"),
        Cell::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Cell::Int(value) => out.push_str(&value.to_string()),
        Cell::Float(value) => write_json_float(out, *value),
        Cell::Text(text) => write_json_string(out, &mask(text), JsonStyle::COMPACT),
        Cell::Bytes(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            write_json_string(out, &mask(&text), JsonStyle::COMPACT);
        }
        Cell::Json(value) => {
            write_json(out, &masked(value.clone(), mask), JsonStyle::COMPACT);
        }
        Cell::List(cells) => out.push_str(&row_json(cells, mask)),
        Cell::Object(entries) => {
            let mut object = Object::default();
            for (name, cell) in entries {
                let mut json = String::new();
                write_cell(&mut json, cell, mask);
                object.raw(&mask(name), &json);
            }
            out.push_str(&object.close());
        }
    }
}

/// A JSON object written in order. Values are text already, because floats here may be `NaN`, which no JSON value is.
#[derive(Default)]
struct Object(String);

impl Object {
    fn raw(&mut self, key: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        write_json_string(&mut self.0, key, JsonStyle::COMPACT);
        self.0.push(':');
        self.0.push_str(json);
    }

    fn text(&mut self, key: &str, text: &str) {
        let mut json = String::new();
        write_json_string(&mut json, text, JsonStyle::COMPACT);
        self.raw(key, &json);
    }

    fn close(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;

    fn plain() -> Mask {
        Arc::new(str::to_owned)
    }

    fn numbers(count: i64) -> ResultSet {
        ResultSet {
            columns: vec!["n".to_owned()],
            rows: (1..=count).map(|n| vec![Cell::Int(n)]).collect(),
            total_rows: None,
        }
    }

    fn shown(result: &ResultSet, max_rows: i64, max_result_bytes: i64) -> String {
        render(
            result,
            QueryLimits {
                max_rows,
                max_result_bytes,
            },
            &plain(),
        )
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        let result = ResultSet {
            columns: vec!["a".to_owned(), "a".to_owned()],
            rows: vec![vec![
                Cell::Bytes(vec![0, 0xff, b'A']),
                Cell::Float(f64::NEG_INFINITY),
            ]],
            total_rows: None,
        };
        assert_eq!(
            shown(&result, 50, 65_536),
            "{\"columns\":[\"a\",\"a\"],\"rows\":[[\"\\u0000\u{fffd}A\",-Infinity]],\"row_count\":1}"
        );
    }

    #[test]
    fn one_row_too_many_says_how_many_are_shown() {
        assert_eq!(
            shown(&numbers(2), 1, 65_536),
            "{\"columns\":[\"n\"],\"rows\":[[1]],\"row_count\":1,\"truncated\":true,\"truncated_by\":\"max_rows\",\
             \"hint\":\"Only the first 1 rows are shown. Filter or aggregate in SQL rather than paging through the \
             result.\"}"
        );
    }

    #[test]
    fn the_byte_budget_stops_before_the_first_row_that_does_not_fit() {
        // 5 bytes of names, 3 a row, 1 a comma: two rows fill 12 bytes.
        assert!(shown(&numbers(3), 50, 12).contains("\"rows\":[[1],[2]],\"row_count\":2"));
        assert!(shown(&numbers(3), 50, 11).contains("Stopped after 1 row: the next row"));
        assert!(shown(&numbers(3), 50, 5).contains("The first row alone exceeds"));
        assert_eq!(
            shown(&numbers(3), 50, 4),
            "{\"column_count\":1,\"rows\":[],\"row_count\":0,\"truncated\":true,\
             \"truncated_by\":\"max_result_bytes\",\"hint\":\"This query returns 1 column, whose names alone exceed \
             max_result_bytes (4). Select the specific columns you need instead of all of them.\"}"
        );
    }

    #[test]
    fn both_limits_at_once_are_told_as_the_byte_limit() {
        assert!(shown(&numbers(3), 2, 8).contains("\"truncated_by\":\"max_result_bytes\""));
    }

    #[test]
    fn secrets_are_masked_before_they_are_counted() {
        let mask: Mask = Arc::new(|text| text.replace("pass\"word", "***"));
        let result = ResultSet {
            columns: vec!["a".to_owned()],
            rows: vec![vec![Cell::Text("pass\"word".to_owned())]],
            total_rows: None,
        };
        let limits = QueryLimits {
            max_rows: 1,
            max_result_bytes: 12,
        };
        assert_eq!(
            render(&result, limits, &mask),
            "{\"columns\":[\"a\"],\"rows\":[[\"***\"]],\"row_count\":1}"
        );
    }
}
