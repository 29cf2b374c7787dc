"""`LatestOnlyOperator`: skips what comes after it in runs that are not the latest."""

from airflow.sdk.bases.branch import BaseBranchOperator


class LatestOnlyOperator(BaseBranchOperator):
    """Goes on only in the latest run."""
