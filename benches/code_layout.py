"""Writes benches/code_layout.txt: the functions that a task runs, which the linker then puts side by side.

    benches/code_layout.py [--if-stale] BINARY

Linux maps code into a process 64 kB at a time. Spread over the whole binary, the 4 MB that a task runs bring in six
times as much, which counts as the memory of each task. Wants valgrind, and a release binary.

The names end in hashes that change with the compiler, the release profile and the dependencies. A name that is no
longer there does no harm, but helps nobody: write the list again when Cargo.lock has changed. `--if-stale` writes it
only if the binary lacks many of the names, and tells so by its exit status: 0 when it has written, 3 when there was
nothing to do. After writing, `touch src/main.rs` and build again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYOUT = ROOT / "benches" / "code_layout.txt"
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness.process import Process, free_port, wait_until  # noqa: E402

DAGS = ("customer_insights", "ticket_digest")


def traced(binary: Path, dag: Path, scratch: Path) -> list[set[str]]:
    """The functions that each task process of a local run executes, with a model over HTTP and a database."""
    port = free_port()
    transcript = dag.with_suffix(".transcript.json")
    model = Process(
        "model",
        [sys.executable, "-m", "harness.model_server", str(transcript), "--port", str(port)],
        {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "e2e")},
        scratch / "model.log",
    )
    connection = {
        "conn_type": "pydanticai",
        "password": "sk-made-up-key",
        "host": f"http://127.0.0.1:{port}/v1",
        "extra": {"model": "openai-chat:example"},
    }
    valgrind = "valgrind --tool=callgrind --trace-children=yes --demangle=no --compress-strings=no -q".split()
    try:
        wait_until("the model", lambda: model.require_running() or "is served" in model.log.read_text(), 20)
        supervisor = subprocess.Popen(
            [*valgrind, f"--callgrind-out-file={scratch}/{dag.stem}.%p", str(binary), "run", str(dag)],
            env={
                **os.environ,
                "AIRFLOW_CONN_PYDANTICAI_DEFAULT": json.dumps(connection),
                "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
            },
        )
        if supervisor.wait() != 0:
            raise RuntimeError(f"{dag.name} ended with status {supervisor.returncode}")
    finally:
        model.stop(2)
    traces = [trace for trace in scratch.glob(f"{dag.stem}.*") if trace.suffix != f".{supervisor.pid}"]
    return [
        # A function that calls itself is listed for each depth, as name'2.
        {
            line.removeprefix("fn=").strip().partition("'")[0]
            for line in trace.read_text(errors="replace").splitlines()
            if line.startswith("fn=")
        }
        for trace in traces
    ]


def functions(binary: Path) -> set[str]:
    """All functions of a binary, as its symbols."""
    listed = subprocess.run(["nm", "--defined-only", binary], capture_output=True, text=True, check=True)
    lines = (line.split() for line in listed.stdout.splitlines())
    return {fields[2] for fields in lines if len(fields) == 3 and fields[1] in "tTwW"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--if-stale", action="store_true", help="do nothing while the list fits the binary")
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    there = functions(binary)
    if arguments.if_stale and LAYOUT.exists():
        listed = set(LAYOUT.read_text().split())
        if len(listed & there) > 0.8 * len(listed):
            sys.exit(3)
    runs: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for name in DAGS:
            for functions_of_a_task in traced(binary, ROOT / "dags" / f"{name}.py", Path(scratch)):
                runs.update(functions_of_a_task & there)
    # What all tasks run comes first, so that a task meets little that only others need.
    names = sorted(runs, key=lambda name: (-runs[name], name))
    LAYOUT.write_text("".join(f"{name}\n" for name in names))
    print(f"{len(names)} functions", file=sys.stderr)


if __name__ == "__main__":
    main()
