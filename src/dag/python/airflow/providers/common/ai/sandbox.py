"""Sandboxes for agents."""

from updraft_lazy import lazy_names
from updraft_record import REQUIRED, Record

__getattr__, _ = lazy_names(__name__, {}, fallback=True)


class SandboxError(Exception):
    """A sandbox failed."""


class SandboxTerminalError(SandboxError):
    """A sandbox failed for good."""


class SandboxFileTooLargeError(SandboxError):
    """A file in a sandbox is too large."""

    def __init__(self, path, size_bytes, max_bytes):
        super().__init__(f"{path} is {size_bytes} bytes; at most {max_bytes} can be read")
        self.path = path
        self.size_bytes = size_bytes
        self.max_bytes = max_bytes


class SandboxSpec(Record):
    """What a sandbox may do."""

    _positional = {
        "env": None,
        "block_network": True,
        "allow_egress_to": None,
        "allow_egress_to_cidrs": None,
        "owner": None,
    }


class SandboxExecResult(Record):
    """What a command gave."""

    _positional = {
        "exit_code": REQUIRED,
        "stdout": REQUIRED,
        "stderr": REQUIRED,
        "timed_out": False,
        "stdout_truncated": False,
        "stderr_truncated": False,
        "sandbox_terminated": False,
        "applied_timeout": None,
    }


class SandboxBackend:
    """Makes sandboxes."""

    name = "sandbox"

    def create(self, spec=None):
        """Makes a sandbox."""
        raise NotImplementedError

    def destroy(self, sandbox):
        """Removes a sandbox."""
        raise NotImplementedError


class AttachableSandboxBackend(SandboxBackend):
    """Finds sandboxes of other tasks."""


class SbxSandboxBackend(SandboxBackend):
    """Sandboxes of the `sbx` command."""

    name = "sbx"

    def __init__(
        self,
        *,
        image="python:3.12-slim",
        memory="2g",
        cpus=None,
        sbx_path="sbx",
        create_timeout=600.0,
        host_network_policy="unknown",
    ):
        self.image = image
        self.memory = memory
        self.cpus = cpus
        self.sbx_path = sbx_path
        self.create_timeout = create_timeout
        self.host_network_policy = host_network_policy


def dag_run_owner(context):
    """The token of the Dag run that a task belongs to."""
    ti = context["ti"]
    return f"{ti.dag_id}/{ti.run_id}"
