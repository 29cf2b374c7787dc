"""The worker under test: Updraft, or Airflow's own edge worker as the yardstick."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .airflow import JWT_SECRET, Airflow
from .process import Process, wait_until

# `python` runs the scenarios that both can run on Airflow's own worker: it shows what the expectations rest on.
KIND = os.environ.get("E2E_WORKER", "updraft")


def updraft_binary() -> str:
    path = os.environ.get("UPDRAFT_BIN")
    if not path:
        raise RuntimeError("set UPDRAFT_BIN to the updraft binary that the tests are to run")
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"UPDRAFT_BIN={path} is not an executable file")
    return path


class Worker:
    """One worker process with a home folder, Dag folder and name of its own."""

    def __init__(
        self,
        airflow: Airflow,
        home: Path,
        dags: Path,
        name: str,
        queue: str,
        concurrency: int = 4,
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        without: Sequence[str] = (),
        kind: str | None = None,
        program: str | None = None,
    ) -> None:
        self.airflow = airflow
        self.name = name
        home.mkdir(parents=True)
        self.home = home
        self.dags = dags
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{airflow.url}/execution/",
            "AIRFLOW__API_AUTH__JWT_SECRET": JWT_SECRET,
            "AIRFLOW__EDGE__API_URL": f"{airflow.url}/edge_worker/v1/rpcapi",
            "AIRFLOW__EDGE__JOB_POLL_INTERVAL": "1",
            "AIRFLOW__EDGE__HEARTBEAT_INTERVAL": "5",
            **(env or {}),
        }
        for variable in without:
            del self.env[variable]
        if (kind or KIND) == "python":
            # Forked from the worker's event loop, pydantic-ai refuses to run: "This event loop is already running".
            self.env["AIRFLOW__CORE__EXECUTE_TASKS_NEW_PYTHON_INTERPRETER"] = "True"
            self.env["AIRFLOW__CORE__EXECUTOR"] = "airflow.providers.edge3.executors.EdgeExecutor"
            self.env["PYTHONWARNINGS"] = "ignore"
            command = [str(Path(sys.executable).parent / "airflow"), "edge", "worker"]
            command += ["-q", queue, "-c", str(concurrency), "-H", name]
        else:
            command = [program or updraft_binary(), "worker", "--queues", queue]
            command += ["--concurrency", str(concurrency), *arguments]
            if "--worker-name" not in arguments:
                command += ["--worker-name", name]
        self.process = Process(f"worker {name}", command, self.env, home / "worker.log")

    def wait_until_registered(self) -> None:
        def there() -> bool:
            self.process.require_running()
            return self.state() in ("idle", "running")

        wait_until(f"worker {self.name} to register", there, 60)

    def state(self) -> str | None:
        """The state that Airflow shows for this worker."""
        workers = self.airflow.edge("/ui/worker")["workers"]
        return next((worker["state"] for worker in workers if worker["worker_name"] == self.name), None)

    def task_processes(self) -> list[int]:
        return self.process.children()

    def stop(self) -> None:
        if self.process.running():
            self.process.signal(signal.SIGTERM)
        self.process.stop(15)
