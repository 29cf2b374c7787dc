"""`ObjectStorageToolset`: files of an object store as tools."""

import os

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_max_retries, check_tool_prefix
from updraft_hold import hold


class ObjectStorageToolset(AirflowToolset):
    """Lists and reads files below a path."""

    agent_template_fields = ("_path", "_conn_id")

    def __init__(
        self,
        path,
        *,
        conn_id=None,
        max_files=200,
        max_read_bytes=10485760,
        max_output_bytes=51200,
        tool_prefix="",
        max_retries=None,
    ):
        hold(self, locals(), "_")
        for name in ("max_files", "max_read_bytes", "max_output_bytes"):
            limit = getattr(self, f"_{name}")
            if limit < 1:
                raise ValueError(f"{name} must be at least 1, got {limit}.")
        check_tool_prefix(tool_prefix)
        check_max_retries(max_retries)

    @property
    def id(self):
        """`object-storage-`, the connection and the prefix."""
        suffix = f"-{self._tool_prefix}" if self._tool_prefix else ""
        return f"object-storage-{self._conn_id or 'default'}{suffix}"

    def _updraft_spec(self, describe):
        from updraft_values import argument

        path = self._path
        return {
            "object_storage": {
                "path": argument(os.fspath(path) if hasattr(path, "__fspath__") else path),
                "conn_id": argument(self._conn_id),
                "max_files": int(self._max_files),
                "max_read_bytes": int(self._max_read_bytes),
                "max_output_bytes": int(self._max_output_bytes),
                "tool_prefix": self._tool_prefix,
                "max_retries": self._max_retries,
            }
        }
