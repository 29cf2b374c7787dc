//! What a Dag says of a table: `DataSourceConfig`.

use serde_json::{Map, Value};

/// The arguments of `DataSourceConfig`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataSourceConfig {
    /// Not looked up for local files.
    pub conn_id: String,
    /// The table's name in queries; for Iceberg also its name in the catalog.
    pub table_name: String,
    /// One file, or a folder with a slash at the end.
    pub uri: String,
    /// `parquet`, `csv`, `avro`, `json` or `iceberg`, in any case.
    pub format: String,
    /// Iceberg: the table's namespace.
    pub db_name: Option<String>,
    /// `s3`, `gcs`, `azure` or `local`; `None`: what the scheme of `uri` says.
    pub storage_type: Option<String>,
    /// What the Python engine passes to its `register_...` method, as JSON; a pyarrow type is `{"pyarrow": "int32()"}`.
    pub options: Map<String, Value>,
}

/// A file format by the name that a Dag gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFormatName {
    Parquet,
    Csv,
    Avro,
    /// One JSON object a line. The Python engine does not have it.
    Json,
}

impl FileFormatName {
    pub fn of(format: &str) -> Option<Self> {
        match format.to_lowercase().as_str() {
            "parquet" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            "avro" => Some(Self::Avro),
            "json" | "jsonl" | "ndjson" => Some(Self::Json),
            _ => None,
        }
    }

    /// As Python prints the member of its `FormatType`.
    pub fn python_name(self) -> &'static str {
        match self {
            Self::Parquet => "FormatType.PARQUET",
            Self::Csv => "FormatType.CSV",
            Self::Avro => "FormatType.AVRO",
            Self::Json => "FormatType.JSON",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Parquet => "Parquet",
            Self::Csv => "CSV",
            Self::Avro => "Avro",
            Self::Json => "JSON lines",
        }
    }

    /// The method of the Python engine whose arguments the options are.
    pub fn register_method(self) -> &'static str {
        match self {
            Self::Parquet => "register_parquet",
            Self::Csv => "register_csv",
            Self::Avro => "register_avro",
            Self::Json => "register_json",
        }
    }
}

/// Where the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StorageType {
    S3,
    Gcs,
    Azure,
    Local,
}

impl StorageType {
    const ALL: [(Self, &'static str, &'static [&'static str]); 4] = [
        (Self::S3, "s3", &["s3://"]),
        (Self::Gcs, "gcs", &["gs://"]),
        (Self::Azure, "azure", &["az://", "abfs://", "abfss://"]),
        (Self::Local, "local", &["file://"]),
    ];

    pub fn of_uri(uri: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, _, schemes)| schemes.iter().any(|scheme| uri.starts_with(scheme)))
            .map(|(storage, ..)| *storage)
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known, _)| *known == name)
            .map(|(storage, ..)| *storage)
    }

    /// As Python prints the member of its `StorageType`.
    pub fn python_name(self) -> &'static str {
        match self {
            Self::S3 => "StorageType.S3",
            Self::Gcs => "StorageType.GCS",
            Self::Azure => "StorageType.AZURE",
            Self::Local => "StorageType.LOCAL",
        }
    }
}

/// A `DataSourceConfig` that can't be: the texts are Python's `ValueError`s.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataSourceError {
    #[error("Table name must be provided for storage type")]
    NoTableName,
    #[error("Database name must be provided for table providers frozenset({{'iceberg'}})")]
    NoDatabaseName,
    #[error("URI must be provided when format is set")]
    NoUri,
    #[error("Unsupported storage type for URI: {0}")]
    UnknownScheme(String),
    #[error("Unsupported storage type: {0}. Use one of s3, gcs, azure, local, or leave it out.")]
    UnknownStorageType(String),
}

impl DataSourceConfig {
    /// Does the table come from a catalog?
    pub(super) fn is_table_provider(&self) -> bool {
        self.format.eq_ignore_ascii_case("iceberg")
    }

    /// Where the table's files are; `None` for a table of a catalog and for one that is no file at all.
    pub(super) fn storage(&self) -> Result<Option<StorageType>, DataSourceError> {
        if self.is_table_provider() || (self.uri.is_empty() && self.format.is_empty()) {
            return Ok(None);
        }
        match &self.storage_type {
            Some(name) => StorageType::named(name)
                .ok_or_else(|| DataSourceError::UnknownStorageType(name.clone())),
            None => StorageType::of_uri(&self.uri)
                .ok_or_else(|| DataSourceError::UnknownScheme(self.uri.clone())),
        }
        .map(Some)
    }

    /// What the Python class checks when it is made.
    pub(super) fn check(&self) -> Result<(), DataSourceError> {
        if self.table_name.trim().is_empty() {
            return Err(DataSourceError::NoTableName);
        }
        if self.is_table_provider() {
            return match self.db_name {
                Some(_) => Ok(()),
                None => Err(DataSourceError::NoDatabaseName),
            };
        }
        if self.uri.is_empty() && !self.format.is_empty() {
            return Err(DataSourceError::NoUri);
        }
        self.storage().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, format: &str) -> DataSourceConfig {
        DataSourceConfig {
            conn_id: "c".to_owned(),
            table_name: "t".to_owned(),
            uri: uri.to_owned(),
            format: format.to_owned(),
            ..DataSourceConfig::default()
        }
    }

    #[test]
    fn what_python_refuses_is_refused_with_its_words() {
        let mut nameless = source("file:///x.csv", "csv");
        nameless.table_name = " ".to_owned();
        let cases = [
            (nameless, "Table name must be provided for storage type"),
            (
                source("", "Iceberg"),
                "Database name must be provided for table providers frozenset({'iceberg'})",
            ),
            (source("", "csv"), "URI must be provided when format is set"),
            (
                source("http://x", "csv"),
                "Unsupported storage type for URI: http://x",
            ),
        ];
        for (config, expected) in cases {
            assert_eq!(config.check().unwrap_err().to_string(), expected);
        }
        assert_eq!(source("", "").check(), Ok(()));
    }

    #[test]
    fn the_scheme_says_where_files_are_unless_the_dag_does() {
        let cases = [
            ("s3://b/k", StorageType::S3),
            ("gs://b/k", StorageType::Gcs),
            ("abfss://c@a.dfs.core.windows.net/k", StorageType::Azure),
            ("file:///k", StorageType::Local),
        ];
        for (uri, expected) in cases {
            assert_eq!(source(uri, "csv").storage(), Ok(Some(expected)));
        }
        let mut given = source("x://b/k", "csv");
        given.storage_type = Some("s3".to_owned());
        assert_eq!(given.storage(), Ok(Some(StorageType::S3)));
    }
}
