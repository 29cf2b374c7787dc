"""Notifiers, by the name that providers use for them."""

from airflow.sdk.bases.notifier import BaseNotifier

__all__ = ["BaseNotifier"]
