"""`@asset`: a function that makes an asset."""

from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions.asset import Asset, AssetAll
from airflow.sdk.definitions.dag import DAG

_ASSET_ARGUMENTS = ("group", "extra", "watchers", "access_control")


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

    def __init__(self, uri=None, *, name=None, **kwargs):
        self.uri = uri
        self.name = name
        self.kwargs = kwargs

    def __call__(self, function):
        name = self.name or function.__name__
        about = {key: self.kwargs[key] for key in _ASSET_ARGUMENTS if key in self.kwargs}
        made = Asset(name, self.uri or name, **about)
        settings = {key: value for key, value in self.kwargs.items() if key not in _ASSET_ARGUMENTS}
        _make_dag(function, [made], settings, name)
        return made

    class multi:
        """Makes a Dag of one task with several assets out of a function."""

        def __init__(self, *, outlets, **kwargs):
            self.outlets = outlets
            self.kwargs = kwargs

        def __call__(self, function):
            _make_dag(function, list(self.outlets), dict(self.kwargs), function.__name__)
            return AssetAll(*self.outlets)
