//! A table over files: which files, and one schema for all of them.
//!
//! DataFusion reads the schemas of a table's files itself, but says neither which file it could not read nor which two
//! do not fit. Here each file's schema is read on its own, so that an error can name it.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, ScalarValue, TableReference};
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use reqwest::Url;

use super::naming::NamingFormat;
use super::options::FileOptions;
use super::source::FileFormatName;
use super::type_name::python_name;

/// Why a source's files make no table. The text stands behind `Failed to register ... data source: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ListingError {
    #[error("File path '{path}' does not match the expected extension '{extension}'")]
    Extension { path: String, extension: String },
    #[error(
        "the file {file} can't be read as {format}: {reason}. Move it away, or name another uri or format."
    )]
    File {
        file: String,
        format: &'static str,
        reason: String,
    },
    #[error(
        "the column {column:?} of the file {file} is {kind}, and {other_kind} in {other}. The files of one table need \
         one schema: name another uri, or register them as two tables."
    )]
    ColumnType {
        file: String,
        column: String,
        kind: String,
        other: String,
        other_kind: String,
    },
    #[error(
        "the file {file} has other columns ({columns}) than {other} ({other_columns}). The files of one table need one \
         schema: name another uri, or register them as two tables."
    )]
    ColumnNames {
        file: String,
        columns: String,
        other: String,
        other_columns: String,
    },
    #[error(
        "the file {file} is not where table_partition_cols says: folders like {expected} lead to every file of the table"
    )]
    Partition { file: String, expected: String },
    #[error(
        "the column {0:?} of table_partition_cols is in the files as well: leave it out of table_partition_cols"
    )]
    PartitionInFile(String),
    #[error("{}", .0.strip_backtrace())]
    Engine(#[from] DataFusionError),
}

/// The files of a table, with the schema they are read by.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    url: ListingTableUrl,
    options: ListingOptions,
    pub format: FileFormatName,
    /// Without partition columns.
    pub file_schema: SchemaRef,
}

impl Listing {
    /// Looks for the files and reads their schemas. No file at all is a table without columns, as for Python.
    pub async fn open(
        context: &SessionContext,
        name: &TableReference,
        place: &Place,
        file_options: &FileOptions,
    ) -> Result<Self, ListingError> {
        let url = place.url.clone().with_table_ref(name.clone());
        if !url.is_collection() && !url.as_str().ends_with(&file_options.file_extension) {
            return Err(ListingError::Extension {
                path: url.as_str().to_owned(),
                extension: file_options.file_extension.clone(),
            });
        }
        let mut options =
            file_options.listing(&context.copied_config(), context.copied_table_options());
        // The scan of Parquet is another machine; its files were all opened when their schemas were read.
        if file_options.format != FileFormatName::Parquet {
            let format = NamingFormat::new(Arc::clone(&options.format), &place.shown_root);
            options.format = Arc::new(format);
        }
        let state = context.state();
        let store = state.runtime_env().object_store(&url)?;
        let mut files: Vec<ObjectMeta> = url
            .list_all_files(&state, store.as_ref(), &options.file_extension)
            .await?
            .try_collect()
            .await?;
        files.sort_unstable_by(|one, other| one.location.cmp(&other.location));
        check_partitions(place, &files, &file_options.partition_columns)?;
        let file_schema =
            infer_schema(&state, &store, place, &options, file_options, files).await?;
        let doubled = file_options
            .partition_columns
            .iter()
            .find(|(column, _)| file_schema.field_with_name(column).is_ok());
        if let Some((column, _)) = doubled {
            return Err(ListingError::PartitionInFile(column.clone()));
        }
        Ok(Self {
            url,
            options,
            format: file_options.format,
            file_schema,
        })
    }

    /// The table for DataFusion.
    pub fn table(&self, context: &SessionContext) -> Result<Arc<ListingTable>, DataFusionError> {
        let config = ListingTableConfig::new(self.url.clone())
            .with_listing_options(self.options.clone())
            .with_schema(Arc::clone(&self.file_schema));
        let statistics = context
            .runtime_env()
            .cache_manager
            .get_file_statistic_cache();
        Ok(Arc::new(
            ListingTable::try_new(config)?.with_cache(statistics),
        ))
    }

    /// The same files with one column read as text.
    pub fn with_text_column(&self, index: usize) -> Self {
        let fields = self.file_schema.fields().iter().enumerate();
        let fields: Vec<_> = fields
            .map(|(at, field)| {
                if at == index {
                    Arc::new(Field::new(field.name(), DataType::Utf8, true))
                } else {
                    Arc::clone(field)
                }
            })
            .collect();
        Self {
            file_schema: Arc::new(Schema::new(fields)),
            ..self.clone()
        }
    }
}

/// Where a table's files are, for DataFusion and for people.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub url: ListingTableUrl,
    /// What stands before a file's path in its store: `/`, `s3://bucket/`.
    shown_root: String,
}

impl Place {
    /// On the worker's disk. A path is taken as it is written where there is something: `%` and `#` mean nothing in a
    /// file's name. A folder needs no slash at its end.
    pub fn local(uri: &str) -> Result<Self, DataFusionError> {
        let path = std::path::Path::new(uri.strip_prefix("file://").unwrap_or(uri));
        let url = match path.metadata() {
            Ok(metadata) if metadata.is_dir() => Url::from_directory_path(path).ok(),
            Ok(_) => Url::from_file_path(path).ok(),
            Err(_) => None,
        };
        let url = match url {
            Some(url) => ListingTableUrl::try_new(url, None)?,
            None => ListingTableUrl::parse(uri)?,
        };
        Ok(Self {
            url,
            shown_root: "/".to_owned(),
        })
    }

    /// In the store that is registered under `root`. A `#` or `?` is part of the key; `%20` is a space, as for Python.
    pub fn remote(root: &str, path: &str, shown_root: &str) -> Result<Self, DataFusionError> {
        let path = path.replace('#', "%23").replace('?', "%3F");
        Ok(Self {
            url: ListingTableUrl::parse(format!("{root}{path}"))?,
            shown_root: format!("{shown_root}/"),
        })
    }

    /// A file of the place's store, as a person names it.
    fn shown(&self, location: &Path) -> String {
        format!("{}{location}", self.shown_root)
    }
}

/// DataFusion passes over files outside the folders of the partition columns, and their rows would be missing.
fn check_partitions(
    place: &Place,
    files: &[ObjectMeta],
    columns: &[(String, DataType)],
) -> Result<(), ListingError> {
    if columns.is_empty() {
        return Ok(());
    }
    for file in files {
        let mut folders = place.url.strip_prefix(&file.location).into_iter().flatten();
        let fits = columns.iter().all(|(column, kind)| {
            let value = folders
                .next()
                .and_then(|folder| folder.split_once('='))
                .filter(|(name, _)| name == column)
                .map(|(_, value)| percent_encoding::percent_decode_str(value).decode_utf8_lossy());
            value
                .is_some_and(|value| ScalarValue::try_from_string(value.into_owned(), kind).is_ok())
        });
        if !fits {
            let expected: Vec<_> = columns
                .iter()
                .map(|(column, kind)| format!("{column}=<{}>", python_name(kind)))
                .collect();
            return Err(ListingError::Partition {
                file: place.shown(&file.location),
                expected: format!("{}/", expected.join("/")),
            });
        }
    }
    Ok(())
}

async fn infer_schema(
    state: &SessionState,
    store: &Arc<dyn ObjectStore>,
    place: &Place,
    options: &ListingOptions,
    file_options: &FileOptions,
    files: Vec<ObjectMeta>,
) -> Result<SchemaRef, ListingError> {
    let concurrency = state
        .config_options()
        .execution
        .meta_fetch_concurrency
        .get();
    // Empty files say nothing of a schema, and some formats can't read them.
    let files = files.into_iter().filter(|file| file.size > 0);
    let schemas = files.map(|file| async move {
        let schema = options
            .format
            .infer_schema(state, store, std::slice::from_ref(&file))
            .await
            .map_err(|error| ListingError::File {
                file: place.shown(&file.location),
                format: file_options.format.title(),
                reason: error.strip_backtrace(),
            })?;
        Ok::<_, ListingError>((file.location, schema))
    });
    let mut schemas = futures::stream::iter(schemas).buffered(concurrency).boxed();
    let mut merged = Merged::new(place, file_options);
    while let Some((location, schema)) = schemas.try_next().await? {
        merged.add(&location, &schema)?;
    }
    Ok(merged.schema())
}

/// One schema out of many.
struct Merged<'a> {
    place: &'a Place,
    options: &'a FileOptions,
    /// Each with the file that had it first.
    fields: Vec<(Field, Path)>,
    last: Option<SchemaRef>,
}

impl<'a> Merged<'a> {
    fn new(place: &'a Place, options: &'a FileOptions) -> Self {
        Self {
            place,
            options,
            fields: Vec::new(),
            last: None,
        }
    }

    fn add(&mut self, location: &Path, schema: &SchemaRef) -> Result<(), ListingError> {
        if self.last.as_ref().is_some_and(|last| last == schema) {
            return Ok(());
        }
        let first = self.last.replace(Arc::clone(schema)).is_none();
        if first {
            let fields = schema.fields().iter();
            self.fields = fields
                .map(|field| (field.as_ref().clone(), location.clone()))
                .collect();
            return Ok(());
        }
        // CSV has columns by position: the names must be the same ones.
        if self.options.format == FileFormatName::Csv {
            self.check_names(location, schema)?;
        }
        for (known, _) in &mut self.fields {
            if schema.field_with_name(known.name()).is_err() {
                known.set_nullable(true);
            }
        }
        for field in schema.fields() {
            let known = self
                .fields
                .iter_mut()
                .find(|(known, _)| known.name() == field.name());
            match known {
                None => {
                    let field = field.as_ref().clone().with_nullable(true);
                    self.fields.push((field, location.clone()));
                }
                Some((known, origin)) => {
                    if !merge(known, field, self.options.format) {
                        return Err(ListingError::ColumnType {
                            file: self.place.shown(location),
                            column: field.name().clone(),
                            kind: python_name(field.data_type()),
                            other: self.place.shown(origin),
                            other_kind: python_name(known.data_type()),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn check_names(&self, location: &Path, schema: &SchemaRef) -> Result<(), ListingError> {
        let ours = self.fields.iter().map(|(field, _)| field.name());
        if ours
            .clone()
            .eq(schema.fields().iter().map(|field| field.name()))
        {
            return Ok(());
        }
        let list = |names: Vec<&String>| {
            let names: Vec<_> = names.into_iter().map(String::as_str).collect();
            names.join(", ")
        };
        let other = self.fields.first().map(|(_, origin)| origin);
        Err(ListingError::ColumnNames {
            file: self.place.shown(location),
            columns: list(schema.fields().iter().map(|field| field.name()).collect()),
            other: other.map_or_else(String::new, |other| self.place.shown(other)),
            other_columns: list(ours.collect()),
        })
    }

    fn schema(self) -> SchemaRef {
        let format = self.options.format;
        let fields = self.fields.into_iter().map(|(field, _)| {
            // A column that was empty in the rows that were looked at: read as null it would stay so for all rows.
            if format == FileFormatName::Csv && field.data_type() == &DataType::Null {
                field.with_data_type(DataType::Utf8)
            } else {
                field
            }
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

/// Makes `known` fit `other` as well, if that can be. What CSV and JSON columns hold is a guess from their first rows.
fn merge(known: &mut Field, other: &Field, format: FileFormatName) -> bool {
    let (one, two) = (known.data_type(), other.data_type());
    let widened = match (format, one, two) {
        _ if one == two => None,
        (FileFormatName::Csv | FileFormatName::Json, DataType::Null, _) => Some(two.clone()),
        (FileFormatName::Csv | FileFormatName::Json, _, DataType::Null) => Some(one.clone()),
        (
            FileFormatName::Csv | FileFormatName::Json,
            DataType::Int64 | DataType::Float64,
            DataType::Int64 | DataType::Float64,
        ) => Some(DataType::Float64),
        (FileFormatName::Csv, ..) => Some(DataType::Utf8),
        _ => None,
    };
    match widened {
        Some(data_type) => {
            *known = known.clone().with_data_type(data_type);
            true
        }
        None => known.try_merge(other).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_a_store_may_hold_what_would_end_a_path() {
        for (path, key) in [
            ("/a b/#1?.csv", "a b/#1?.csv"),
            ("/100%.csv", "100%.csv"),
            ("/a%20b.csv", "a b.csv"),
        ] {
            let place = Place::remote("s3://b", path, "s3://b").unwrap();
            assert_eq!(place.url.prefix().as_ref(), key);
        }
    }
}
