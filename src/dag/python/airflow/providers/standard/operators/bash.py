"""`BashOperator`: a shell command."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


def _as_it_is(result):
    return result


class BashOperator(BaseOperator):
    """Runs a command in bash."""

    _updraft_reason = "shell commands are not run natively"
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
