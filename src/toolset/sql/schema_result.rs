//! The result of `get_schema` as JSON: the columns, or a summary when they are too many.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Mask, masked};
use crate::airflow::python_text::{JsonStyle, casefold, dumps, repr_str};
use crate::hook::Column;

/// Types in a histogram; the rest is summed.
const HISTOGRAM_TYPES: usize = 20;
/// Columns in a summary's preview.
const SAMPLE_COLUMNS: usize = 20;

/// How many columns, and bytes of JSON, the model is shown.
#[derive(Clone, Copy, Debug)]
pub(in crate::toolset) struct SchemaLimits {
    pub max_columns: i64,
    pub max_result_bytes: i64,
}

/// All columns whose name contains `name_contains`, if that fits.
pub(in crate::toolset) fn render(
    columns: &[Column],
    limits: SchemaLimits,
    name_contains: Option<&str>,
    mask: &Mask,
) -> String {
    let total = count(columns.len());
    let selected: Vec<&Column> = match name_contains {
        None => columns.iter().collect(),
        Some(filter) => {
            let needle = casefold(filter);
            columns
                .iter()
                .filter(|column| casefold(&column.name).contains(&needle))
                .collect()
        }
    };
    let print = |value: &Value| dumps(&masked(value.clone(), mask), JsonStyle::COMPACT);
    if let Some(filter) = name_contains.filter(|_| selected.is_empty()) {
        return print(&json!({
            "columns": [],
            "column_count": 0,
            "name_contains": filter,
            "total_columns": total,
            "hint": no_match_hint(filter, total, limits.max_columns),
        }));
    }
    let listed: Vec<Value> = selected.iter().map(|column| entry(column)).collect();
    let mut full = Map::new();
    full.insert("columns".to_owned(), listed.clone().into());
    full.insert("column_count".to_owned(), count(listed.len()).into());
    add_filter(&mut full, name_contains, total);
    if count(listed.len()) <= limits.max_columns {
        let text = print(&full.into());
        if count(text.len()) <= limits.max_result_bytes {
            return text;
        }
    }
    print(&summary(
        &listed,
        &selected,
        limits,
        name_contains,
        total,
        &print,
    ))
}

fn entry(column: &Column) -> Value {
    json!({"name": column.name, "type": column.type_text})
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn add_filter(object: &mut Map<String, Value>, name_contains: Option<&str>, total: i64) {
    if let Some(filter) = name_contains {
        object.insert("name_contains".to_owned(), filter.into());
        object.insert("total_columns".to_owned(), total.into());
    }
}

fn no_match_hint(filter: &str, total: i64, max_columns: i64) -> String {
    let filter = repr_str(filter);
    let plural = if total == 1 { "" } else { "s" };
    // A table too wide to list would only send the model back here.
    if total > max_columns {
        format!(
            "No columns match name_contains={filter}. Try a different substring (the table has {total} \
             column{plural}, too many to list in full)."
        )
    } else {
        format!(
            "No columns match name_contains={filter}. Call get_schema without name_contains to list all {total} \
             column{plural}."
        )
    }
}

/// The count and a hint always; a histogram and a sample of columns as far as the budget goes.
fn summary(
    listed: &[Value],
    selected: &[&Column],
    limits: SchemaLimits,
    name_contains: Option<&str>,
    total: i64,
    print: &dyn Fn(&Value) -> String,
) -> Value {
    let SchemaLimits {
        max_columns,
        max_result_bytes,
    } = limits;
    let n = count(listed.len());
    let plural = if n == 1 { "" } else { "s" };
    let subject = name_contains.map_or_else(
        || "This table has".to_owned(),
        |filter| format!("name_contains={} matched", repr_str(filter)),
    );
    let (truncated_by, reason) = if n > max_columns {
        (
            "max_columns",
            format!(
                "{subject} {n} column{plural}, more than the max_columns limit of {max_columns}."
            ),
        )
    } else {
        (
            "max_result_bytes",
            format!(
                "{subject} {n} column{plural} that did not fit max_result_bytes ({max_result_bytes})."
            ),
        )
    };
    let advice = if name_contains.is_some() {
        "Use a more specific name_contains substring to narrow to the columns you need."
    } else {
        "Call get_schema with a name_contains substring to return only the columns you need."
    };
    let mut object = Map::new();
    object.insert("column_count".to_owned(), n.into());
    object.insert("truncated".to_owned(), true.into());
    object.insert("truncated_by".to_owned(), truncated_by.into());
    object.insert("hint".to_owned(), format!("{reason} {advice}").into());
    add_filter(&mut object, name_contains, total);
    object.insert("type_histogram".to_owned(), histogram(selected));
    object.insert("sample_columns".to_owned(), json!([]));
    let size = |value: &Value| count(print(value).len());
    if size(&object.clone().into()) > max_result_bytes {
        object.shift_remove("type_histogram");
    }
    let mut budget = max_result_bytes - size(&object.clone().into());
    let mut sample = Vec::new();
    for column in listed.iter().take(SAMPLE_COLUMNS) {
        let cost = size(column) + i64::from(!sample.is_empty());
        // One column too large must not hide those behind it: a preview may have holes.
        if cost <= budget {
            budget -= cost;
            sample.push(column.clone());
        }
    }
    object.insert("sample_columns".to_owned(), sample.into());
    object.into()
}

/// Types by how often they occur, then by name.
fn histogram(selected: &[&Column]) -> Value {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for column in selected {
        *counts.entry(&column.type_text).or_default() += 1;
    }
    let mut ordered: Vec<(&str, i64)> = counts.into_iter().collect();
    ordered.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    let rest: i64 = ordered.iter().skip(HISTOGRAM_TYPES).map(|&(_, n)| n).sum();
    let mut object: Map<String, Value> = ordered
        .iter()
        .take(HISTOGRAM_TYPES)
        .map(|&(name, n)| (name.to_owned(), n.into()))
        .collect();
    if ordered.len() > HISTOGRAM_TYPES {
        object.insert("(other)".to_owned(), rest.into());
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;

    fn columns(count: usize) -> Vec<Column> {
        (0..count)
            .map(|n| Column {
                name: format!("col_{n:02}"),
                type_text: format!("VARCHAR({n})"),
            })
            .collect()
    }

    fn shown(columns: &[Column], max_columns: i64, bytes: i64, filter: Option<&str>) -> String {
        let mask: Mask = Arc::new(str::to_owned);
        render(
            columns,
            SchemaLimits {
                max_columns,
                max_result_bytes: bytes,
            },
            filter,
            &mask,
        )
    }

    #[test]
    fn a_filter_is_echoed_and_counted() {
        assert_eq!(
            shown(&columns(12), 100, 65_536, Some("COL_11")),
            r#"{"columns":[{"name":"col_11","type":"VARCHAR(11)"}],"column_count":1,"name_contains":"COL_11","total_columns":12}"#
        );
    }

    #[test]
    fn a_filter_that_matches_nothing_says_where_to_go() {
        assert!(shown(&columns(1), 100, 65_536, Some("zzz")).ends_with(
            r#""hint":"No columns match name_contains='zzz'. Call get_schema without name_contains to list all 1 column."}"#
        ));
    }

    #[test]
    fn a_wide_table_is_summarised_with_a_bounded_histogram() {
        let text = shown(&columns(30), 5, 65_536, None);
        let summary: Value = serde_json::from_str(&text).unwrap();
        let histogram = summary["type_histogram"].as_object().unwrap();
        assert_eq!(histogram.len(), 21);
        assert_eq!(histogram["(other)"], 10);
        assert_eq!(summary["sample_columns"].as_array().unwrap().len(), 20);
    }

    #[test]
    fn an_oversized_column_is_skipped_in_the_sample() {
        let mut table = columns(3);
        table[0].type_text = "X".repeat(500);
        let text = shown(&table, 2, 400, None);
        let summary: Value = serde_json::from_str(&text).unwrap();
        assert!(summary.get("type_histogram").is_none());
        assert_eq!(summary["sample_columns"][0]["name"], "col_01");
    }
}
