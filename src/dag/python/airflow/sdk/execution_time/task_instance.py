"""The running task and its run, as Dag code sees them."""

import _updraft
import updraft_values
from airflow.sdk.definitions._internal.node import NOTSET

_DATES = frozenset(
    (
        "start_date",
        "end_date",
        "logical_date",
        "execution_date",
        "data_interval_start",
        "data_interval_end",
        "run_after",
        "queued_at",
        "clear_number_date",
        "partition_date",
    )
)


class _Fields:
    """An object over the fields that the server sent; dates become pendulum's when they are asked for."""

    def __init__(self, fields):
        self.__dict__["_fields"] = fields

    def __getattr__(self, name):
        fields = self.__dict__.get("_fields", {})
        if name.startswith("__") or name not in fields:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = fields[name]
        if name in _DATES and isinstance(value, str):
            from updraft_context import moment

            value = moment(value)
        self.__dict__[name] = value
        return value


class DagRun(_Fields):
    """The run."""

    @property
    def conf(self):
        """What the run was triggered with."""
        return self._fields.get("conf") or {}

    def __repr__(self):
        return f"<DagRun {self._fields.get('dag_id')} @ {self._fields.get('run_id')}>"


class TaskInstance(_Fields):
    """The running task: `context["ti"]`."""

    def __init__(self, fields, task=None, given=None):
        super().__init__(fields)
        given = given or {}
        self.__dict__["task"] = task
        for name in ("dag_id", "task_id", "run_id", "map_index"):
            if name not in fields:
                fields[name] = given.get(name)
        if fields.get("map_index") is None:
            fields["map_index"] = -1
        fields.setdefault("try_number", 1)
        self.__dict__["_dag_run"] = given.get("dag_run") or {}

    @property
    def dag_run(self):
        """The run."""
        return DagRun(self.__dict__["_dag_run"])

    def get_dagrun(self):
        """The run."""
        return self.dag_run

    @property
    def key(self):
        """What identifies the task instance."""
        return (self.dag_id, self.task_id, self.run_id, self.try_number, self.map_index)

    @property
    def log(self):
        """The task's logger."""
        import logging

        return logging.getLogger("airflow.task")

    def get_template_context(self):
        """The context."""
        from airflow.sdk.definitions.context import get_current_context

        return get_current_context()

    def xcom_pull(
        self,
        task_ids=None,
        dag_id=None,
        key="return_value",
        include_prior_dates=False,
        *,
        map_indexes=NOTSET,
        default=None,
        run_id=None,
        as_list=False,
    ):
        """What other tasks pushed.

        One task id gives its value (a list of the values of a mapped task); several ids give a list.
        """
        single = task_ids is None or isinstance(task_ids, str)
        ids = [self.task_id] if task_ids is None else [task_ids] if single else list(task_ids)
        one_index = map_indexes is None or isinstance(map_indexes, int)
        indexes = None
        if map_indexes is not NOTSET:
            indexes = [-1 if map_indexes is None else map_indexes] if one_index else list(map_indexes)
        query = {
            "task_ids": ids,
            "single": False,
            "dag_id": dag_id,
            "run_id": run_id,
            "key": key,
            "map_indexes": indexes,
            "include_prior_dates": bool(include_prior_dates),
        }
        values = updraft_values.decode(updraft_values.from_json(_updraft.xcom_pull(updraft_values.to_json(query))))
        if not isinstance(values, list):
            values = [values]
        if as_list:
            return values if values != [None] else []
        if map_indexes is not NOTSET:
            values = [default if value is None else value for value in values]
            return values[0] if single and one_index and values else values
        if single and len(values) == 1:
            return default if values[0] is None else values[0]
        return values

    def xcom_push(self, key, value):
        """Leaves a value for other tasks."""
        _updraft.xcom_push(key, updraft_values.to_json(updraft_values.encode(value)))

    def __repr__(self):
        return f"<TaskInstance: {self.dag_id}.{self.task_id} {self.run_id} [running]>"


RuntimeTaskInstance = TaskInstance
RuntimeTaskInstanceProtocol = TaskInstance
DagRunProtocol = DagRun
TaskInstanceKey = tuple
Operator = object
