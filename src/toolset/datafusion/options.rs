//! The `options` of a source: the arguments of the Python engine's `register_...` methods.

use std::str::FromStr as _;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::TableOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::options::{
    AvroReadOptions, CsvReadOptions, JsonReadOptions, ParquetReadOptions, ReadOptions as _,
};
use datafusion::datasource::listing::ListingOptions;
use datafusion::logical_expr::SortExpr;
use datafusion::prelude::{SessionConfig, ident};
use serde_json::{Map, Value};

use super::source::FileFormatName;

/// Rows that a schema is read from.
const INFER_RECORDS: usize = 1000;

/// An option that can't be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum OptionError {
    #[error("SessionContext.{method}() got an unexpected keyword argument '{name}'")]
    Unknown { method: &'static str, name: String },
    #[error("argument '{name}': '{given}' object cannot be converted to '{wanted}'")]
    Type {
        name: &'static str,
        given: &'static str,
        wanted: &'static str,
    },
    #[error("Delimiter must be a single character")]
    Delimiter,
    #[error("file_compression_type must one of: gzip, bz2, xz, zstd")]
    Compression,
    #[error(
        "Unsupported literal data type '{0}' for partition column. Supported types are 'string' and 'int'"
    )]
    PartitionType(String),
    #[error(
        "table_partition_cols must be a list of (name, type): [(\"year\", \"int\")], types 'string', 'int' or one of \
         pyarrow's without arguments"
    )]
    Partitions,
    #[error("file_sort_order must be lists of column names here: [[\"day\", \"id\"]]")]
    SortOrder,
    #[error(
        "the option schema needs pyarrow, which a Dag does not have here. Leave it out: the schema is read from the files"
    )]
    Schema,
}

/// How the files of a table are found and read.
#[derive(Clone, Debug)]
pub(super) struct FileOptions {
    pub format: FileFormatName,
    /// Files with other endings are not looked at.
    pub file_extension: String,
    pub partition_columns: Vec<(String, DataType)>,
    sort_order: Vec<Vec<String>>,
    pruning: bool,
    skip_metadata: bool,
    pub has_header: bool,
    delimiter: u8,
    infer_records: usize,
    compression: FileCompressionType,
}

impl FileOptions {
    /// Reads the options of a `DataSourceConfig`.
    pub fn read(
        format: FileFormatName,
        uri: &str,
        options: &Map<String, Value>,
    ) -> Result<Self, OptionError> {
        let mut read = Self {
            format,
            file_extension: default_extension(format, uri).to_owned(),
            partition_columns: Vec::new(),
            sort_order: Vec::new(),
            pruning: true,
            skip_metadata: true,
            has_header: true,
            delimiter: b',',
            infer_records: INFER_RECORDS,
            compression: FileCompressionType::UNCOMPRESSED,
        };
        for (name, value) in options {
            read.set(name, value)?;
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), OptionError> {
        use FileFormatName::{Csv, Json, Parquet};

        let unset = value.is_null();
        match (name, self.format) {
            ("schema", _) if unset => {}
            ("schema", _) => return Err(OptionError::Schema),
            ("file_extension", _) => {
                self.file_extension = text("file_extension", value)?.to_owned()
            }
            ("table_partition_cols", _) if unset => {}
            ("table_partition_cols", _) => self.partition_columns = partition_columns(value)?,
            ("parquet_pruning", Parquet) => self.pruning = flag("parquet_pruning", value)?,
            ("skip_metadata", Parquet) => self.skip_metadata = flag("skip_metadata", value)?,
            ("file_sort_order", Parquet) if unset => {}
            ("file_sort_order", Parquet) => self.sort_order = sort_order(value)?,
            ("has_header", Csv) => self.has_header = flag("has_header", value)?,
            ("delimiter", Csv) => {
                self.delimiter = match text("delimiter", value)?.as_bytes() {
                    [only] => *only,
                    _ => return Err(OptionError::Delimiter),
                };
            }
            ("schema_infer_max_records", Csv | Json) => {
                self.infer_records = value
                    .as_u64()
                    .and_then(|count| usize::try_from(count).ok())
                    .ok_or(OptionError::Type {
                        name: "schema_infer_max_records",
                        given: python_type(value),
                        wanted: "PyInt",
                    })?;
            }
            ("file_compression_type", Csv | Json) if unset => {}
            ("file_compression_type", Csv | Json) => {
                let name = text("file_compression_type", value)?;
                self.compression =
                    FileCompressionType::from_str(name).map_err(|_| OptionError::Compression)?;
            }
            _ => {
                return Err(OptionError::Unknown {
                    method: self.format.register_method(),
                    name: name.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// For DataFusion.
    pub fn listing(&self, config: &SessionConfig, table_options: TableOptions) -> ListingOptions {
        let partitions = self.partition_columns.clone();
        match self.format {
            FileFormatName::Parquet => ParquetReadOptions::new()
                .parquet_pruning(self.pruning)
                .skip_metadata(self.skip_metadata)
                .file_extension(&self.file_extension)
                .table_partition_cols(partitions)
                .file_sort_order(self.sort_expressions())
                .to_listing_options(config, table_options),
            FileFormatName::Csv => self
                .csv(self.infer_records)
                .to_listing_options(config, table_options),
            FileFormatName::Json => JsonReadOptions::default()
                .schema_infer_max_records(self.infer_records)
                .file_extension(&self.file_extension)
                .file_compression_type(self.compression)
                .table_partition_cols(partitions)
                .to_listing_options(config, table_options),
            FileFormatName::Avro => AvroReadOptions {
                file_extension: &self.file_extension,
                ..AvroReadOptions::default()
            }
            .table_partition_cols(partitions)
            .to_listing_options(config, table_options),
        }
    }

    /// For DataFusion; `infer_records` rows are looked at for the types of the columns.
    pub fn csv(&self, infer_records: usize) -> CsvReadOptions<'_> {
        CsvReadOptions::new()
            .has_header(self.has_header)
            .delimiter(self.delimiter)
            .schema_infer_max_records(infer_records)
            .file_extension(&self.file_extension)
            .file_compression_type(self.compression)
            .table_partition_cols(self.partition_columns.clone())
            // A file is not cut in the middle of a quoted line break.
            .newlines_in_values(true)
    }

    fn sort_expressions(&self) -> Vec<Vec<SortExpr>> {
        let sorted = |names: &Vec<String>| {
            let keys = names.iter();
            keys.map(|name| ident(name).sort(true, true)).collect()
        };
        self.sort_order.iter().map(sorted).collect()
    }
}

/// The ending of the format; one file of JSON lines may have its own.
fn default_extension(format: FileFormatName, uri: &str) -> &'static str {
    match format {
        FileFormatName::Parquet => ".parquet",
        FileFormatName::Csv => ".csv",
        FileFormatName::Avro => ".avro",
        FileFormatName::Json => [".jsonl", ".ndjson"]
            .into_iter()
            .find(|ending| uri.ends_with(ending))
            .unwrap_or(".json"),
    }
}

fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

fn text<'a>(name: &'static str, value: &'a Value) -> Result<&'a str, OptionError> {
    value.as_str().ok_or(OptionError::Type {
        name,
        given: python_type(value),
        wanted: "PyString",
    })
}

fn flag(name: &'static str, value: &Value) -> Result<bool, OptionError> {
    value.as_bool().ok_or(OptionError::Type {
        name,
        given: python_type(value),
        wanted: "PyBool",
    })
}

fn partition_columns(value: &Value) -> Result<Vec<(String, DataType)>, OptionError> {
    let columns = value.as_array().ok_or(OptionError::Partitions)?;
    columns
        .iter()
        .map(|column| match column.as_array().map(Vec::as_slice) {
            Some([Value::String(name), Value::String(kind)]) => match kind.as_str() {
                "string" => Ok((name.clone(), DataType::Utf8)),
                "int" => Ok((name.clone(), DataType::Int32)),
                other => Err(OptionError::PartitionType(other.to_owned())),
            },
            Some([Value::String(name), Value::Object(object)]) => {
                let kind = object.get("pyarrow").and_then(Value::as_str);
                let kind = kind.and_then(pyarrow_type).ok_or(OptionError::Partitions)?;
                Ok((name.clone(), kind))
            }
            _ => Err(OptionError::Partitions),
        })
        .collect()
}

/// The types that pyarrow makes without arguments.
fn pyarrow_type(call: &str) -> Option<DataType> {
    Some(match call.strip_suffix("()")? {
        "bool_" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "string" | "utf8" => DataType::Utf8,
        "large_string" | "large_utf8" => DataType::LargeUtf8,
        "string_view" => DataType::Utf8View,
        "date32" => DataType::Date32,
        "date64" => DataType::Date64,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    })
}

fn sort_order(value: &Value) -> Result<Vec<Vec<String>>, OptionError> {
    let keys = |value: &Value| {
        let names = value.as_array()?.iter();
        names
            .map(|name| name.as_str().map(ToOwned::to_owned))
            .collect::<Option<Vec<_>>>()
    };
    let orders = value.as_array().ok_or(OptionError::SortOrder)?;
    orders
        .iter()
        .map(|order| keys(order).ok_or(OptionError::SortOrder))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(format: FileFormatName, options: Value) -> Result<FileOptions, OptionError> {
        let Value::Object(options) = options else {
            unreachable!("the tests give objects")
        };
        FileOptions::read(format, "file:///d/", &options)
    }

    #[test]
    fn options_that_python_refuses_are_refused_with_its_words() {
        let cases = [
            (
                json!({"delim": ";"}),
                "SessionContext.register_csv() got an unexpected keyword argument 'delim'",
            ),
            (
                json!({"delimiter": ";;"}),
                "Delimiter must be a single character",
            ),
            (
                json!({"has_header": "yes"}),
                "argument 'has_header': 'str' object cannot be converted to 'PyBool'",
            ),
            (
                json!({"file_compression_type": "zap"}),
                "file_compression_type must one of: gzip, bz2, xz, zstd",
            ),
            (
                json!({"table_partition_cols": [["year", "float"]]}),
                "Unsupported literal data type 'float' for partition column. Supported types are 'string' and 'int'",
            ),
        ];
        for (options, expected) in cases {
            let error = read(FileFormatName::Csv, options).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn partition_columns_are_given_by_name_or_by_a_pyarrow_type() {
        let options =
            json!({"table_partition_cols": [["year", "int"], ["day", {"pyarrow": "date32()"}]]});
        let read = read(FileFormatName::Parquet, options).unwrap();
        assert_eq!(
            read.partition_columns,
            [
                ("year".to_owned(), DataType::Int32),
                ("day".to_owned(), DataType::Date32)
            ]
        );
    }
}
