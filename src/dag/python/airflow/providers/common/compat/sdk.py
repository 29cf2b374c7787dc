"""Stand-in for `airflow.providers.common.compat.sdk`: names of `airflow.sdk` and some of its neighbours."""

from updraft_lazy import lazy_names

AIRFLOW_VAR_NAME_FORMAT_MAPPING = {
    f"AIRFLOW_CONTEXT_{name.upper()}": {
        "default": f"airflow.ctx.{name}",
        "env_var_format": f"AIRFLOW_CTX_{name.upper()}",
    }
    for name in ("dag_id", "task_id", "logical_date", "dag_run_id", "try_number", "dag_owner", "dag_email")
}
XCOM_RETURN_KEY = "return_value"


class SetDuringExecution:
    """Stands where a decorated operator's argument is made by its function."""

    def __repr__(self):
        return "DYNAMIC (set during execution)"


SET_DURING_EXECUTION = SetDuringExecution()

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "airflow.sdk": (
            "Asset",
            "AssetAlias",
            "AssetAll",
            "AssetAny",
            "BaseBranchOperator",
            "BaseHook",
            "BaseNotifier",
            "BaseOperator",
            "BaseOperatorLink",
            "BaseSensorOperator",
            "BranchMixIn",
            "Connection",
            "Context",
            "DAG",
            "DagRunState",
            "EdgeModifier",
            "ExceptionRetryPolicy",
            "Label",
            "Metadata",
            "ObjectStoragePath",
            "Param",
            "PokeReturnValue",
            "ResumableJobMixin",
            "RetryAction",
            "RetryDecision",
            "RetryPolicy",
            "RetryRule",
            "SkipMixin",
            "TaskGroup",
            "TaskInstanceState",
            "TriggerRule",
            "Variable",
            "WeightRule",
            "XComArg",
            "chain",
            "chain_linear",
            "conf",
            "cross_downstream",
            "dag",
            "get_current_context",
            "get_parsing_context",
            "literal",
            "mask_secret",
            "redact",
            "setup",
            "task",
            "task_group",
            "teardown",
        ),
        "airflow.sdk.exceptions": (
            "AirflowConfigException",
            "AirflowException",
            "AirflowFailException",
            "AirflowNotFoundException",
            "AirflowOptionalProviderFeatureException",
            "AirflowSensorTimeout",
            "AirflowSkipException",
            "AirflowTaskTimeout",
            "DagRunTriggerException",
            "DownstreamTasksSkipped",
            "ParamValidationError",
            "TaskDeferred",
            "XComNotFound",
        ),
        "airflow.sdk.bases.decorator": (
            "DecoratedOperator",
            "TaskDecorator",
            "determine_kwargs",
            "get_unique_task_id",
            "task_decorator_factory",
        ),
        "airflow.sdk.bases.operator": ("MappedOperator",),
        "airflow.sdk.bases.sensor": ("poke_mode_only",),
        "airflow.sdk.bases.xcom": ("XCom",),
        "airflow.sdk.definitions.context": ("context_merge",),
        "airflow.sdk.execution_time.task_instance": ("TaskInstanceKey",),
        "airflow.sdk.timezone": (),
        "airflow.sdk.io": (),
    },
    # Plugins, listeners, statistics and lineage: they import, nothing on this worker calls them.
    fallback=True,
)
