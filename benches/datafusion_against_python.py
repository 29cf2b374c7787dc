"""Asks Updraft's DataFusionToolset and the Python provider's the same about a Parquet file of five million rows.

    datafusion_against_python.py UPDRAFT      UPDRAFT is a release binary

Every question is asked in a process of its own: the first answer, for which the engine is made, then more of the same.
Updraft's toolset is offered by `updraft mcp serve` and asked over standard input, which counts; the provider's is called
where it is. Memory is the peak of resident memory over what the process had before the first question.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROWS = 5_000_000
TIMES = 5
QUESTIONS = {
    "all columns of any rows": "SELECT * FROM trips",
    "rows that are rare": "SELECT * FROM trips WHERE fare > 99.9999",
    "the largest": "SELECT id, fare FROM trips ORDER BY fare DESC LIMIT 10",
    "sums of 199 groups": "SELECT zone, count(*), sum(fare), avg(distance) FROM trips GROUP BY zone",
    "distinct over all rows": "SELECT count(DISTINCT passenger) FROM trips",
}


COLUMNS = """
    value AS id,
    to_timestamp_micros(1704067200000000 + value * 48271 % 31622400 * 1000000) AS started,
    CAST(60 + value * 7919 % 7140 AS INT) AS seconds,
    CAST(value * 104729 % 199 AS INT) AS zone,
    value * 15485863 % 40000000 / 1000000.0 AS distance,
    value * 32452843 % 100000000 / 1000000.0 AS fare,
    value * 49979687 % 1000003 AS passenger,
    value % 10 < 7 AS card,
    concat('trip ', value % 1000) AS note,
    to_hex(value * 86028121 % 2147483648) AS plate
"""


def make(file: str) -> None:
    """Written by pyarrow with its defaults, as most Parquet files are."""
    import pyarrow.parquet as pq
    from datafusion import SessionContext

    rows = SessionContext().sql(f"SELECT {COLUMNS} FROM generate_series(1, {ROWS})")
    pq.write_table(rows.to_arrow_table(), file)


def memory(name: str, process: int | str = "self") -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def ask_updraft(binary: str, file: str, sql: str) -> dict:
    spec = Path(file).with_name("toolsets.yaml")
    source = {"conn_id": "none", "table_name": "trips", "uri": f"file://{file}", "format": "parquet"}
    datasets = [{"class": "DataSourceConfig", "arguments": source}]
    # JSON is YAML.
    toolset = {"class": "DataFusionToolset", "arguments": {"datasource_configs": datasets}}
    spec.write_text(json.dumps({"toolsets": [toolset]}))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([binary, "mcp", "serve", "--spec", spec], text=True, **pipes) as server:

        def send(method: str, params: dict, **number: int) -> None:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **number}) + "\n")
            server.stdin.flush()

        def call(number: int, method: str, params: dict) -> dict:
            send(method, params, id=number)
            line = server.stdout.readline()
            if not line:
                sys.exit(server.stderr.read())
            return json.loads(line)["result"]

        client = {"name": "benchmark", "version": "1"}
        call(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        send("notifications/initialized", {})
        call(1, "tools/list", {})
        before = memory("VmRSS", server.pid)
        seconds = []
        for number in range(TIMES + 1):
            start = time.perf_counter()
            answer = call(number + 2, "tools/call", {"name": "query", "arguments": {"sql": sql}})
            seconds.append(time.perf_counter() - start)
            text = answer["content"][0]["text"]
            if not text.startswith('{"columns"'):
                sys.exit(text)
        added = memory("VmHWM", server.pid) - before
        server.stdin.close()
    return {"seconds": seconds, "added": added}


def ask_python(file: str, sql: str) -> None:
    import asyncio
    import logging
    import os
    import warnings

    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp()
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    warnings.simplefilter("ignore")
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from airflow.providers.common.ai.toolsets.datafusion import DataFusionToolset
    from airflow.providers.common.sql.config import DataSourceConfig

    logging.disable(logging.CRITICAL)
    source = DataSourceConfig(conn_id="none", table_name="trips", uri=f"file://{file}", format="parquet")
    before = memory("VmRSS")
    toolset = DataFusionToolset([source])
    seconds = []
    for _ in range(TIMES + 1):
        start = time.perf_counter()
        answer = asyncio.run(toolset.execute_tool("query", {"sql": sql}, ctx=None, tool=None))
        seconds.append(time.perf_counter() - start)
        if not answer.startswith('{"columns"'):
            sys.exit(answer)
    answer_to.write(json.dumps({"seconds": seconds, "added": memory("VmHWM") - before}))
    answer_to.close()


def figures(told: dict) -> tuple[float, float, float]:
    """First answer and median of the later ones in ms, memory in MB."""
    first, *later = told["seconds"]
    return first * 1e3, statistics.median(later) * 1e3, told["added"] / 1e6


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main() -> None:
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/trips.parquet"
        make(file)
        print("| question | | first answer | later ones | added memory |\n|---|---|---|---|---|")
        for title, sql in QUESTIONS.items():
            updraft = figures(ask_updraft(binary, file, sql))
            ask = [sys.executable, __file__, "ask", file, sql]
            python = figures(json.loads(subprocess.run(ask, check=True, stdout=subprocess.PIPE).stdout))
            for name, (first, later, added) in (("Python", python), ("Updraft", updraft)):
                print(f"| {title if name == 'Python' else ''} | {name} | {first:.0f} ms | {later:.1f} ms | {added:.0f} MB |")
        size = Path(file).stat().st_size / 1e6
    print(
        f"\n{ROWS:,} rows, 10 columns, {size:.0f} MB of Parquet on the local disk, `max_rows=50`; medians of {TIMES}. "
        f"Python {platform.python_version()}, datafusion {version('datafusion')}, "
        f"common-ai {version('apache-airflow-providers-common-ai')}; {cpu()}."
    )


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        ask_python(sys.argv[2], sys.argv[3])
    else:
        main()
