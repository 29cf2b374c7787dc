"""`TriggerDagRunOperator`: starts another Dag."""

from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions._internal.node import NOTSET
from updraft_hold import hold


class TriggerDagRunOperator(BaseOperator):
    """Starts a run of another Dag."""

    _updraft_reason = "runs of other Dags are not started natively yet"
    template_fields = (
        "trigger_dag_id",
        "trigger_run_id",
        "logical_date",
        "conf",
        "wait_for_completion",
        "skip_when_already_exists",
    )

    def __init__(
        self,
        *,
        trigger_dag_id,
        trigger_run_id=None,
        conf=None,
        logical_date=NOTSET,
        run_after=NOTSET,
        reset_dag_run=False,
        wait_for_completion=False,
        poke_interval=60,
        allowed_states=None,
        failed_states=None,
        skip_when_already_exists=False,
        fail_when_dag_is_paused=False,
        note=None,
        deferrable=False,
        openlineage_inject_parent_info=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
