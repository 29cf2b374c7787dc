"""`BranchDateTimeOperator`: branches by the time."""

from airflow.sdk.bases.branch import BaseBranchOperator
from updraft_hold import hold


class BranchDateTimeOperator(BaseBranchOperator):
    """Follows one of two paths by the time."""

    def __init__(
        self,
        *,
        follow_task_ids_if_true,
        follow_task_ids_if_false,
        target_lower,
        target_upper,
        use_task_logical_date=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
