"""`EmptyOperator`: does nothing."""

from airflow.sdk.bases.operator import BaseOperator


class EmptyOperator(BaseOperator):
    """Does nothing; joins and splits paths of a Dag."""

    _updraft_kind = "empty"
    ui_color = "#e8f7e4"
    inherits_from_empty_operator = True

    def execute(self, context):
        """Nothing."""
