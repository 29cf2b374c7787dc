//! Iceberg tables: the current snapshot's data files, read by DataFusion's own Parquet scan.
//!
//! Only what is needed to read is here: the metadata file, the manifests, and the mapping of columns by their ids. A
//! table that can't be read rightly with that (delete files, formats and types that are not known) is an error, never
//! wrong rows.

mod catalog;
mod field_ids;
mod files;
mod manifest;
mod metadata;
mod provider;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStore;
use serde_json::Value;

pub(super) use self::provider::{IcebergFile, IcebergTable};

use self::files::TableFiles;
use self::manifest::ManifestFile;
use self::metadata::TableMetadata;
use super::source::{DataSourceConfig, StorageType};
use super::stores::{self, StoreRefusal};
use crate::airflow::config::Environment;
use crate::hook::object_store::{Location, Scheme, StoreError};
use crate::hook::{ConnectionError, ConnectionSource};

/// Manifests that are read at a time.
const MANIFESTS_AT_ONCE: usize = 16;

/// Why an Iceberg table can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum IcebergError {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Refusal(#[from] StoreRefusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Catalog(String),
    #[error("{file} can't be read: {source}")]
    Read {
        file: String,
        source: object_store::Error,
    },
    #[error("the table's metadata is not as the Iceberg specification says: {0}")]
    Metadata(String),
    #[error("the manifest {file} is not as the Iceberg specification says: {reason}")]
    Manifest { file: String, reason: String },
    #[error(
        "{0} has no native counterpart here: send the task to a queue that a Python worker serves"
    )]
    Unsupported(String),
    #[error(
        "the table has rows that are deleted by a file of their own ({0}), which is not followed here. Rewrite its data \
         files (compaction), or send the task to a queue that a Python worker serves"
    )]
    Deletes(String),
    #[error(
        "the table names the file {file}, which is not read for a table in {home}: write the table's files to its own \
         store"
    )]
    Elsewhere { file: String, home: String },
    #[error(
        "there is no Iceberg table at {0}: its folder `metadata` holds no file that ends in .metadata.json"
    )]
    NoTable(String),
}

/// A table as it is now.
pub(super) struct CurrentTable {
    pub schema: SchemaRef,
    pub files: Vec<IcebergFile>,
    /// The store that the files are in, and the root to find it by; `None` for local files.
    pub store: Option<(String, Arc<dyn ObjectStore>)>,
}

/// Finds a table through its catalog or at its path, and lists its files.
pub(super) async fn open(
    source: &DataSourceConfig,
    connections: &dyn ConnectionSource,
    environment: &Environment,
) -> Result<CurrentTable, IcebergError> {
    let (metadata, files) = match StorageType::of_uri(&source.uri) {
        Some(storage) => at_path(source, storage, connections, environment).await?,
        None => {
            let connection = connections.connection(&source.conn_id).await?;
            let namespace = source.db_name.as_deref().unwrap_or_default();
            let named = source.options.get("catalog_table_name");
            let name = named.and_then(Value::as_str).unwrap_or(&source.table_name);
            let found = catalog::load(&connection, namespace, name).await?;
            let home = match (found.metadata_location.as_str(), &found.metadata) {
                ("", Some(metadata)) => metadata.get("location").and_then(Value::as_str),
                (location, _) => Some(location),
            };
            let home = Location::parse(home.unwrap_or_default())?;
            let files = TableFiles::of_properties(found.properties, home, environment);
            let metadata = match found.metadata {
                Some(metadata) => metadata,
                None => files.read_json(&found.metadata_location).await?,
            };
            (metadata, files)
        }
    };
    current(&TableMetadata::read(metadata)?, files).await
}

async fn at_path<'a>(
    source: &DataSourceConfig,
    storage: StorageType,
    connections: &dyn ConnectionSource,
    environment: &'a Environment,
) -> Result<(Value, TableFiles<'a>), IcebergError> {
    let connection = match storage {
        StorageType::Local => None,
        _ => Some(stores::connection(&source.conn_id, connections, environment).await?),
    };
    let home = Location::parse(&source.uri)?;
    let files = TableFiles::of_connection(connection, home, environment);
    let file = match source.uri.ends_with(".metadata.json") {
        true => source.uri.clone(),
        false => files.newest_metadata(&source.uri).await?,
    };
    let metadata = files.read_json(&file).await?;
    Ok((metadata, files))
}

async fn current(
    metadata: &TableMetadata,
    files: TableFiles<'_>,
) -> Result<CurrentTable, IcebergError> {
    let schema = metadata.arrow_schema()?;
    let manifests = match metadata.snapshot()? {
        None => Vec::new(),
        Some(snapshot) => match &snapshot.manifest_list {
            Some(list) => {
                manifest::on_thread(list, files.read(list).await?, manifest::read_list).await?
            }
            None => snapshot
                .manifests
                .iter()
                .map(|path| ManifestFile {
                    path: path.clone(),
                    lists_deletes: false,
                })
                .collect(),
        },
    };
    let files_ref = &files;
    let lists = manifests.into_iter().map(|file| async move {
        let bytes = files_ref.read(&file.path).await?;
        let listed = manifest::on_thread(&file.path, bytes, manifest::read_files).await?;
        match listed.first() {
            Some(deletes) if file.lists_deletes => Err(IcebergError::Deletes(deletes.path.clone())),
            _ => Ok(listed),
        }
    });
    let lists: Vec<_> = futures::stream::iter(lists)
        .buffered(MANIFESTS_AT_ONCE)
        .boxed()
        .try_collect()
        .await?;
    let mut found = Vec::new();
    let mut root: Option<Location> = None;
    for file in lists.into_iter().flatten() {
        let location = files.locate(&file.path)?;
        if let Some(root) = &root
            && root.root() != location.root()
        {
            return Err(IcebergError::Unsupported(format!(
                "a table with data files in {} and in {}",
                root.root(),
                location.root()
            )));
        }
        found.push(IcebergFile {
            location: location.object_path()?,
            record_count: file.record_count,
            size: file.size,
        });
        root.get_or_insert(location);
    }
    let store = match root.filter(|root| root.scheme != Scheme::File) {
        Some(location) => Some((location.root(), files.store(&location).await?)),
        None => None,
    };
    tracing::debug!("{} has {} data files", metadata.location, found.len());
    Ok(CurrentTable {
        schema,
        files: found,
        store,
    })
}
