"""The ways to MCP servers."""

from updraft_record import REQUIRED, Record


class StreamableHttpTransport(Record):
    """A server behind an address."""

    _positional = {"url": REQUIRED, "headers": None, "auth": None, "httpx_client_factory": None, "verify": None}
    _keyword = {"max_sse_event_size": 1048576}


class SSETransport(Record):
    """A server behind an address, of the older protocol."""

    _positional = {
        "url": REQUIRED,
        "headers": None,
        "auth": None,
        "sse_read_timeout": None,
        "httpx_client_factory": None,
        "verify": None,
    }


class StdioTransport(Record):
    """A server that is started as a command."""

    _positional = {
        "command": REQUIRED,
        "args": REQUIRED,
        "env": None,
        "cwd": None,
        "keep_alive": None,
        "log_file": None,
    }


def _script(name, command_name, command):
    class Script(StdioTransport):
        """A script that its interpreter runs."""

        _positional = {
            "script_path": REQUIRED,
            "args": None,
            "env": None,
            "cwd": None,
            command_name: command,
            "keep_alive": None,
            "log_file": None,
        }

        def _made(self):
            self.command = getattr(self, command_name)
            self.args = [str(self.script_path), *(self.args or ())]

    Script.__name__ = Script.__qualname__ = name
    return Script


PythonStdioTransport = _script("PythonStdioTransport", "python_cmd", "python3")
NodeStdioTransport = _script("NodeStdioTransport", "node_cmd", "node")


class UvxStdioTransport(StdioTransport):
    """A Python tool that uvx runs."""

    _positional = {
        "tool_name": REQUIRED,
        "tool_args": None,
        "project_directory": None,
        "python_version": None,
        "with_packages": None,
        "from_package": None,
        "env_vars": None,
        "keep_alive": None,
    }

    def _made(self):
        args = []
        if self.python_version:
            args += ["--python", self.python_version]
        if self.from_package:
            args += ["--from", self.from_package]
        for package in self.with_packages or ():
            args += ["--with", package]
        self.command = "uvx"
        self.args = [*args, self.tool_name, *(self.tool_args or ())]
        self.env = self.env_vars
        self.cwd = self.project_directory


class NpxStdioTransport(StdioTransport):
    """A Node package that npx runs."""

    _positional = {
        "package": REQUIRED,
        "args": None,
        "project_directory": None,
        "env_vars": None,
        "use_package_lock": True,
        "keep_alive": None,
    }

    def _made(self):
        lock = ["--prefer-offline"] if self.use_package_lock else []
        self.command = "npx"
        self.args = [*lock, self.package, *(self.args or ())]
        self.env = self.env_vars
        self.cwd = self.project_directory
