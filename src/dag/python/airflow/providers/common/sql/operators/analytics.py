"""`AnalyticsOperator`: SQL over files."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class AnalyticsOperator(BaseOperator):
    """Runs queries on files and object stores."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("datasource_configs", "queries", "max_rows_check", "result_output_format")

    def __init__(
        self, datasource_configs, queries, max_rows_check=100, engine=None, result_output_format="tabulate", **kwargs
    ):
        super().__init__(**kwargs)
        hold(self, locals())
