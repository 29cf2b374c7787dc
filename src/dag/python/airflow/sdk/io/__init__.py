"""Paths in object stores."""

from airflow.sdk.io.path import ObjectStoragePath

__all__ = ["ObjectStoragePath"]
