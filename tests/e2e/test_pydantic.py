"""The worker's stand-in for pydantic against pydantic itself: schemas, dumps and error lists."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pydantic_cases
from harness.local_run import xcoms_of_the_task

DAG = """
from airflow.sdk import dag, task

import pydantic_cases


@dag()
def cases():
    @task
    def outcomes():
        return pydantic_cases.outcomes()

    outcomes()


cases()
"""


def in_a_task(folder: Path) -> dict[str, Any]:
    """What the stand-in makes of the cases."""
    (folder / "cases.py").write_text(DAG)
    shutil.copy(pydantic_cases.__file__, folder)
    found: dict[str, Any] = json.loads(xcoms_of_the_task(folder / "cases.py")["return_value"])
    return found


def test_models_and_values_come_to_what_pydantic_makes_of_them(tmp_path: Path) -> None:
    real = json.loads(pydantic_cases.outcomes())
    ours = in_a_task(tmp_path)
    pairs = 0
    differences = []
    for name, expected in real.items():
        assert isinstance(expected, dict), f"{name}: {expected}"
        found = ours[name]
        if isinstance(found, str):
            differences.append(f"{name}: {found}")
            continue
        pairs += 1
        if found["schema"] != expected["schema"]:
            differences.append(f"{name}: schema {found['schema']} instead of {expected['schema']}")
        for text, result in expected["results"].items():
            pairs += 1
            if json.dumps(found["results"][text]) != json.dumps(result):
                differences.append(f"{name} {text}: {found['results'][text]} instead of {result}")
    assert not differences, "\n".join(differences)
    assert pairs > 200


def test_the_stand_in_says_which_pydantic_it_stands_in_for() -> None:
    source = Path(__file__).parent.parent.parent / "src" / "dag" / "python" / "pydantic"
    (claimed,) = set(re.findall(r"errors\.pydantic\.dev/([0-9.]+)/", (source / "errors.py").read_text()))
    import pydantic

    assert pydantic.VERSION.startswith(f"{claimed}.")
