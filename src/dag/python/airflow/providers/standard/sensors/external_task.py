"""Sensors for tasks of other Dags."""

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class ExternalTaskSensor(BaseSensorOperator):
    """Waits for a task of another Dag."""

    template_fields = ("external_dag_id", "external_task_id", "external_task_ids", "external_task_group_id")

    def __init__(
        self,
        *,
        external_dag_id,
        external_task_id=None,
        external_task_ids=None,
        external_task_group_id=None,
        allowed_states=None,
        skipped_states=None,
        failed_states=None,
        execution_delta=None,
        execution_date_fn=None,
        check_existence=False,
        poll_interval=None,
        deferrable=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())


class ExternalTaskMarker(EmptyOperator):
    """Marks that a task of another Dag depends on this Dag."""

    template_fields = ("external_dag_id", "external_task_id", "logical_date")

    def __init__(
        self,
        *,
        external_dag_id,
        external_task_id,
        logical_date="{{ logical_date.isoformat() }}",
        recursion_depth=10,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
