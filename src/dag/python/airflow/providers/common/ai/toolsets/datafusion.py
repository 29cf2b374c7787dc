"""`DataFusionToolset`: SQL over files."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_max_retries
from updraft_hold import hold


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
        hold(self, locals(), "_")

    @property
    def id(self):
        """`sql_datafusion_` and the tables."""
        tables = (config.table_name.replace("-", "_") for config in self._datasource_configs)
        return f"sql_datafusion_{'_'.join(tables)}"

    def _updraft_spec(self, describe):
        from airflow.providers.common.sql.config import DataSourceConfig

        strangers = [config for config in self._datasource_configs if not isinstance(config, DataSourceConfig)]
        if strangers:
            kind = f"DataFusionToolset over a {type(strangers[0]).__name__}"
            return {"unsupported": {"class": kind, "module": type(self).__module__}}
        return {
            "data_fusion": {
                "datasource_configs": [config._updraft_spec() for config in self._datasource_configs],
                "allow_writes": bool(self._allow_writes),
                "max_rows": int(self._max_rows),
                "max_result_bytes": int(self._max_result_bytes),
                "max_columns": int(self._max_columns),
                "max_retries": self._max_retries,
            }
        }
