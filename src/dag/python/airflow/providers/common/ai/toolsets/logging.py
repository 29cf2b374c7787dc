"""Logging of tool calls."""

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets.wrappers import WrapperToolset
from updraft_record import Record


class LoggingToolset(WrapperToolset):
    """Logs the calls of a toolset's tools."""

    def __init__(self, wrapped, logger=None):
        super().__init__(wrapped)
        self.logger = logger


class ToolLoggingCapability(Record, AbstractCapability):
    """Logs the calls of every tool."""

    _positional = {"logger": None}
    _keyword = {"id": None, "description": None, "defer_loading": False}
