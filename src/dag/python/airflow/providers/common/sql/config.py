"""Where data for SQL over files is."""

from enum import Enum

from updraft_record import REQUIRED, Fresh, Record


class FormatType(str, Enum):
    """Formats of files."""

    PARQUET = "parquet"
    CSV = "csv"
    AVRO = "avro"
    ICEBERG = "iceberg"


class StorageType(str, Enum):
    """Kinds of stores."""

    S3 = "s3"
    LOCAL = "local"
    GCS = "gcs"
    AZURE = "azure"


class ConnectionConfig(Record):
    """A connection with what its store needs."""

    _positional = {"conn_id": REQUIRED, "credentials": Fresh(dict), "extra_config": Fresh(dict)}


_TABLE_PROVIDERS = frozenset({"iceberg"})
_SCHEMES = {
    "s3": StorageType.S3,
    "file": StorageType.LOCAL,
    "gs": StorageType.GCS,
    "az": StorageType.AZURE,
    "abfs": StorageType.AZURE,
    "abfss": StorageType.AZURE,
}


class DataSourceConfig(Record):
    """A table over files or in a catalog."""

    _positional = {
        "conn_id": REQUIRED,
        "table_name": REQUIRED,
        "uri": "",
        "format": "",
        "db_name": None,
        "storage_type": None,
        "options": Fresh(dict),
    }

    def _made(self):
        if not self.table_name or not self.table_name.strip():
            raise ValueError("Table name must be provided for storage type")
        if self.is_table_provider:
            if self.db_name is None:
                raise ValueError(f"Database name must be provided for table providers {_TABLE_PROVIDERS}")
            return
        if not self.format and not self.uri:
            return
        if not self.uri:
            raise ValueError("URI must be provided when format is set")
        if self.storage_type is None:
            self.storage_type = _SCHEMES.get(self.uri.partition("://")[0])
            if self.storage_type is None:
                raise ValueError(f"Unsupported storage type for URI: {self.uri}")

    @property
    def is_table_provider(self):
        """Does the table come from a catalog?"""
        return bool(self.format) and self.format.lower() in _TABLE_PROVIDERS
