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
        fault = self._fault()
        if fault is not None:
            raise ValueError(fault)

    def _fault(self):
        """What is wrong with the arguments. Finds the kind of store by the address where it is not given."""
        if not (self.table_name or "").strip():
            return "Table name must be provided for storage type"
        if self.is_table_provider:
            lacking = f"Database name must be provided for table providers {_TABLE_PROVIDERS}"
            return lacking if self.db_name is None else None
        if self.format and not self.uri:
            return "URI must be provided when format is set"
        if self.uri and self.storage_type is None:
            scheme = self.uri.partition("://")[0]
            if scheme not in _SCHEMES:
                return f"Unsupported storage type for URI: {self.uri}"
            self.storage_type = _SCHEMES[scheme]
        return None

    @property
    def is_table_provider(self):
        """Does the table come from a catalog?"""
        return bool(self.format) and self.format.lower() in _TABLE_PROVIDERS

    def _updraft_spec(self):
        from updraft_values import argument

        return {
            "conn_id": self.conn_id,
            "table_name": self.table_name,
            "uri": self.uri,
            "format": self.format,
            "db_name": self.db_name,
            "storage_type": argument(self.storage_type),
            "options": [[name, argument(value)] for name, value in (self.options or {}).items()],
        }
