//! Manifests: Avro files that list other files.

use datafusion::arrow::array::types::{Int32Type, Int64Type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, RecordBatch, StructArray};
use serde_json::Value;

use super::IcebergError;
use crate::hook::blocking;
use crate::toolset::avro_file::{AvroFile, AvroFileError};

/// A line of a manifest list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ManifestFile {
    pub path: String,
    /// Does it list files with rows to leave out?
    pub lists_deletes: bool,
}

/// A data file of the current snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataFile {
    pub path: String,
    pub record_count: u64,
    pub size: u64,
}

/// Reads a manifest or a list of them away from the task's own thread: the reader may take its time, and may panic at
/// what is damaged.
pub(super) async fn on_thread<T: Send + 'static>(
    file: &str,
    bytes: Vec<u8>,
    read: fn(&str, &[u8]) -> Result<T, IcebergError>,
) -> Result<T, IcebergError> {
    let name = file.to_owned();
    let done = blocking::run(move || read(&name, &bytes)).await;
    done.unwrap_or_else(|error| {
        Err(IcebergError::Manifest {
            file: file.to_owned(),
            reason: format!("its reader failed: {error}"),
        })
    })
}

/// Reads a manifest list.
pub(super) fn read_list(file: &str, bytes: &[u8]) -> Result<Vec<ManifestFile>, IcebergError> {
    let mut manifests = Vec::new();
    for batch in batches(file, bytes)? {
        let columns = Columns {
            file,
            of: &StructArray::from(batch),
        };
        let paths = columns.text("manifest_path")?;
        // Version 1 knows no delete files.
        let content = columns.optional("content");
        for row in 0..columns.of.len() {
            manifests.push(ManifestFile {
                path: paths.value(row),
                lists_deletes: content
                    .as_ref()
                    .is_some_and(|content| int(content, row) == Some(1)),
            });
        }
    }
    Ok(manifests)
}

/// The files that a manifest adds or keeps.
///
/// # Errors
/// For delete files: rows would be shown that the table does not have any more.
pub(super) fn read_files(file: &str, bytes: &[u8]) -> Result<Vec<DataFile>, IcebergError> {
    /// The status of an entry whose file is gone.
    const DELETED: i64 = 2;

    let mut files = Vec::new();
    for batch in batches(file, bytes)? {
        let entries = Columns {
            file,
            of: &StructArray::from(batch),
        };
        let status = entries.column("status")?;
        let data_file = entries.column("data_file")?;
        let data_file = data_file
            .as_struct_opt()
            .ok_or_else(|| entries.wrong("data_file is no record"))?;
        let data_file = Columns {
            file,
            of: data_file,
        };
        let (paths, formats) = (data_file.text("file_path")?, data_file.text("file_format")?);
        let (counts, sizes) = (
            data_file.column("record_count")?,
            data_file.column("file_size_in_bytes")?,
        );
        let content = data_file.optional("content");
        for row in 0..entries.of.len() {
            if int(&status, row) == Some(DELETED) {
                continue;
            }
            let path = paths.value(row);
            if content
                .as_ref()
                .is_some_and(|content| int(content, row).is_some_and(|kind| kind != 0))
            {
                return Err(IcebergError::Deletes(path));
            }
            if !formats.value(row).eq_ignore_ascii_case("parquet") {
                return Err(IcebergError::Unsupported(format!(
                    "the format {} of the data file {path}",
                    formats.value(row)
                )));
            }
            let number = |column: &ArrayRef| {
                int(column, row)
                    .and_then(|number| u64::try_from(number).ok())
                    .ok_or_else(|| data_file.wrong("a count or size is missing"))
            };
            files.push(DataFile {
                record_count: number(&counts)?,
                size: number(&sizes)?,
                path,
            });
        }
    }
    Ok(files)
}

/// The fields that are read, of manifest lists and of manifests.
const WANTED: [&str; 8] = [
    "manifest_path",
    "content",
    "status",
    "data_file",
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
];

fn batches(file: &str, bytes: &[u8]) -> Result<Vec<RecordBatch>, IcebergError> {
    let wrong = |error: AvroFileError| IcebergError::Manifest {
        file: file.to_owned(),
        reason: error.to_string(),
    };
    let avro = AvroFile::open(bytes).map_err(wrong)?;
    let mut schema = avro.schema.clone();
    keep_wanted(&mut schema);
    let blocks = avro.blocks.iter();
    blocks
        .filter_map(|block| avro.rows(block, block.rows, Some(&schema)).transpose())
        .collect::<Result<_, _>>()
        .map_err(wrong)
}

/// Statistics and partition values are most of a manifest, and the record of partition values may have no fields, which
/// the reader does not take.
fn keep_wanted(schema: &mut Value) {
    let Some(fields) = schema.get_mut("fields").and_then(Value::as_array_mut) else {
        return;
    };
    fields.retain(|field| {
        let name = field.get("name").and_then(Value::as_str);
        name.is_some_and(|name| WANTED.contains(&name))
    });
    for field in fields {
        if let Some(inner) = field.get_mut("type") {
            keep_wanted(inner);
        }
    }
}

/// The columns of a manifest by name.
struct Columns<'a> {
    file: &'a str,
    of: &'a StructArray,
}

impl Columns<'_> {
    fn wrong(&self, reason: impl Into<String>) -> IcebergError {
        IcebergError::Manifest {
            file: self.file.to_owned(),
            reason: reason.into(),
        }
    }

    fn optional(&self, name: &str) -> Option<ArrayRef> {
        self.of.column_by_name(name).cloned()
    }

    fn column(&self, name: &str) -> Result<ArrayRef, IcebergError> {
        self.optional(name)
            .ok_or_else(|| self.wrong(format!("{name} is missing")))
    }

    fn text(&self, name: &str) -> Result<Texts, IcebergError> {
        let column = self.column(name)?;
        if column.as_string_opt::<i32>().is_none() {
            return Err(self.wrong(format!("{name} is no text")));
        }
        Ok(Texts(column))
    }
}

struct Texts(ArrayRef);

impl Texts {
    fn value(&self, row: usize) -> String {
        let texts = self.0.as_string_opt::<i32>();
        texts.map_or_else(String::new, |texts| texts.value(row).to_owned())
    }
}

fn int(column: &ArrayRef, row: usize) -> Option<i64> {
    if column.is_null(row) {
        return None;
    }
    column
        .as_primitive_opt::<Int32Type>()
        .map(|numbers| i64::from(numbers.value(row)))
        .or_else(|| {
            column
                .as_primitive_opt::<Int64Type>()
                .map(|numbers| numbers.value(row))
        })
}
