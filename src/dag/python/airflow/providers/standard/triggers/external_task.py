"""Triggers that wait for other Dags and tasks."""

from airflow.sdk.bases.trigger import BaseTrigger
from updraft_hold import hold


class WorkflowTrigger(BaseTrigger):
    """Fires when tasks, a task group or a Dag have come to a state."""

    def __init__(
        self,
        external_dag_id,
        run_ids=None,
        execution_dates=None,
        logical_dates=None,
        external_task_ids=None,
        external_task_group_id=None,
        failed_states=None,
        skipped_states=None,
        allowed_states=None,
        poke_interval=2.0,
        soft_fail=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())

    def serialize(self):
        """Its class and its arguments."""
        names = (
            "external_dag_id external_task_ids external_task_group_id failed_states skipped_states allowed_states"
            " poke_interval soft_fail run_ids logical_dates"
        )
        return (
            "airflow.providers.standard.triggers.external_task.WorkflowTrigger",
            {name: getattr(self, name) for name in names.split()},
        )


class DagStateTrigger(BaseTrigger):
    """Fires when runs of a Dag have come to a state."""

    def __init__(self, dag_id, states, run_ids=None, execution_dates=None, poll_interval=5.0):
        super().__init__()
        hold(self, locals())

    def serialize(self):
        """Its class and its arguments."""
        names = ("dag_id", "states", "poll_interval", "run_ids", "execution_dates")
        return (
            "airflow.providers.standard.triggers.external_task.DagStateTrigger",
            {name: getattr(self, name) for name in names},
        )
