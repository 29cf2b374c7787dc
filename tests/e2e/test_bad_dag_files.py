"""Dag files that a worker must survive. The server has read the sound version; the worker's copy is spoiled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.worker import Worker

SOUND = (Path(__file__).parent / "dags" / "spoiled.py").read_text()

SPOILED: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "a_syntax_error": (lambda file: file.write_text(SOUND + "\n\ndef broken(:\n    pass\n"), ["spoiled.py", "SyntaxError"]),
    "an_exception": (lambda file: file.write_text(SOUND + "\n\n1 / 0\n"), ["ZeroDivisionError"]),
    "endless_recursion": (
        lambda file: file.write_text("def again(n):\n    return again(n + 1)\n\n\nagain(0)\n"),
        ["recursion"],
    ),
    "deep_json": (lambda file: file.write_text("import json\n\njson.loads('[' * 1_000_000)\n"), ["RecursionError"]),
    "bytes_that_are_not_utf_8": (
        lambda file: file.write_bytes(SOUND.encode() + b"\nNAME = '\xff\xfe'\n"),
        ["utf-8|UTF-8|unicode"],
    ),
    "ten_megabytes": (lambda file: file.write_text(SOUND + "# " + "x" * 78 + "\n" * 10_500_000), ["is too large"]),
    "an_endless_loop": (lambda file: file.write_text("while True:\n    pass\n"), ["time|Time"]),
    "no_such_dag": (lambda file: file.write_text(SOUND.replace('dag_id="spoiled"', 'dag_id="renamed"')), ["which defines"]),
    "no_such_task": (lambda file: file.write_text(SOUND.replace("work()", "toil()")), ["work"]),
    "no_such_file": (lambda file: file.unlink(), ["spoiled"]),
}


@pytest.fixture
def spoiled(worker_dags: Path) -> Iterator[Path]:
    file = worker_dags / "spoiled.py"
    yield file
    file.write_text(SOUND)


@pytest.mark.updraft_only
@pytest.mark.parametrize("name", SPOILED)
def test_a_bad_dag_file_fails_its_task_with_a_clear_error(
    airflow: Airflow, worker: Worker, spoiled: Path, name: str
) -> None:
    spoil, said = SPOILED[name]
    spoil(spoiled)
    run, state = airflow.run_dag("spoiled", timeout=90)
    log = airflow.log(run, "work")
    assert state == "failed", log.text
    errors = [json.dumps(record) for record in log.records if record.get("level") in ("error", "critical")]
    for text in said:
        assert any(choice in error for error in errors for choice in text.split("|")), log.text
    assert "panicked" not in log.text, log.text
    assert worker.process.running()


def test_the_worker_goes_on_after_all_of_them(airflow: Airflow, worker: Worker) -> None:
    run, state = airflow.run_dag("spoiled")
    assert state == "success", airflow.log(run, "work").text
    assert airflow.xcoms(run, "work")["return_value"] == "well"
