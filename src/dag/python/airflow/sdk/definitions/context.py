"""The context of a running task."""

KNOWN_CONTEXT_KEYS = frozenset(
    (
        "conn",
        "dag",
        "dag_run",
        "data_interval_end",
        "data_interval_start",
        "outlet_events",
        "ds",
        "ds_nodash",
        "expanded_ti_count",
        "exception",
        "inlets",
        "inlet_events",
        "logical_date",
        "macros",
        "map_index_template",
        "outlets",
        "params",
        "partition_key",
        "partition_date",
        "prev_data_interval_start_success",
        "prev_data_interval_end_success",
        "prev_start_date_success",
        "prev_end_date_success",
        "reason",
        "run_id",
        "task",
        "task_reschedule_count",
        "task_instance",
        "task_instance_key_str",
        "task_state_store",
        "asset_state_store",
        "templates_dict",
        "test_mode",
        "ti",
        "triggering_asset_events",
        "try_number",
        "ts",
        "ts_nodash",
        "ts_nodash_with_tz",
        "var",
    )
)

_current = []


class Context(dict):
    """What a task can ask about its run."""


def get_current_context():
    """The context of the task that runs now."""
    if not _current:
        raise RuntimeError(
            "Current context was requested but no context was found! Are you running within an Airflow task?"
        )
    return _current[-1]


def context_merge(context, *args, **kwargs):
    """Adds to a context."""
    context.update(*args, **kwargs)


class set_current_context:
    """Makes a context current within a `with` block."""

    def __init__(self, context):
        self._context = context

    def __enter__(self):
        _current.append(self._context)
        return self._context

    def __exit__(self, exc_type, exc, tb):
        _current.pop()


class AirflowParsingContext:
    """The Dag and the task that the file is read for; None when it is read for all."""

    def __init__(self, dag_id=None, task_id=None):
        self.dag_id = dag_id
        self.task_id = task_id


def get_parsing_context():
    """What the file is read for."""
    return AirflowParsingContext()
