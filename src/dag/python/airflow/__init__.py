"""Stand-in for Apache Airflow: what Dag files import, without the rest."""

from updraft_lazy import lazy_names

__version__ = "3.3.2"

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "airflow.sdk.definitions.dag": ("DAG",),
        "airflow.sdk.definitions.xcom_arg": ("XComArg",),
        "airflow.sdk.definitions.asset": ("Asset", "Dataset"),
        "airflow.settings": (),
    },
)
