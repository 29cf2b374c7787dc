"""Airflow's exceptions. Their qualified names travel in failures, so each stands where Airflow has it."""

from updraft_hold import hold


class AirflowException(Exception):
    """Base of Airflow's exceptions."""

    status_code = 500


class AirflowOptionalProviderFeatureException(AirflowException):
    """A provider lacks an optional dependency."""


class AirflowNotFoundException(AirflowException):
    """The object asked for is not there."""

    status_code = 404


class AirflowSecretsBackendAccessDenied(PermissionError):
    """A secrets backend refused access."""


class AirflowDagCycleException(AirflowException):
    """The tasks of a Dag form a cycle."""


class AirflowRuntimeError(Exception):
    """An error that the server reported."""


class AirflowTimetableInvalid(AirflowException):
    """A Dag's timetable is not valid."""


class XComForMappingNotPushed(TypeError):
    """A task that others are mapped over pushed nothing."""

    def __str__(self):
        return "did not push XCom for task mapping"


class UnmappableXComTypePushed(TypeError):
    """A task that others are mapped over pushed something that is no list or dict."""

    def __str__(self):
        outer, *inner = (type(arg).__qualname__ for arg in self.args)
        pushed = outer + "".join(f"[{name}]" for name in inner)
        return f"unmappable return type {pushed!r}"


class AirflowFailException(AirflowException):
    """Fail the task without another try."""


class AirflowInactiveAssetInInletOrOutletException(AirflowFailException):
    """A task's inlet or outlet is an inactive asset."""


class AirflowRescheduleException(AirflowException):
    """Run the task again later."""

    def __init__(self, reschedule_date):
        super().__init__()
        self.reschedule_date = reschedule_date


class AirflowSensorTimeout(AirflowException):
    """A sensor waited too long."""


class AirflowSkipException(AirflowException):
    """Skip the task."""


class AirflowTaskTerminated(BaseException):
    """The task was terminated."""


class AirflowTaskTimeout(BaseException):
    """The task ran longer than its execution_timeout."""


class TaskDeferred(BaseException):
    """The task waits for a trigger."""

    def __init__(self, *, trigger, method_name, kwargs=None, timeout=None):
        super().__init__()
        hold(self, locals())
        self.kwargs = kwargs
        # What goes to the server, once it is known.
        self.deferral = None

    def __repr__(self):
        return f"<TaskDeferred trigger={self.trigger} method={self.method_name}>"


class TaskDeferralError(AirflowException):
    """A deferred task failed."""


class TaskDeferralTimeout(AirflowException):
    """A deferred task's trigger took too long."""


class DagRunTriggerException(AirflowException):
    """Asks for a run of another Dag."""

    def __init__(
        self,
        *,
        trigger_dag_id,
        dag_run_id,
        conf,
        logical_date=None,
        run_after=None,
        reset_dag_run,
        skip_when_already_exists,
        wait_for_completion,
        allowed_states,
        failed_states,
        poke_interval,
        deferrable,
        note=None,
    ):
        super().__init__()
        hold(self, locals())


class DownstreamTasksSkipped(AirflowException):
    """Names the downstream tasks to skip."""

    def __init__(self, *, tasks):
        super().__init__()
        self.tasks = tasks


class XComNotFound(AirflowException):
    """The XCom that an argument refers to was never pushed."""

    def __init__(self, dag_id, task_id, key):
        super().__init__()
        hold(self, locals())

    def __str__(self):
        return f"XComArg result from {self.task_id} at {self.dag_id} with key={self.key!r} is not found!"


class ParamValidationError(AirflowException, ValueError):
    """A Dag param has an invalid value."""


class DuplicateTaskIdFound(AirflowException):
    """Two tasks or groups of a Dag have the same id."""


class TaskAlreadyInTaskGroup(AirflowException):
    """A task was put into a second task group."""

    def __init__(self, task_id, existing_group_id, new_group_id):
        super().__init__(task_id, new_group_id)
        hold(self, locals())

    def __str__(self):
        where = "the DAG's root group"
        if self.existing_group_id is not None:
            where = f"group {self.existing_group_id!r}"
        return f"cannot add {self.task_id!r} to {self.new_group_id!r} (already in {where})"


class TaskNotFound(AirflowException):
    """No such task in the Dag."""

    status_code = 404


class NodeNotFound(TaskNotFound, KeyError):
    """No such task or group in the task group."""

    def __str__(self):
        return str(self.args[0]) if self.args else ""


class TaskAlreadyRunningError(AirflowException):
    """The task runs on another worker already."""


class FailFastDagInvalidTriggerRule(AirflowException):
    """A Dag with fail_fast has a task with another trigger rule than all_success."""

    def __str__(self):
        return "A 'fail_fast' dag can only have all_success trigger rule"


class AirflowConfigException(AirflowException):
    """The configuration lacks a value or holds a wrong one."""


class AirflowBadRequest(AirflowException):
    """The request was wrong."""

    status_code = 400


class AirflowTriggerEventException(AirflowException):
    """A trigger ended with an error."""


class AirflowDagDuplicatedIdException(AirflowException):
    """Two Dags have the same dag_id."""


class RemovedInAirflow4Warning(DeprecationWarning):
    """Warns of a feature that Airflow 4 removes."""


class AirflowProviderDeprecationWarning(DeprecationWarning):
    """Warns of a deprecated feature of a provider."""
