"""`TriggerDagRunOperator`: starts another Dag."""

from datetime import timedelta

from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions._internal.node import NOTSET
from updraft_hold import hold


class TriggerDagRunOperator(BaseOperator):
    """Starts a run of another Dag."""

    _updraft_kind = "python"
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
        self.allowed_states = [_state(state) for state in allowed_states or ("success",)]
        self.failed_states = [_state(state) for state in (("failed",) if failed_states is None else failed_states)]
        if isinstance(poke_interval, timedelta):
            self.poke_interval = poke_interval.total_seconds()

    def execute(self, context):
        """Starts the run; waits for its end when it should."""
        from datetime import datetime, timezone

        from updraft_moment import moment_text
        from updraft_request import RequestRefused, request

        now = datetime.now(tz=timezone.utc)
        run_after = None if self.run_after is NOTSET else _moment(self.run_after)
        if self.logical_date is not NOTSET:
            logical_date = _moment(self.logical_date)
        else:
            logical_date = now if self.run_after is NOTSET else None
        run_id = str(self.trigger_run_id) if self.trigger_run_id else _run_id(logical_date, run_after or now)
        self.trigger_run_id = run_id
        ti = context["ti"]
        dag_id = self.trigger_dag_id
        if self.fail_when_dag_is_paused and request("GetDag", dag_id=dag_id)["is_paused"]:
            from airflow.sdk.exceptions import AirflowException

            raise AirflowException(f"Dag {dag_id} is paused")
        self.log.info("Triggering Dag Run of %s: %s", dag_id, run_id)
        try:
            request(
                "TriggerDagRun",
                dag_id=dag_id,
                run_id=run_id,
                logical_date=moment_text(logical_date),
                run_after=moment_text(run_after),
                conf=_conf(self.conf),
                reset_dag_run=self.reset_dag_run,
                note=self.note,
            )
        except RequestRefused as error:
            if error.kind != "DAGRUN_ALREADY_EXISTS":
                raise
            self._exists(error)
        ti.xcom_push(key="trigger_run_id", value=run_id)
        if not self.wait_for_completion:
            return
        if self.deferrable:
            from airflow.providers.standard.triggers.external_task import DagStateTrigger

            self.defer(
                trigger=DagStateTrigger(
                    dag_id=dag_id,
                    states=self.allowed_states + self.failed_states,
                    run_ids=[run_id],
                    poll_interval=self.poke_interval,
                ),
                method_name="execute_complete",
            )
        self._wait(ti, run_id)

    def execute_complete(self, context, event):
        """Looks at how the run has ended."""
        from airflow.sdk.exceptions import AirflowException

        found = event[1]
        failed = []
        for run_id in found["run_ids"]:
            state = found.get(run_id)
            if state in self.failed_states:
                failed.append(run_id)
            elif state in self.allowed_states:
                self.log.info("%s finished with allowed state %s for run_id %s", self.trigger_dag_id, state, run_id)
        if failed:
            raise AirflowException(f"{self.trigger_dag_id} failed with failed states {self.failed_states} for run_ids {failed}")

    def _exists(self, error):
        from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

        text = f"Dag Run {self.trigger_run_id} of {self.trigger_dag_id} already exists"
        raise (AirflowSkipException if self.skip_when_already_exists else AirflowFailException)(text) from error

    def _wait(self, ti, run_id):
        import time

        from airflow.sdk.exceptions import AirflowException

        ends = self.failed_states + self.allowed_states
        state = None
        while state not in ends:
            time.sleep(self.poke_interval)
            state = ti.get_dagrun_state(self.trigger_dag_id, run_id)
        if state in self.failed_states:
            raise AirflowException(f"{self.trigger_dag_id} failed with failed state {state}")
        self.log.info("The run of %s ended in the state %s", self.trigger_dag_id, state)


def _state(state):
    return str(getattr(state, "value", state))


def _moment(value):
    if value is None or hasattr(type(value), "isoformat"):
        return value
    import pendulum

    return pendulum.parse(value)


def _run_id(logical_date, run_after):
    if logical_date is not None:
        return f"manual__{logical_date.isoformat()}"
    import uuid

    return f"manual__{run_after.isoformat()}_{uuid.uuid4().hex[:8]}"


def _conf(conf):
    import json

    try:
        conf = json.loads(conf) if conf and isinstance(conf, str) else conf
        json.dumps(conf)
    except (TypeError, ValueError):
        raise ValueError(f"conf parameter should be JSON Serializable: {conf}") from None
    return conf
