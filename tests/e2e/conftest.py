"""The session: one Airflow, one model, one OTLP receiver, one worker; each test adds what it needs.

Logs stay under the folder that the session prints at its end when a test fails. `E2E_DIR` names a folder to keep.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import provider_examples
from harness.airflow import Airflow
from harness.model_server import ModelServer
from harness.otlp import OtlpReceiver
from harness.worker import KIND, Worker

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="session")
def scratch(request: pytest.FixtureRequest) -> Iterator[Path]:
    given = os.environ.get("E2E_DIR")
    folder = Path(given) if given else Path(tempfile.mkdtemp(prefix="updraft-e2e-"))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    if request.session.testsfailed:
        print(f"\nlogs of this run: {folder}")
    elif not given:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def otlp() -> Iterator[OtlpReceiver]:
    receiver = OtlpReceiver()
    yield receiver
    receiver.close()


@contextmanager
def servers(name: str) -> Iterator[dict[str, str]]:
    """What servers/NAME.sh starts: the ports and addresses that it prints."""
    script = str(HERE.parent / "servers" / f"{name}.sh")
    with tempfile.TemporaryDirectory(prefix=f"updraft-{name}-") as folder:
        # Some run as users of their own, who must get there.
        Path(folder).chmod(0o755)
        started = subprocess.run(
            [script, "start", folder, str(os.getpid())], stdout=subprocess.PIPE, text=True, check=True, timeout=120
        )
        try:
            yield dict(line.split("=", 1) for line in started.stdout.splitlines())
        finally:
            subprocess.run([script, "stop", folder], check=True, timeout=60)


@pytest.fixture(scope="session")
def database_servers() -> Iterator[dict[str, str]]:
    """A fresh PostgreSQL and a fresh MariaDB."""
    with servers("databases") as there:
        yield there


@pytest.fixture(scope="session")
def object_stores() -> Iterator[dict[str, str]]:
    """Servers that speak as Amazon S3 and Google Cloud Storage do."""
    with servers("stores") as there:
        yield there


@pytest.fixture(autouse=True)
def every_tool_call_has_its_result(model: ModelServer) -> Iterator[None]:
    model.violations.clear()
    yield
    assert model.violations == []


def readme_policy() -> str:
    """The cluster policy as the README prints it: what readers copy is what is tested."""
    text = (ROOT / "README.md").read_text()
    found = re.search(r"airflow_local_settings\.py.*?```python\n(.*?)\n *```", text, re.S)
    assert found, "README.md shows no airflow_local_settings.py"
    return textwrap.dedent(found.group(1))


@pytest.fixture(scope="session")
def server_dags(scratch: Path) -> Path:
    """The Dag folder of the server: the examples that ship with the project and the scenarios of these tests."""
    folder = scratch / "dags"
    shutil.copytree(ROOT / "dags", folder)
    shutil.copytree(HERE / "dags", folder, dirs_exist_ok=True)
    provider_examples.copy_to(folder / "provider")
    # Its tasks are for the program of the example alone.
    harbour = (ROOT / "examples" / "harbour.py").read_text()
    (folder / "harbour.py").write_text(harbour.replace('queue="agents"', 'queue="rust"'))
    # Beside the Dag folders of server and worker alike, as in the repository.
    shutil.copytree(ROOT / "skills", scratch / "skills")
    return folder


@pytest.fixture(scope="session")
def worker_dags(scratch: Path, server_dags: Path) -> Path:
    """The worker's own copy, so that a test can spoil a file there which the server has read already."""
    folder = scratch / "worker-dags"
    shutil.copytree(server_dags, folder)
    return folder


@pytest.fixture(scope="session")
def airflow(scratch: Path, server_dags: Path, worker_dags: Path, otlp: OtlpReceiver) -> Iterator[Airflow]:
    server = Airflow(scratch / "server", server_dags, otlp.port, readme_policy())
    try:
        server.start()
        dag_ids = set()
        for file in server_dags.glob("*.py"):
            dag_ids |= set(re.findall(r'dag_id="(\w+)"', file.read_text())) or {file.stem}
        dag_ids |= {"everyday_made_one", "everyday_made_two"}
        server.wait_for_dags(dag_ids)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def worker_env(model: ModelServer, worker_dags: Path, otlp: OtlpReceiver) -> dict[str, str]:
    """What every worker of the session has in its environment."""
    database = worker_dags / "data" / "shop.db"
    return {
        "AIRFLOW_CONN_PYDANTICAI_DEFAULT": (
            '{"conn_type": "pydanticai", "password": "sk-made-up-key", "host": "%s",'
            ' "extra": {"model": "openai-chat:example"}}' % model.base_url
        ),
        "AIRFLOW_CONN_SHOP": '{"conn_type": "sqlite", "host": "%s"}' % database,
        # The environment of these tests is the one that has FastMCP.
        "AIRFLOW_CONN_DOCK": json.dumps(
            {
                "conn_type": "mcp",
                "extra": {
                    "transport": "stdio",
                    "command": sys.executable,
                    "args": [str(HERE.parent / "servers" / "mcp_dock.py"), "stdio"],
                    "timeout": 60,
                },
            }
        ),
        "AIRFLOW_CONN_DOCK_VAULT": "generic://:made-up-dock-token@/",
        "AIRFLOW_CONN_BAD_URI": "pydanticai://user:very-made-up@127.0.0.1:not-a-port/",
        "AIRFLOW_CONN_BAD_JSON": '{"conn_type": "pydanticai", "password": "very-made-up',
        # Short, so that the endless loop of the bad Dag files takes no longer; Python may need that long for any file.
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "8" if KIND == "updraft" else "120",
        "AIRFLOW__WORKERS__MISSING_DAG_RETRY_DELAY": "1",
        "AIRFLOW__TRACES__OTEL_ON": "True",
        "AIRFLOW__COMMON_AI__OTEL_EXPORT_ENABLED": "True",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{otlp.port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_EXPORTER": "otlp_proto_http",
        "OTEL_BSP_SCHEDULE_DELAY": "500",
    }


@pytest.fixture(scope="session")
def worker(airflow: Airflow, scratch: Path, worker_dags: Path, worker_env: dict[str, str]) -> Iterator[Worker]:
    """The worker of the queue `agents`, there for the whole session: it must outlive every bad input."""
    made = Worker(airflow, scratch / "worker", worker_dags, "agents-1", "agents", concurrency=4, env=worker_env)
    try:
        made.wait_until_registered()
        yield made
        assert made.process.running(), made.process.tail()
    finally:
        made.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if KIND == "python" and item.get_closest_marker("updraft_only"):
            item.add_marker(pytest.mark.skip(reason="a property of Updraft alone"))


# Rows of the table of faults, which is printed at the end.
FAULTS = pytest.StashKey[list[tuple[str, ...]]]()


@pytest.fixture(scope="session")
def table(request: pytest.FixtureRequest) -> list[tuple[str, ...]]:
    head = [("fault", "tasks", "requests that met it", "what came of it"), ("---",) * 4]
    return request.config.stash.setdefault(FAULTS, head)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for row in config.stash.get(FAULTS, []):
        terminalreporter.write_line("| " + " | ".join(row) + " |")
