"""Exceptions of standard operators."""

from airflow.sdk.exceptions import AirflowException


class HITLTriggerEventError(Exception):
    """The answer of a person can't be used."""


class HITLTimeoutError(HITLTriggerEventError):
    """Nobody has answered in time."""


class HITLRejectException(AirflowException):
    """A person has said no."""
