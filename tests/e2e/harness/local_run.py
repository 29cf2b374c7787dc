"""`updraft run` on a Dag file of one task, without a server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from .worker import updraft_binary


def xcoms_of_the_task(file: Path) -> dict[str, Any]:
    """What the Dag file's only task leaves; it must succeed."""
    home = file.parent
    done = subprocess.run(
        [updraft_binary(), "run", str(file), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "AIRFLOW_HOME": str(home / "airflow")},
    )
    (task,) = json.loads(done.stdout)["tasks"]
    assert task["error"] is None, task
    xcoms: dict[str, Any] = task["xcoms"]
    return xcoms
