"""`SmoothOperator`: a joke of the standard provider."""

from airflow.sdk.bases.operator import BaseOperator


class SmoothOperator(BaseOperator):
    """Logs a link."""

    _updraft_reason = "it is not run natively"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
