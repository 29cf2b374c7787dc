"""Times the Python provider's validator on the statements of `sql_guard.json` and sets Updraft's guard beside it.

`sql_guard.sh` calls this behind the Criterion benchmark, whose folder is the argument.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

from airflow.providers.common.ai.toolsets.sql import SQLToolset

HERE = Path(__file__).parent
SAMPLES = 20
# What a sample takes at least, in seconds: far above the clock's own step.
SAMPLE_TIME = 0.05


def python_time(sql: str) -> float:
    """Median seconds of one check."""
    toolset = SQLToolset("db", allowed_tables=["customers", "orders", "products"])

    def check(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            toolset._validate_for_execution(sql, dialect="postgres", require_parse=False)
        return time.perf_counter() - start

    check(3)
    times = max(1, round(SAMPLE_TIME / (check(3) / 3)))
    return statistics.median(check(times) / times for _ in range(SAMPLES))


def updraft_time(criterion: Path, name: str) -> float:
    estimates = criterion / "sql_guard" / name / "new" / "estimates.json"
    return json.loads(estimates.read_text())["median"]["point_estimate"] / 1e9


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main() -> None:
    criterion = Path(sys.argv[1])
    print("| statement | Python | Updraft | ratio |\n|---|---|---|---|")
    for name, sql in json.loads((HERE / "sql_guard.json").read_text()).items():
        python, updraft = python_time(sql), updraft_time(criterion, name)
        title = f"{name[2:]} ({len(sql)} characters)"
        print(f"| {title} | {python * 1e6:.0f} µs | {updraft * 1e6:.1f} µs | {python / updraft:.0f} |")
    print(
        f"\nMedians. Python {platform.python_version()}, common-ai {version('apache-airflow-providers-common-ai')},"
        f" sqlglot {version('sqlglot')}; {cpu()}."
    )


if __name__ == "__main__":
    main()
