"""`@asset`: a function that makes an asset."""

from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions.asset import Asset, AssetAll
from airflow.sdk.definitions.dag import DAG


class AssetMainOperator(BaseOperator):
    """The one task of the Dag behind `@asset`."""

    _updraft_reason = "assets as functions are not run natively yet"
    custom_operator_name = "@asset"

    def __init__(self, *, python_callable, **kwargs):
        super().__init__(**kwargs)
        self.python_callable = python_callable


def _make_dag(function, outlets, settings, default_id):
    with DAG(settings.pop("dag_id", None) or default_id, **settings):
        AssetMainOperator(task_id=function.__name__, python_callable=function, outlets=outlets)


class asset:
    """Makes an asset and a Dag of one task out of a function."""

    def __init__(
        self,
        *,
        schedule,
        is_paused_upon_creation=None,
        dag_id=None,
        dag_display_name=None,
        description=None,
        params=None,
        on_success_callback=None,
        on_failure_callback=None,
        access_control=None,
        owner_links=None,
        tags=None,
        name=None,
        uri=None,
        group="asset",
        extra=None,
        watchers=None,
    ):
        self.name = name
        self.uri = uri
        self._about = {"group": group, "extra": extra, "watchers": watchers}
        self._settings = {
            "dag_id": dag_id,
            "schedule": schedule,
            "is_paused_upon_creation": is_paused_upon_creation,
            "dag_display_name": dag_display_name,
            "description": description,
            "params": params,
            "on_success_callback": on_success_callback,
            "on_failure_callback": on_failure_callback,
            "access_control": access_control,
            "owner_links": owner_links,
            "tags": tags,
        }

    def __call__(self, function):
        name = self.name or function.__name__
        made = Asset(name, self.uri or name, **self._about)
        _make_dag(function, [made], dict(self._settings), name)
        return made

    class multi:
        """Makes a Dag of one task with several assets out of a function."""

        def __init__(self, *, outlets, schedule, **kwargs):
            self.outlets = outlets
            self.kwargs = {"schedule": schedule, **kwargs}

        def __call__(self, function):
            _make_dag(function, list(self.outlets), dict(self.kwargs), function.__name__)
            return AssetAll(*self.outlets)
