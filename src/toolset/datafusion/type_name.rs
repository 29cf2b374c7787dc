//! Arrow types under the names that pyarrow prints, because `get_schema` shows those.

use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit, UnionMode};

/// `str(pyarrow_schema)`: a line for each column, and below it those of the fields within.
pub(super) fn schema_text(schema: &Schema) -> String {
    let mut lines = Vec::new();
    for column in schema.fields() {
        lines.push(field(column));
        add_children(column.data_type(), 2, &mut lines);
    }
    lines.join("\n")
}

fn add_children(data_type: &DataType, indent: usize, lines: &mut Vec<String>) {
    let children: Vec<&Field> = match data_type {
        DataType::List(item)
        | DataType::ListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::LargeList(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => vec![item],
        DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, item)| item.as_ref()).collect(),
        _ => Vec::new(),
    };
    for (index, child) in children.into_iter().enumerate() {
        let name = field(child);
        lines.push(format!("{:indent$}child {index}, {name}", ""));
        add_children(child.data_type(), indent + 4, lines);
    }
}

/// `str(pyarrow_type)`.
pub(in crate::toolset) fn python_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "null".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Int8 => "int8".to_owned(),
        DataType::Int16 => "int16".to_owned(),
        DataType::Int32 => "int32".to_owned(),
        DataType::Int64 => "int64".to_owned(),
        DataType::UInt8 => "uint8".to_owned(),
        DataType::UInt16 => "uint16".to_owned(),
        DataType::UInt32 => "uint32".to_owned(),
        DataType::UInt64 => "uint64".to_owned(),
        DataType::Float16 => "halffloat".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Timestamp(unit, None) => format!("timestamp[{}]", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => {
            format!("timestamp[{}, tz={zone}]", unit_name(*unit))
        }
        DataType::Date32 => "date32[day]".to_owned(),
        DataType::Date64 => "date64[ms]".to_owned(),
        DataType::Time32(unit) => format!("time32[{}]", unit_name(*unit)),
        DataType::Time64(unit) => format!("time64[{}]", unit_name(*unit)),
        DataType::Duration(unit) => format!("duration[{}]", unit_name(*unit)),
        DataType::Interval(IntervalUnit::YearMonth) => "month_interval".to_owned(),
        DataType::Interval(IntervalUnit::DayTime) => "day_time_interval".to_owned(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "month_day_nano_interval".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::FixedSizeBinary(width) => format!("fixed_size_binary[{width}]"),
        DataType::LargeBinary => "large_binary".to_owned(),
        DataType::BinaryView => "binary_view".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::LargeUtf8 => "large_string".to_owned(),
        DataType::Utf8View => "string_view".to_owned(),
        DataType::List(item) => format!("list<{}>", field(item)),
        DataType::ListView(item) => format!("list_view<{}>", field(item)),
        DataType::FixedSizeList(item, len) => format!("fixed_size_list<{}>[{len}]", field(item)),
        DataType::LargeList(item) => format!("large_list<{}>", field(item)),
        DataType::LargeListView(item) => format!("large_list_view<{}>", field(item)),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|item| field(item)).collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::Union(fields, mode) => {
            let kind = match mode {
                UnionMode::Sparse => "sparse_union",
                UnionMode::Dense => "dense_union",
            };
            let fields: Vec<_> = fields
                .iter()
                .map(|(id, item)| format!("{}={id}", field(item)))
                .collect();
            format!("{kind}<{}>", fields.join(", "))
        }
        DataType::Dictionary(keys, values) => format!(
            "dictionary<values={}, indices={}, ordered=0>",
            python_name(values),
            python_name(keys)
        ),
        DataType::Decimal32(precision, scale) => format!("decimal32({precision}, {scale})"),
        DataType::Decimal64(precision, scale) => format!("decimal64({precision}, {scale})"),
        DataType::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        DataType::Decimal256(precision, scale) => format!("decimal256({precision}, {scale})"),
        DataType::Map(entries, sorted) => map(entries, *sorted),
        DataType::RunEndEncoded(ends, values) => format!(
            "run_end_encoded<run_ends: {}, values: {}>",
            python_name(ends.data_type()),
            python_name(values.data_type())
        ),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn field(field: &Field) -> String {
    let not_null = if field.is_nullable() { "" } else { " not null" };
    format!(
        "{}: {}{not_null}",
        field.name(),
        python_name(field.data_type())
    )
}

/// The names of a map's fields show only where they are not the usual ones.
fn map(entries: &Field, sorted: bool) -> String {
    let DataType::Struct(fields) = entries.data_type() else {
        return format!("map<{}>", field(entries));
    };
    let unusual = |name: &str, usual: &[&str]| {
        if usual.contains(&name) {
            String::new()
        } else {
            format!(" ('{name}')")
        }
    };
    let parts: Vec<_> = fields
        .iter()
        .zip(["key", "value"])
        .map(|(item, usual)| {
            let name = unusual(item.name(), &[usual]);
            format!("{}{name}", python_name(item.data_type()))
        })
        .collect();
    let sorted = if sorted { ", keys_sorted" } else { "" };
    // The second one is what files have.
    let name = unusual(entries.name(), &["entries", "key_value"]);
    format!("map<{}{sorted}{name}>", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_schema_lists_what_is_within_its_columns_below_them_as_pyarrow_does() {
        let inner = Field::new("z", DataType::Utf8, true);
        let item = Field::new("item", DataType::Struct(vec![inner].into()), true);
        let list = Field::new("y", DataType::List(Arc::new(item)), true);
        let fields = vec![Field::new("x", DataType::Int8, true), list];
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("c", DataType::Utf8, false),
            Field::new("d", DataType::Struct(fields.into()), true),
        ]);
        let text = "a: int64\n\
             c: string not null\n\
             d: struct<x: int8, y: list<item: struct<z: string>>>\n  \
               child 0, x: int8\n  \
               child 1, y: list<item: struct<z: string>>\n      \
                   child 0, item: struct<z: string>\n          \
                       child 0, z: string";
        assert_eq!(schema_text(&schema), text);
    }

    #[test]
    fn types_have_the_names_that_pyarrow_prints() {
        let item = |data_type, nullable| Arc::new(Field::new("item", data_type, nullable));
        let key = Field::new("key", DataType::Utf8, false);
        let value = Field::new("value", DataType::Int64, true);
        let entries = |name: &str, key: &Field| {
            let fields = vec![key.clone(), value.clone()];
            Arc::new(Field::new(name, DataType::Struct(fields.into()), false))
        };
        let cases = [
            (DataType::Float16, "halffloat"),
            (DataType::Float64, "double"),
            (DataType::Utf8View, "string_view"),
            (DataType::Decimal128(38, 10), "decimal128(38, 10)"),
            (DataType::Date32, "date32[day]"),
            (
                DataType::Timestamp(TimeUnit::Nanosecond, None),
                "timestamp[ns]",
            ),
            (
                DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())),
                "timestamp[us, tz=Europe/Berlin]",
            ),
            (
                DataType::List(item(DataType::Int64, true)),
                "list<item: int64>",
            ),
            (
                DataType::FixedSizeList(item(DataType::Int32, false), 2),
                "fixed_size_list<item: int32 not null>[2]",
            ),
            (
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                "dictionary<values=string, indices=int32, ordered=0>",
            ),
            (
                DataType::Map(entries("entries", &key), false),
                "map<string, int64>",
            ),
            (
                DataType::Map(
                    entries("pairs", &Field::new("k", DataType::Utf8, false)),
                    true,
                ),
                "map<string ('k'), int64, keys_sorted ('pairs')>",
            ),
        ];
        for (data_type, name) in cases {
            assert_eq!(python_name(&data_type), name);
        }
    }
}
