"""`BashOperator`: a shell command."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


def _as_it_is(result):
    return result


class BashOperator(BaseOperator):
    """Runs a command in bash, where the worker allows for that."""

    _updraft_kind = "bash"
    _updraft_reason = "shell commands are off on this worker: [updraft] allow_bash turns them on"
    template_fields = ("bash_command", "env", "cwd")
    template_fields_renderers = {"bash_command": "bash", "env": "json"}
    template_ext = (".sh", ".bash")
    ui_color = "#f0ede4"

    def __init__(
        self,
        *,
        bash_command,
        env=None,
        append_env=False,
        output_encoding="utf-8",
        skip_on_exit_code=99,
        cwd=None,
        output_processor=_as_it_is,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())

    def execute(self, context):
        """Runs the command; the last line that it writes is the result."""
        from airflow.sdk.exceptions import AirflowException, AirflowSkipException
        from updraft_native_hook import ask

        if str(self.output_encoding).lower().replace("_", "-") not in ("utf-8", "utf8", "ascii", "us-ascii"):
            from updraft_unavailable import NotHereError

            raise NotHereError(
                f"output_encoding={self.output_encoding!r} is not supported natively: leave it out, or send this task to "
                "a queue that a Python worker serves"
            )
        inherited, env = self._environment()
        command = {"bash_command": self.bash_command, "env": env, "cwd": self.cwd}
        if self.cwd is not None:
            command["cwd"] = str(self.cwd)
        done = ask("shell", None, command=command, inherited=inherited)
        if "error" in done:
            raise AirflowException(done["error"])
        code = done["exit_code"]
        skips = self.skip_on_exit_code
        if code in (skips if hasattr(type(skips), "__contains__") else (skips,)):
            raise AirflowSkipException(f"Bash command returned exit code {code}. Skipping.")
        if code != 0:
            raise AirflowException(f"Bash command failed. The command returned a non-zero exit code {code}.")
        return self.output_processor(done["output"])

    def _environment(self):
        """What the worker may hand on of its own environment, and what the Dag's author gives."""
        import os

        context = {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW_CTX_")}
        own = {str(name): str(value) for name, value in (self.env or {}).items()}
        inherits = self.env is None or self.append_env
        return dict(os.environ) if inherits else {}, {**own, **context}
