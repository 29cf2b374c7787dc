"""A real Airflow 3.3.2 on loopback: API server, scheduler, Dag processor; SQLite metadata, EdgeExecutor."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .process import Process, free_port, wait_until

JWT_SECRET = "made-up-for-the-end-to-end-tests-" + "0123456789abcdef" * 4
# How the id of a run begins that names the queue of all its tasks.
QUEUE = "queue-"
ROUTING = f"""
def task_instance_mutation_hook(task_instance, dag_run):
    run_id = task_instance.run_id or ""
    if run_id.startswith("{QUEUE}"):
        task_instance.queue = run_id.removeprefix("{QUEUE}").partition("__")[0]
"""
FINISHED = {"success", "failed", "skipped", "upstream_failed", "removed"}


class ApiError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:1000]}")
        self.status = status


@dataclass(frozen=True)
class Run:
    """One run of one Dag."""

    dag_id: str
    run_id: str


@dataclass
class Log:
    """A task's log as `/api/v2` gives it: one record per line."""

    records: list[dict[str, Any]]

    @property
    def events(self) -> list[str]:
        return [record["event"] for record in self.records]

    @property
    def text(self) -> str:
        return "\n".join(json.dumps(record, ensure_ascii=False) for record in self.records)

    def groups(self) -> list[str]:
        """The titles of the foldable groups, in order."""
        return [event.split("::group::", 1)[1] for event in self.events if "::group::" in event]

    def assert_groups_balance(self) -> None:
        depth = 0
        for event in self.events:
            depth += "::group::" in event
            depth -= "::endgroup::" in event
            assert depth >= 0, f"a group ends that was not begun: {self.events}"
        assert depth == 0, f"a group is left open: {self.events}"


class Airflow:
    """The server side and a client of its public API."""

    def __init__(self, home: Path, dags: Path, otlp_port: int, settings_module: str) -> None:
        self.home = home
        self.dags = dags
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.airflow = str(Path(sys.executable).parent / "airflow")
        self._token = ""
        self._run_count = 0
        self._started = f"{int(time.time())}"
        (home / "config").mkdir(parents=True)
        (home / "config" / "airflow_local_settings.py").write_text(settings_module + ROUTING)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONWARNINGS": "ignore",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__EXECUTOR": "airflow.providers.edge3.executors.EdgeExecutor",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__SECRET_KEY": JWT_SECRET,
            "AIRFLOW__API_AUTH__JWT_SECRET": JWT_SECRET,
            "AIRFLOW__EDGE__API_ENABLED": "True",
            "AIRFLOW__EDGE__API_URL": f"{self.url}/edge_worker/v1/rpcapi",
            "AIRFLOW__EDGE__HEARTBEAT_INTERVAL": "5",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
            "AIRFLOW__TRACES__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{otlp_port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            # Airflow takes plain `otlp` for gRPC whatever the protocol variable says.
            "OTEL_TRACES_EXPORTER": "otlp_proto_http",
            "OTEL_BSP_SCHEDULE_DELAY": "500",
        }
        self.processes: dict[str, Process] = {}

    def start(self) -> None:
        log = self.home / "server-logs" / "migrate.log"
        log.parent.mkdir(parents=True)
        with log.open("wb") as output:
            subprocess.run(
                [self.airflow, "db", "migrate"], env=self.env, stdout=output, stderr=output, check=True, timeout=300
            )
        self.start_api_server()
        self.processes["dag-processor"] = self._spawn("dag-processor", "dag-processor")
        self.start_scheduler()
        self.wait_for_api()

    def start_api_server(self) -> None:
        self.processes["api-server"] = self._spawn(
            "api-server", "api-server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"
        )

    def start_scheduler(self) -> None:
        self.processes["scheduler"] = self._spawn("scheduler", "scheduler")

    def start_triggerer(self) -> None:
        """Not there from the start: most tests need none."""
        self.processes["triggerer"] = self._spawn("triggerer", "triggerer", "--skip-serve-logs")

    def wait_for_api(self) -> None:
        def healthy() -> bool:
            self.require_running()
            return all(self._answers(path) for path in ("/edge_worker/v1/health", "/execution/health"))

        wait_until("the API server", healthy, 180, 0.5)

    def wait_for_dags(self, dag_ids: set[str], timeout: float = 180) -> None:
        def parsed() -> bool:
            self.require_running()
            missing = dag_ids - self.dag_ids()
            self.missing = missing
            return not missing

        try:
            wait_until("the Dags to be parsed", parsed, timeout, 0.5)
        except TimeoutError:
            errors = self.get("/importErrors?limit=100")["import_errors"]
            raise TimeoutError(f"Dags {sorted(self.missing)} did not appear; import errors: {errors}") from None

    def dag_ids(self) -> set[str]:
        """The Dags that were read, from as many pages as Airflow makes of them."""
        found: set[str] = set()
        while True:
            page = self.get(f"/dags?limit=100&order_by=dag_id&offset={len(found)}")
            found |= {dag["dag_id"] for dag in page["dags"]}
            if not page["dags"] or len(found) >= page["total_entries"]:
                return found

    def require_running(self) -> None:
        for process in self.processes.values():
            process.require_running()

    def stop(self) -> None:
        for process in self.processes.values():
            if process.running():
                process.popen.terminate()
        for process in self.processes.values():
            process.stop(5)

    def _spawn(self, name: str, *arguments: str) -> Process:
        return Process(name, [self.airflow, *arguments], self.env, self.home / "server-logs" / f"{name}.log")

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as response:
                return response.status == 200
        except (OSError, urllib.error.URLError):
            return False

    # --- the public API ---

    def request(
        self, method: str, path: str, body: Any = None, accept: str = "application/json", base: str = "/api/v2"
    ) -> Any:
        """One call. A server error is asked again a few times: SQLite is locked now and then."""
        for _ in range(5):
            try:
                return self._request(method, path, body, accept, base)
            except ApiError as error:
                if error.status < 500:
                    raise
                last = error
                time.sleep(1)
        raise last

    def _request(self, method: str, path: str, body: Any, accept: str, base: str) -> Any:
        for fresh in (False, True):
            if fresh or not self._token:
                with urllib.request.urlopen(self.url + "/auth/token", timeout=30) as response:
                    self._token = json.load(response)["access_token"]
            request = urllib.request.Request(
                f"{self.url}{base}{path}",
                method=method,
                data=None if body is None else json.dumps(body).encode(),
                headers={
                    "authorization": f"Bearer {self._token}",
                    "accept": accept,
                    "content-type": "application/json",
                },
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    text = response.read()
                    return json.loads(text) if text and accept == "application/json" else text.decode()
            except urllib.error.HTTPError as error:
                if error.code == 401 and not fresh:
                    continue
                raise ApiError(error.code, error.read().decode(errors="replace")) from error
        raise AssertionError("unreachable")

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def add_connection(self, connection_id: str, **fields: Any) -> None:
        self.request("POST", "/connections", {"connection_id": connection_id, **fields})

    def add_variable(self, key: str, value: str) -> None:
        self.request("POST", "/variables", {"key": key, "value": value})

    def trigger(
        self, dag_id: str, conf: dict[str, Any] | None = None, dated: bool = True, queue: str | None = None
    ) -> Run:
        """Starts a run, with a logical date of its own unless `dated` is false, on the workers of `queue` if it is given."""
        self._run_count += 1
        date = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(minutes=self._run_count)
        run_id = f"{f'{QUEUE}{queue}' if queue else 'e2e'}__{self._started}_{self._run_count}"
        self.request(
            "POST",
            f"/dags/{dag_id}/dagRuns",
            {"dag_run_id": run_id, "logical_date": date.isoformat() if dated else None, "conf": conf or {}},
        )
        return Run(dag_id, run_id)

    def run_state(self, run: Run) -> str:
        return self.get(f"{self._run(run)}")["state"]

    def wait_for_run(self, run: Run, timeout: float = 90) -> str:
        """The final state of a run."""

        def finished() -> str | None:
            self.require_running()
            state = self.run_state(run)
            return state if state in ("success", "failed") else None

        try:
            return wait_until(f"{run} to finish", finished, timeout, 0.3)
        except TimeoutError as error:
            states = {(ti["task_id"], ti["map_index"]): ti["state"] for ti in self.task_instances(run)}
            raise TimeoutError(f"{error}; task states: {states}") from None

    def run_dag(self, dag_id: str, timeout: float = 90, **arguments: Any) -> tuple[Run, str]:
        run = self.trigger(dag_id, **arguments)
        return run, self.wait_for_run(run, timeout)

    def task_instances(self, run: Run) -> list[dict[str, Any]]:
        return self.get(f"{self._run(run)}/taskInstances?limit=200")["task_instances"]

    def task_instance(self, run: Run, task_id: str, map_index: int = -1) -> dict[str, Any]:
        return self.get(self._task(run, task_id, map_index))

    def tries(self, run: Run, task_id: str) -> list[dict[str, Any]]:
        return self.get(f"{self._run(run)}/taskInstances/{task_id}/tries")["task_instances"]

    def wait_for_task(self, run: Run, task_id: str, states: set[str], timeout: float = 60) -> dict[str, Any]:
        def there() -> dict[str, Any] | None:
            self.require_running()
            found = self.task_instance(run, task_id)
            return found if found["state"] in states else None

        return wait_until(f"{task_id} of {run} to be in {sorted(states)}", there, timeout, 0.2)

    def xcoms(self, run: Run, task_id: str, map_index: int = -1) -> dict[str, Any]:
        """All XComs of a task as Airflow stores them."""
        base = f"{self._run(run)}/taskInstances/{task_id}/xcomEntries"
        entries = self.get(f"{base}?map_index={map_index}&limit=100")["xcom_entries"]
        return {
            entry["key"]: self.get(
                f"{base}/{urllib.parse.quote(entry['key'])}?map_index={map_index}&stringify=false&deserialize=false"
            )["value"]
            for entry in entries
            if entry["map_index"] == map_index
        }

    def log(self, run: Run, task_id: str, try_number: int = 1, map_index: int = -1) -> Log:
        """The log of one try, once the worker has said that the job is over: it is complete then, not before."""

        def job_over() -> bool:
            jobs = [
                job
                for job in self.edge(f"/ui/jobs?run_id_pattern={run.run_id}")["jobs"]
                if (job["run_id"], job["task_id"], job["try_number"], job["map_index"])
                == (run.run_id, task_id, try_number, map_index)
            ]
            return all(job["state"] not in ("queued", "restarting", "running") for job in jobs)

        wait_until(f"the job of {task_id} of {run} to be over", job_over, 30)
        text = self.request(
            "GET",
            f"{self._run(run)}/taskInstances/{task_id}/logs/{try_number}?full_content=true&map_index={map_index}",
            accept="application/x-ndjson",
        )
        return Log([json.loads(line) for line in text.splitlines() if line.strip()])

    def edge(self, path: str) -> Any:
        """What the UI's pages on edge workers and jobs show."""
        return self.request("GET", path, base="/edge_worker")

    @staticmethod
    def _run(run: Run) -> str:
        return f"/dags/{run.dag_id}/dagRuns/{urllib.parse.quote(run.run_id)}"

    def _task(self, run: Run, task_id: str, map_index: int) -> str:
        path = f"{self._run(run)}/taskInstances/{task_id}"
        return path if map_index < 0 else f"{path}/{map_index}"
