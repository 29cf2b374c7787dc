"""Tools that any agent framework can use."""

from updraft_record import REQUIRED, Record


class ToolCallError(Exception):
    """A tool refused a call; the text goes to the model."""


class ToolResult(Record):
    """What a tool gives."""

    _positional = {"content": REQUIRED, "is_error": False}


class AirflowTool(Record):
    """A tool: its name, description, schema and function."""

    _positional = {"name": REQUIRED, "description": REQUIRED, "parameters": REQUIRED, "function": REQUIRED}

    async def call(self, arguments):
        """Runs the tool."""
        result = self.function(**arguments)
        return await result if hasattr(result, "__await__") else result


class ToolProvider:
    """Something that gives tools."""

    def airflow_tools(self):
        """The tools."""
        raise NotImplementedError


def collect_tools(sources):
    """The tools of several sources."""
    tools = []
    for source in sources:
        tools.extend(source.airflow_tools() if hasattr(source, "airflow_tools") else [source])
    return tools
