"""Operators that skip what comes after them."""

from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions._internal.logging_mixin import LoggingMixin

# The XCom by which the scheduler knows again what was skipped when a task is cleared.
_KEY = "skipmixin_key"


class SkipMixin(LoggingMixin):
    """Skips downstream tasks."""

    inherits_from_skipmixin = True

    def skip(self, ti, tasks):
        """Skips the given tasks."""
        ids = [task.task_id for task in tasks if getattr(task, "is_operator", False)]
        if not ids:
            return
        if getattr(self, "task_id", None) is not None:
            ti.xcom_push(key=_KEY, value={"skipped": ids})
        _skip(ids, ti.map_index)

    def skip_all_except(self, ti, branch_task_ids):
        """Skips every direct downstream task but the given ones and those that come after these."""
        from airflow.sdk.exceptions import AirflowException

        chosen = _ids(branch_task_ids)
        self.log.info("Following branch %s", chosen)
        dag = ti.task.dag
        unknown = chosen - set(dag.task_ids)
        if unknown:
            raise AirflowException(
                f"'branch_task_ids' must contain only valid task_ids. Invalid tasks found: {unknown}."
            )
        downstream = [task for task in ti.task.downstream_list if getattr(task, "is_operator", False)]
        if not downstream:
            return
        for task_id in list(chosen):
            chosen.update(dag.get_task(task_id).get_flat_relative_ids(upstream=False))
        skipped = [(task.task_id, ti.map_index) for task in downstream if task.task_id not in chosen]
        self.log.info("Skipping tasks %s", skipped)
        followed = [task.task_id for task in downstream if task.task_id in chosen]
        ti.xcom_push(key=_KEY, value={"followed": followed})
        _skip(skipped, ti.map_index)


def _ids(chosen):
    from airflow.sdk.exceptions import AirflowException

    if chosen is None:
        return set()
    if isinstance(chosen, str):
        return {chosen}
    if not hasattr(type(chosen), "__iter__"):
        raise AirflowException(
            f"'branch_task_ids' must be either None, a task ID, or an Iterable of IDs, but got "
            f"{type(chosen).__name__!r}."
        )
    chosen = list(chosen)
    wrong = [(item, type(item).__name__) for item in chosen if not isinstance(item, str)]
    if wrong:
        raise AirflowException(f"the branch function must give the ids of tasks, and gave {wrong}")
    return set(chosen)


def _skip(tasks, map_index):
    # Of a mapped task the scheduler skips what follows by the XCom: it is not expanded yet.
    if tasks and map_index == -1:
        from airflow.sdk.exceptions import DownstreamTasksSkipped

        raise DownstreamTasksSkipped(tasks=tasks)


class BranchMixIn(SkipMixin):
    """Follows chosen downstream tasks and skips the others."""

    def do_branch(self, context, branches_to_execute):
        """Skips every direct downstream task but the given ones; a task group stands for its first tasks."""
        self.log.info("Branch into %s", branches_to_execute)
        ti = context["ti"]
        chosen = branches_to_execute
        if chosen is not None:
            if isinstance(chosen, str) or not hasattr(type(chosen), "__iter__"):
                chosen = [chosen]
            chosen = [task_id for branch in chosen for task_id in self._first_tasks(ti.task.dag, branch)]
        self.skip_all_except(ti, chosen)
        return branches_to_execute

    def _first_tasks(self, dag, branch):
        group = dag.task_group_dict.get(branch) if isinstance(branch, str) else None
        if group is None:
            return [branch]
        ids = [root.task_id for root in group.roots]
        self.log.info("Expanding task group %s into %s", group.group_id, ids)
        return ids


class BaseBranchOperator(BaseOperator, BranchMixIn):
    """Chooses downstream tasks by `choose_branch`."""

    _updraft_kind = "python"
    _updraft_needs = "choose_branch"
    _updraft_reason = "this kind of branching is not run natively yet"

    def choose_branch(self, context):
        """The ids of the tasks to follow."""
        raise NotImplementedError

    def execute(self, context):
        """Follows the chosen tasks."""
        return self.do_branch(context, self.choose_branch(context))
