"""`DataFusionToolset`: SQL over files."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_max_retries


class DataFusionToolset(AirflowToolset):
    """Runs queries on files and object stores."""

    def __init__(
        self,
        datasource_configs,
        *,
        allow_writes=False,
        max_rows=50,
        max_result_bytes=65536,
        max_columns=100,
        max_retries=None,
    ):
        check_max_retries(max_retries)
        if not datasource_configs:
            raise ValueError("datasource_configs must contain at least one DataSourceConfig")
        self._datasource_configs = datasource_configs
        self._allow_writes = allow_writes
        self._max_rows = max_rows
        self._max_result_bytes = max_result_bytes
        self._max_columns = max_columns
        self._max_retries = max_retries

    @property
    def id(self):
        """`sql_datafusion_` and the tables."""
        tables = (config.table_name.replace("-", "_") for config in self._datasource_configs)
        return f"sql_datafusion_{'_'.join(tables)}"
