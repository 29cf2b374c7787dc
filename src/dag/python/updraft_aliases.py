"""Modules that only give other names to what stands elsewhere: Airflow's older import paths, among others.

They are made when they are imported; none of them is worth a file.
"""

import sys

_SDK = "airflow.sdk"
_EXCEPTIONS = "airflow.sdk.exceptions"
_STATES = "airflow.sdk.definitions.states"

# Module -> {name: module that has it}. A value that ends in `:other` gives the name there.
_ALIASES = {
    "airflow.decorators": {"*": _SDK},
    "airflow.exceptions": {"*": _EXCEPTIONS},
    "airflow.models": {
        "*": _SDK,
        "BaseOperator": _SDK,
        "Param": _SDK,
        "DagModel": "airflow.sdk.definitions.dag:DAG",
        "DagRun": "airflow.sdk.execution_time.task_instance",
        "TaskInstance": "airflow.sdk.execution_time.task_instance",
        "XCom": "airflow.sdk.bases.xcom",
    },
    "airflow.models.baseoperator": {"*": "airflow.sdk.bases.operator"},
    "airflow.models.connection": {"*": "airflow.sdk.definitions.connection"},
    "airflow.models.dag": {"*": "airflow.sdk.definitions.dag"},
    "airflow.models.dagbag": {},
    "airflow.models.dagrun": {"DagRun": "airflow.sdk.execution_time.task_instance"},
    "airflow.models.mappedoperator": {"*": "airflow.sdk.bases.operator"},
    "airflow.models.param": {"*": "airflow.sdk.definitions.param"},
    "airflow.models.taskinstance": {"*": "airflow.sdk.execution_time.task_instance"},
    "airflow.models.variable": {"*": "airflow.sdk.definitions.variable"},
    "airflow.models.xcom": {"*": "airflow.sdk.bases.xcom"},
    "airflow.models.xcom_arg": {"*": "airflow.sdk.definitions.xcom_arg"},
    "airflow.models.asset": {"*": "airflow.sdk.definitions.asset"},
    "airflow.operators": {},
    "airflow.operators.empty": {"*": "airflow.providers.standard.operators.empty"},
    "airflow.operators.bash": {"*": "airflow.providers.standard.operators.bash"},
    "airflow.operators.python": {"*": "airflow.providers.standard.operators.python"},
    "airflow.operators.branch": {"*": "airflow.sdk.bases.branch"},
    "airflow.sensors": {},
    "airflow.sensors.base": {"*": "airflow.sdk.bases.sensor"},
    "airflow.hooks": {},
    "airflow.hooks.base": {"*": "airflow.sdk.bases.hook"},
    "airflow.hooks.base_hook": {"*": "airflow.sdk.bases.hook"},
    "airflow.configuration": {"*": "airflow.sdk.configuration"},
    "airflow.datasets": {
        "*": "airflow.sdk.definitions.asset",
        "Dataset": "airflow.sdk.definitions.asset:Asset",
        "DatasetAlias": "airflow.sdk.definitions.asset:AssetAlias",
    },
    "airflow.datasets.metadata": {"*": "airflow.sdk.definitions.asset"},
    "airflow.assets": {"*": "airflow.sdk.definitions.asset"},
    "airflow.io": {},
    "airflow.io.path": {"*": "airflow.sdk.io.path"},
    "airflow.io.storage": {"*": "airflow.sdk.io.path"},
    "airflow.notifications": {},
    "airflow.notifications.basenotifier": {"*": "airflow.sdk.bases.notifier"},
    "airflow.timetables": {},
    "airflow.timetables.base": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.timetables.trigger": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.timetables.interval": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.timetables.assets": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.timetables.datasets": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.timetables.events": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.timetables.simple": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.partition_mappers": {"*": "airflow.sdk.definitions.partition_mappers"},
    "airflow.partition_mappers.base": {"*": "airflow.sdk.definitions.partition_mappers"},
    "airflow.partition_mappers.window": {"*": "airflow.sdk.definitions.partition_mappers"},
    "airflow.task": {},
    "airflow.task.trigger_rule": {"*": _STATES},
    "airflow.task.weight_rule": {"*": _STATES},
    "airflow.triggers": {},
    "airflow.triggers.base": {"*": "airflow.sdk.bases.trigger"},
    "airflow.utils.context": {"*": "airflow.sdk.definitions.context"},
    "airflow.utils.edgemodifier": {"*": "airflow.sdk.definitions.edges"},
    "airflow.utils.helpers": {"*": "airflow.sdk.bases.operator"},
    "airflow.utils.log": {},
    "airflow.utils.log.logging_mixin": {"*": "airflow.sdk.definitions._internal.logging_mixin"},
    "airflow.utils.log.secrets_masker": {"*": "airflow.sdk.log"},
    "airflow.utils.setup_teardown": {"*": "airflow.sdk.definitions._internal.contextmanager"},
    "airflow.utils.state": {"*": _STATES},
    "airflow.utils.task_group": {"*": "airflow.sdk.definitions.taskgroup", "task_group": "airflow.sdk.definitions.dag"},
    "airflow.utils.trigger_rule": {"*": _STATES},
    "airflow.utils.types": {"*": _STATES},
    "airflow.utils.weight_rule": {"*": _STATES},
    "airflow.utils.xcom": {"*": "airflow.sdk.definitions.xcom_arg"},
    "airflow.sdk.bases.skipmixin": {"*": "airflow.sdk.bases.branch"},
    "airflow.sdk.definitions.decorators": {"*": _SDK},
    "airflow.sdk.definitions.mappedoperator": {"*": "airflow.sdk.bases.operator"},
    "airflow.sdk.definitions.dag_parsing_context": {"*": "airflow.sdk.definitions.context"},
    "airflow.sdk.definitions.asset.decorators": {"*": "airflow.sdk.definitions.asset_function"},
    "airflow.sdk.definitions.asset.metadata": {"*": "airflow.sdk.definitions.asset"},
    "airflow.sdk.definitions.timetables.trigger": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.sdk.definitions.timetables.assets": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.sdk.definitions.timetables.interval": {"*": "airflow.sdk.definitions.timetables"},
    "airflow.sdk.definitions.partition_mappers.base": {"*": "airflow.sdk.definitions.partition_mappers"},
    "airflow.sdk.definitions.partition_mappers.temporal": {"*": "airflow.sdk.definitions.partition_mappers"},
    "airflow.sdk.types": {"*": "airflow.sdk.execution_time.task_instance"},
    "airflow.sdk.api": {},
    "airflow.sdk.api.datamodels": {},
    "airflow.sdk.api.datamodels._generated": {"*": _STATES},
    "airflow.sdk.execution_time.task_runner": {
        "RuntimeTaskInstance": "airflow.sdk.execution_time.task_instance",
    },
    "airflow.sdk.execution_time.secrets_masker": {"*": "airflow.sdk.log"},
    "airflow.utils.dag_parsing_context": {"*": "airflow.sdk.definitions.context"},
}


class _Loader:
    """Makes the module of one alias."""

    def create_module(self, spec):
        """The default module."""
        return None

    def exec_module(self, module):
        """Gives the module its lazy names."""
        names = _ALIASES[module.__name__]

        def __getattr__(name):
            where = names.get(name)
            if where is None and not name.startswith("__"):
                where = names.get("*")
            if where is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            where, _, other = where.partition(":")
            __import__(where)
            target = sys.modules[where]
            if where.rpartition(".")[2] == name and not other:
                value = target
            else:
                value = getattr(target, other or name)
            setattr(module, name, value)
            return value

        module.__getattr__ = __getattr__


class _Finder:
    """Finds the aliases."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """The spec of an alias; None for other modules."""
        if name not in _ALIASES:
            return None
        return type(sys.__spec__)(name, _Loader(), origin="frozen", is_package=True)


def install():
    """Makes the aliases importable; they come before the finder of unavailable modules."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
