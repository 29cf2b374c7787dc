"""Logging of tool calls."""

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets.wrappers import WrapperToolset
from updraft_record import Record


class LoggingToolset(WrapperToolset):
    """Logs the calls of a toolset's tools."""

    def __init__(self, wrapped, logger=None):
        super().__init__(wrapped)
        self.logger = logger

    def _updraft_spec(self, describe):
        return {"logging": {"logger": getattr(self.logger, "name", None), "wrapped": describe(self.wrapped)}}

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs the tool and logs it, as the worker does around its own toolsets."""
        import json
        import logging
        import time

        logger = self.logger or logging.getLogger(__name__)
        logger.info("::group::Tool call: %s", name)
        if tool_args:
            logger.debug("Tool args: %s", json.dumps(tool_args, default=str))
        start = time.monotonic()
        try:
            result = await super().call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            took = time.monotonic() - start
            asked = type(error).__name__
            if asked in ("ModelRetry", "ToolFailed"):
                logger.info("Tool %s requested %s after %.2fs: %s", name, asked, took, error)
                logger.info("::endgroup::")
            else:
                logger.info("::endgroup::")
                logger.exception("Tool %s failed after %.2fs", name, took)
            raise
        logger.info("Tool %s returned in %.2fs", name, time.monotonic() - start)
        logger.info("::endgroup::")
        return result


class ToolLoggingCapability(Record, AbstractCapability):
    """Logs the calls of every tool."""

    _positional = {"logger": None}
    _keyword = {"id": None, "description": None, "defer_loading": False}
