"""The older name of `airflow.sdk.timezone`."""

from airflow.sdk.timezone import *  # noqa: F403
