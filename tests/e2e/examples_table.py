"""The README's table of the provider's example Dag files: `python tests/e2e/examples_table.py` writes it anew.

Each row is what `updraft check` (UPDRAFT_BIN) says of one file of the installed provider.
"""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness import provider_examples
from harness.worker import updraft_binary

README = Path(__file__).parents[2] / "README.md"
HEAD = "| example | tasks that run on Updraft | what keeps the others |\n|---|---|---|\n"


def check(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [updraft_binary(), "check", "--json", str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    (file,) = json.loads(done.stdout)["files"]
    return file


def missing_modules(reason: str) -> set[str]:
    """The Python packages that a reason names; of the provider's own bridges to them only where nothing else is named."""
    modules = set(re.findall(r"the module ([\w.]+), which the Dag interpreter does not have", reason))
    return {name.partition(".")[0] for name in modules if not name.startswith("airflow.")} or modules


def short(task: dict[str, Any]) -> str:
    """Why a task does not run, without places."""
    reason = re.sub(r" \(/[^()]*:\d+\)", "", task["reason"])
    reason = re.sub(r"^its code (needs .*?)(, which .*)?$", r"\1", reason)
    reason = re.sub(r" \([\w.]+\)", "", reason)
    operator = f"`{task['operator']}`"
    reason = reason.replace("this operator", operator)
    if reason.startswith("it is"):
        return operator + reason.removeprefix("it")
    return reason.removeprefix("it ").rstrip(".")


def row(path: Path) -> str:
    file = check(path)
    assert file["error"] is None, file
    tasks = [task for dag in file["dags"] for task in dag["tasks"]]
    if not tasks:
        return f"| `{path.stem}` | none | makes no Dag where its optional imports are missing |\n"
    others = [task for task in tasks if not task["native"]]
    needed = set().union(*(missing_modules(task["reason"]) for task in others))
    reasons = [short(task) for task in others if not missing_modules(task["reason"])]
    if needed:
        reasons.append("needs " + ", ".join(f"`{name}`" for name in sorted(needed)))
    ignored = {name for task in tasks for name in task["ignored"]}
    if ignored:
        reasons.append(f"without {', '.join(sorted(ignored))}, which only a Python worker acts on")
    count = "none" if len(others) == len(tasks) else f"{len(tasks) - len(others)} of {len(tasks)}" if others else "all"
    return f"| `{path.stem}` | {count} | {'; '.join(dict.fromkeys(reasons))} |\n"


def table() -> str:
    with ThreadPoolExecutor(2) as pool:
        return HEAD + "".join(pool.map(row, provider_examples.files()))


def written(text: str) -> str:
    """The table as it stands in the README."""
    rows = text.split(HEAD, 1)[1]
    return HEAD + rows[: rows.index("\n\n") + 1]


if __name__ == "__main__":
    text = README.read_text()
    README.write_text(text.replace(written(text), table()))
