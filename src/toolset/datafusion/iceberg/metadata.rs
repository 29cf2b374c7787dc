//! The metadata file of a table: the current schema, and where the current snapshot's manifests are.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit,
};
use datafusion::parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde::Deserialize;
use serde_json::Value;

use super::IcebergError;

/// The fields of a table's metadata that reading needs (table spec, "Table Metadata Fields").
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct TableMetadata {
    format_version: u32,
    pub location: String,
    #[serde(default)]
    current_schema_id: Option<i64>,
    #[serde(default)]
    schemas: Vec<IcebergSchema>,
    /// Version 1 had one schema.
    #[serde(default)]
    schema: Option<IcebergSchema>,
    #[serde(default)]
    current_snapshot_id: Option<i64>,
    #[serde(default)]
    snapshots: Vec<Snapshot>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct IcebergSchema {
    #[serde(default)]
    schema_id: Option<i64>,
    fields: Vec<IcebergField>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct IcebergField {
    id: i64,
    name: String,
    required: bool,
    #[serde(rename = "type")]
    kind: Value,
    #[serde(default)]
    initial_default: Option<Value>,
}

/// A state of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Snapshot {
    snapshot_id: i64,
    #[serde(default)]
    pub manifest_list: Option<String>,
    /// Version 1 could name the manifests themselves.
    #[serde(default)]
    pub manifests: Vec<String>,
}

impl TableMetadata {
    /// Reads a metadata file.
    pub fn read(metadata: Value) -> Result<Self, IcebergError> {
        let read: Self = serde_json::from_value(metadata)
            .map_err(|error| IcebergError::Metadata(error.to_string()))?;
        // Version 3 adds types and deletion vectors. Both are refused where they are met.
        if read.format_version > 3 {
            return Err(IcebergError::Unsupported(format!(
                "format version {}",
                read.format_version
            )));
        }
        Ok(read)
    }

    /// The current snapshot; `None` for a table that nothing was written to.
    pub fn snapshot(&self) -> Result<Option<&Snapshot>, IcebergError> {
        // Some writers say -1 where there is none.
        let Some(current) = self.current_snapshot_id.filter(|id| *id != -1) else {
            return Ok(None);
        };
        self.snapshots
            .iter()
            .find(|snapshot| snapshot.snapshot_id == current)
            .map(Some)
            .ok_or_else(|| IcebergError::Metadata(format!("there is no snapshot {current}")))
    }

    /// The current schema, with the id of each field in its metadata.
    pub fn arrow_schema(&self) -> Result<SchemaRef, IcebergError> {
        let of_version_1 = self.schema.as_ref().filter(|schema| {
            self.current_schema_id.is_none() || schema.schema_id == self.current_schema_id
        });
        let current = self
            .schemas
            .iter()
            .find(|schema| schema.schema_id == self.current_schema_id)
            .or(of_version_1)
            .ok_or_else(|| {
                let id = self.current_schema_id;
                let id = id.map_or_else(|| "without an id".to_owned(), |id| id.to_string());
                IcebergError::Metadata(format!("there is no schema {id}, the current one"))
            })?;
        Ok(Arc::new(Schema::new(fields(&current.fields)?)))
    }
}

fn fields(of: &[IcebergField]) -> Result<Fields, IcebergError> {
    let fields = of.iter().map(|item| {
        if item
            .initial_default
            .as_ref()
            .is_some_and(|value| !value.is_null())
        {
            return Err(IcebergError::Unsupported(format!(
                "the default value of column {:?}",
                item.name
            )));
        }
        field(item.id, &item.name, &item.kind, item.required)
    });
    fields.collect()
}

fn field(id: i64, name: &str, kind: &Value, required: bool) -> Result<FieldRef, IcebergError> {
    let field = Field::new(name, data_type(name, kind)?, !required);
    let ids = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
    Ok(Arc::new(field.with_metadata(ids)))
}

fn data_type(name: &str, kind: &Value) -> Result<DataType, IcebergError> {
    let unknown = || IcebergError::Unsupported(format!("the type {kind} of column {name:?}"));
    if let Value::String(primitive) = kind {
        return primitive_type(primitive).ok_or_else(unknown);
    }
    let id = |key: &str| kind.get(key).and_then(Value::as_i64).ok_or_else(unknown);
    let part = |key: &str| kind.get(key).ok_or_else(unknown);
    let required = |key: &str| kind.get(key).and_then(Value::as_bool).unwrap_or(false);
    match kind.get("type").and_then(Value::as_str) {
        Some("struct") => {
            let of: Vec<IcebergField> = serde_json::from_value(part("fields")?.clone())
                .map_err(|error| IcebergError::Metadata(error.to_string()))?;
            Ok(DataType::Struct(fields(&of)?))
        }
        Some("list") => Ok(DataType::List(field(
            id("element-id")?,
            "element",
            part("element")?,
            required("element-required"),
        )?)),
        Some("map") => {
            let entries = Fields::from(vec![
                field(id("key-id")?, "key", part("key")?, true)?,
                field(
                    id("value-id")?,
                    "value",
                    part("value")?,
                    required("value-required"),
                )?,
            ]);
            let entries = Field::new("entries", DataType::Struct(entries), false);
            Ok(DataType::Map(Arc::new(entries), false))
        }
        _ => Err(unknown()),
    }
}

fn primitive_type(name: &str) -> Option<DataType> {
    Some(match name {
        "boolean" => DataType::Boolean,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "timestamptz_ns" => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        "string" => DataType::Utf8,
        "binary" => DataType::Binary,
        "uuid" => DataType::FixedSizeBinary(16),
        _ => {
            let (kind, inside) = name.split_once(['(', '['])?;
            let inside = inside.trim_end_matches([')', ']']);
            match kind {
                "fixed" => DataType::FixedSizeBinary(inside.parse().ok()?),
                "decimal" => {
                    let (precision, scale) = inside.split_once(',')?;
                    DataType::Decimal128(precision.trim().parse().ok()?, scale.trim().parse().ok()?)
                }
                _ => return None,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(kind: Value) -> TableMetadata {
        let schema = json!({
            "schema-id": 7, "type": "struct",
            "fields": [{"id": 3, "name": "c", "required": true, "type": kind}],
        });
        let metadata = json!({
            "format-version": 2, "location": "s3://b/t", "current-schema-id": 7, "schemas": [schema],
            "current-snapshot-id": -1, "properties": {"x": "y"},
        });
        TableMetadata::read(metadata).unwrap()
    }

    #[test]
    fn a_schema_keeps_the_ids_of_its_fields_at_every_depth() {
        let list = json!({"type": "list", "element-id": 4, "element": "decimal(10, 2)", "element-required": false});
        let schema = metadata(list).arrow_schema().unwrap();
        let column = schema.field(0);
        assert_eq!(column.metadata()[PARQUET_FIELD_ID_META_KEY], "3");
        assert!(!column.is_nullable());
        let DataType::List(element) = column.data_type() else {
            panic!("a list becomes a list")
        };
        assert_eq!(element.metadata()[PARQUET_FIELD_ID_META_KEY], "4");
        assert_eq!(element.data_type(), &DataType::Decimal128(10, 2));
    }

    #[test]
    fn what_can_not_be_read_rightly_is_refused() {
        let error = metadata(json!("variant")).arrow_schema().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the type \"variant\" of column \"c\"")
        );
        let future = json!({"format-version": 4, "location": "s3://b/t"});
        assert!(
            TableMetadata::read(future)
                .unwrap_err()
                .to_string()
                .contains("format version 4")
        );
    }

    #[test]
    fn no_other_schema_is_taken_for_the_current_one() {
        let schema = |id: Value| json!({"schema-id": id, "type": "struct", "fields": []});
        let read = |current: Value, schemas: Value, alone: Value| {
            let metadata = json!({
                "format-version": 1, "location": "s3://b/t", "current-schema-id": current, "schemas": schemas,
                "schema": alone,
            });
            let read = TableMetadata::read(metadata).unwrap().arrow_schema();
            read.map(|_| ()).map_err(|error| error.to_string())
        };
        let none = Value::Null;
        assert_eq!(
            read(json!(1), json!([schema(json!(1))]), none.clone()),
            Ok(())
        );
        assert_eq!(read(none.clone(), json!([]), schema(none.clone())), Ok(()));
        assert_eq!(read(json!(1), json!([]), schema(json!(1))), Ok(()));
        for (current, told) in [(json!(2), "2"), (none.clone(), "without an id")] {
            let error = read(current, json!([schema(json!(1))]), none.clone()).unwrap_err();
            assert!(
                error.contains(&format!("there is no schema {told}")),
                "{error}"
            );
        }
        assert!(read(json!(2), json!([]), schema(json!(1))).is_err());
    }

    #[test]
    fn a_table_that_was_never_written_to_has_no_snapshot() {
        assert!(metadata(json!("long")).snapshot().unwrap().is_none());
    }
}
