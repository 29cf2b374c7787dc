"""`BranchDayOfWeekOperator`: branches by the day of the week."""

from airflow.sdk.bases.branch import BaseBranchOperator
from updraft_hold import hold


class BranchDayOfWeekOperator(BaseBranchOperator):
    """Follows one of two paths by the day of the week."""

    def __init__(
        self, *, follow_task_ids_if_true, follow_task_ids_if_false, week_day, use_task_logical_date=False, **kwargs
    ):
        super().__init__(**kwargs)
        hold(self, locals())
