"""Operators that skip what comes after them."""

from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions._internal.logging_mixin import LoggingMixin


class SkipMixin(LoggingMixin):
    """Skips downstream tasks."""

    inherits_from_skipmixin = True

    def skip(self, ti, tasks):
        """Skips the given tasks."""
        from airflow.sdk.exceptions import DownstreamTasksSkipped

        raise DownstreamTasksSkipped(tasks=[task.task_id for task in tasks])

    def skip_all_except(self, ti, branch_task_ids):
        """Skips every direct downstream task but the given ones."""
        from airflow.sdk.exceptions import DownstreamTasksSkipped

        chosen = [branch_task_ids] if isinstance(branch_task_ids, str) else list(branch_task_ids or ())
        raise DownstreamTasksSkipped(
            tasks=[task.task_id for task in ti.task.downstream_list if task.task_id not in chosen]
        )


class BranchMixIn(SkipMixin):
    """Follows chosen downstream tasks and skips the others."""

    def do_branch(self, context, branches_to_execute):
        """Skips every direct downstream task but the given ones."""
        self.skip_all_except(context["ti"], branches_to_execute)
        return branches_to_execute


class BaseBranchOperator(BaseOperator, BranchMixIn):
    """Chooses downstream tasks by `choose_branch`."""

    _updraft_reason = "branch operators are not run natively yet"

    def choose_branch(self, context):
        """The ids of the tasks to follow."""
        raise NotImplementedError

    def execute(self, context):
        """Follows the chosen tasks."""
        return self.do_branch(context, self.choose_branch(context))
