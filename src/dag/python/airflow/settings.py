"""Settings of Airflow that Dag files read."""

import pendulum
from airflow.sdk.configuration import conf

TIMEZONE = pendulum.UTC


def __getattr__(name):
    if name == "AIRFLOW_HOME":
        from airflow.sdk import configuration

        return configuration.AIRFLOW_HOME
    if name == "DAGS_FOLDER":
        return conf.get("core", "dags_folder")
    raise AttributeError(f"module 'airflow.settings' has no attribute {name!r}")
