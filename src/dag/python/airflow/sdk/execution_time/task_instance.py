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


def _ask(kind, **fields):
    from updraft_request import request

    answer = request(kind, **fields)
    if not isinstance(answer, dict):
        raise RuntimeError(f"{kind} has no answer here: there is no Airflow behind a local run")
    return answer


def _moment(text):
    from updraft_moment import moment

    return moment(text)


def _text(moment):
    from updraft_moment import moment_text

    return moment_text(moment)


def _state(state):
    return getattr(state, "value", state)


def _query(dag_id, map_index, task_ids, task_group_id, logical_dates, run_ids):
    return {
        "dag_id": dag_id,
        "map_index": map_index,
        "task_ids": task_ids,
        "task_group_id": task_group_id,
        "logical_dates": [_text(date) for date in logical_dates] if logical_dates else None,
        "run_ids": run_ids,
    }


def _quoted(text):
    from urllib.parse import quote

    return quote(text)


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
            from updraft_moment import moment

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

    @property
    def log_url(self):
        """Where the UI shows the log."""
        from airflow.sdk.configuration import conf

        base = conf.get("api", "base_url", fallback="http://localhost:8080/").rstrip("/")
        mapped = f"/mapped/{self.map_index}" if self.map_index >= 0 else ""
        run_id = _quoted(self.run_id)
        return f"{base}/dags/{self.dag_id}/runs/{run_id}/tasks/{self.task_id}{mapped}?try_number={self.try_number}"

    mark_success_url = log_url

    @property
    def duration(self):
        """Seconds from the start to the end; None while there is no end."""
        if self.end_date is None or self.start_date is None:
            return None
        return (self.end_date - self.start_date).total_seconds()

    def get_first_reschedule_date(self, context):
        """When a sensor gave up its slot for the first time in this try; None when it never did."""
        if not context.get("task_reschedule_count"):
            return None
        first_try = self.max_tries - (self.task.retries or 0) + 1
        answer = _ask("GetTaskRescheduleStartDate", ti_id=self.id, try_number=first_try)
        return _moment(answer.get("start_date"))

    def get_previous_dagrun(self, state=None):
        """The run before this one; None without one."""
        logical_date = self.__dict__["_dag_run"].get("logical_date")
        if logical_date is None:
            return None
        answer = _ask("GetPreviousDagRun", dag_id=self.dag_id, logical_date=logical_date, state=state)
        return DagRun(answer["dag_run"]) if answer.get("dag_run") else None

    def get_previous_ti(self, state=None, logical_date=None, map_index=-1):
        """This task in the run before this one; None without one."""
        answer = _ask(
            "GetPreviousTI",
            dag_id=self.dag_id,
            task_id=self.task_id,
            logical_date=_text(logical_date) or self.__dict__["_dag_run"].get("logical_date"),
            map_index=map_index,
            state=_state(state),
        )
        return _Fields(answer["task_instance"]) if answer.get("task_instance") else None

    @staticmethod
    def get_ti_count(
        dag_id, map_index=None, task_ids=None, task_group_id=None, logical_dates=None, run_ids=None, states=None
    ):
        """How many task instances there are of a kind."""
        query = _query(dag_id, map_index, task_ids, task_group_id, logical_dates, run_ids)
        return _ask("GetTICount", **query, states=[_state(state) for state in states] if states else None)["count"]

    @staticmethod
    def get_task_states(dag_id, map_index=None, task_ids=None, task_group_id=None, logical_dates=None, run_ids=None):
        """The states of task instances, by run and task."""
        query = _query(dag_id, map_index, task_ids, task_group_id, logical_dates, run_ids)
        return _ask("GetTaskStates", **query)["task_states"]

    @staticmethod
    def get_dr_count(dag_id, logical_dates=None, run_ids=None, states=None):
        """How many runs a Dag has."""
        dates = [_text(date) for date in logical_dates] if logical_dates else None
        states = [_state(state) for state in states] if states else None
        return _ask("GetDRCount", dag_id=dag_id, logical_dates=dates, run_ids=run_ids, states=states)["count"]

    @staticmethod
    def get_dagrun_state(dag_id, run_id):
        """The state of a run."""
        return _ask("GetDagRunState", dag_id=dag_id, run_id=run_id)["state"]

    @staticmethod
    def get_task_breadcrumbs(dag_id, run_id):
        """What the tasks of a run left behind."""
        return _ask("GetTaskBreadcrumbs", dag_id=dag_id, run_id=run_id)["breadcrumbs"]

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
