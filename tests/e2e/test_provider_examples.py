"""The provider's own example Dags and what else its documentation shows, unmodified, on Updraft and, ten of them, on Airflow's own worker beside it.

One scripted model serves all of them: it knows a conversation by how its prompt begins.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from harness import provider_examples
from harness.airflow import Airflow, Run
from harness.local_run import xcoms_of_the_task
from harness.model_server import ModelServer, Turn, call, say
from harness.worker import KIND, Worker

TESTS = Path(__file__).parent.parent
SPLUNK_KEY = "made-up-splunk-key"
# The folder that example_agent's last Dag but one writes to.
SESSIONS = Path("/tmp/airflow_agent_sessions")


@dataclass
class Talk:
    """What the model says, and what each tool call is answered (a part of it)."""

    turns: list[Turn]
    results: list[str] = field(default_factory=list)


def final(**arguments: Any) -> Talk:
    return Talk([call("final_result", **arguments)])


def answer(text: str) -> Talk:
    return Talk([say(text)])


QUERY = "SELECT c.name, sum(o.total) AS total FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY 1 ORDER BY 2 DESC"
# By the beginning of the first message of the user.
TALKS = {
    # example_quickstart, example_llm, example_llm_classification, example_llm_analysis_pipeline
    "Summarize these release notes in two": answer("Retries are smarter. Python 3.9 is gone."),
    "Summarize the key findings from the Q4": answer("Revenue grew by a tenth."),
    "Extract all named entities from the article": final(names=["Ada"], locations=["London"]),
    "Extract entities from: Alice visited": final(names=["Alice", "Bob"], locations=["Paris", "London"]),
    "Write a haiku about data pipelines": answer("Rows flow in the night"),
    "Summarize this article: Apache Airflow": answer("It runs Dags."),
    "Summarize the attached design doc": answer("One, two, three."),
    "Summarize the trade-offs of a message": answer("Queues wait, calls do not."),
    "Classify this incident:\nScheduler": final(response="critical"),
    "Analyze this support ticket:": final(
        priority="high", category="bug", summary="It is slow.", suggested_action="Look at it."
    ),
    # example_llm_branch, example_decision_model
    "User says: 'My password reset email": final(response="handle_auth"),
    "This product is great but shipping": final(response=["handle_positive", "handle_shipping"]),
    "Route this support ticket: I was": final(response="handle_billing"),
    "Classify this review: Great product": final(response=["handle_positive", "handle_packaging"]),
    "Task export_report failed": final(response="grant_bucket_write"),
    "Task load_orders failed: psycopg2.OperationalError: connection refused": final(response="resource"),
    # example_llm_fallback, example_pydantic_ai_hook, example_pydantic_ai_agent
    "Is a raven a bird?": answer("Yes."),
    "Apache Airflow is a platform for": answer("A platform."),
    "Find the top 10 customers by revenue": final(query="SELECT 1", explanation="It is short."),
    "Which customers have spent the most?": Talk(
        [call("list_tables"), call("query", sql=QUERY), say("Ada.")], ['["customers", "orders"]', '[["Ada","412.50"]']
    ),
    "Apache Airflow is an open-source platform": answer("Open source."),
    "Does the September report's revenue match": Talk(
        [call("read_file", path="2026-09.txt"), call("query", sql="SELECT sum(total) FROM orders"), say("It does.")],
        ["Revenue in September: 1162.50", '[["1162.50"]]'],
    ),
    # example_sql_toolset, example_agent
    "What was last week's revenue by region": Talk(
        [
            call("list_tables"),
            call("query", sql="SELECT amount FROM salaries"),
            call("query", sql="SELECT json_build_object('total', sum(total)) FROM orders"),
            say("1162.50 in all."),
        ],
        ['["customers", "orders"]', "not in the allowed tables list: salaries", '[[{"total":1162.5'],
    ),
    "What are the top 5 customers by order": Talk(
        [call("get_schema", table_name="customers"), call("query", sql=QUERY), say("Ada and Belém.")],
        ['{"name":"name","type":"', '[["Ada","412.50"],["Belém","387.50"]'],
    ),
    "What endpoints are available and what": Talk(
        [call("http_run", endpoint="status"), say("Only /status.")], ["<Response [200]>"]
    ),
    "Which models are available?": Talk([call("http_run", endpoint="v1/models"), say("One.")], ["<Response [200]>"]),
    "Answer this question about our orders data": Talk(
        [call("query", sql="SELECT count(*) FROM orders"), say("Three orders.")], ['[[3]]']
    ),
    "Analyze: What are the trending products": Talk(
        [
            call("query", sql="SELECT count(*) FROM orders"),
            call("final_result", summary="Pens.", top_items=["pen", "ink"], row_count=3),
        ],
        ['[[3]]'],
    ),
    "Investigate: Summarize order trends": Talk(
        [call("check_query", sql="SELECT id FROM orders"), say("They grow.")], ['{"valid": true}']
    ),
    "And what did I ask you a moment ago?": answer("Nothing yet."),
    "Draft a reply for: Where is my order?": answer("It is on its way."),
    # example_agent_durable, example_agent_recovery
    "What was our total revenue last month?": Talk(
        [call("query", sql="SELECT sum(total) FROM orders"), say("1162.50.")], ['[["1162.50"]]']
    ),
    "Which region placed the most orders": Talk(
        [call("query", sql="SELECT count(*) FROM orders"), say("North.")], ["[[3]]"]
    ),
    # example_object_storage_toolset, example_datafusion_toolset
    "Summarize revenue and the biggest changes": Talk(
        [call("list_files"), call("read_file", path="2026-09.txt"), say("1162.50 (2026-09.txt).")],
        ['"name": "2026-09.txt"', "Revenue in September: 1162.50"],
    ),
    "Summarize the September finance report": Talk(
        [call("reports_read_file", path="2026-09.txt", limit=1), say("Good.")], ["Revenue in September: 1162.50"]
    ),
    "Which region had the highest return rate": Talk(
        [
            call("list_tables"),
            call("query", sql="SELECT s.region FROM sales s JOIN returns r ON r.region = s.region ORDER BY r.items DESC"),
            say("North."),
        ],
        ['["returns", "sales"]', '[["north"],["south"]]'],
    ),
    # example_mcp
    "What tools are available? Run the hello": Talk([call("hello", name="Ada"), say("Hello!")], ["Hello, Ada!"]),
    "Get the weather in London and run": Talk(
        [call("weather_get_forecast", city="London"), call("code_calculate", base=2, exponent=10), say("Rain, 1024.")],
        ['"rain":true', "1024"],
    ),
    "Will it rain in London tomorrow?": Talk([call("get_forecast", city="London"), say("Yes.")], ['"rain":true']),
    "Investigate the ticket and summarize": Talk(
        [call("search_ticket", text="disk"), say("A full disk.")], ["disk: found with ***"]
    ),
    # documented_toolsets
    "Documented: hook": Talk([call("http_run", endpoint="status"), say("hook.")], ["<Response [200]>"]),
    "Documented: several_schemas": Talk(
        [
            call("list_tables"),
            call("get_schema", table_name="MODEL_CRM.sf_astro_orgs"),
            say("several_schemas."),
        ],
        ['["MODEL_ASTRO.deployment_image_details", "MODEL_CRM.sf_astro_orgs"]', '{"name":"id","type":"INTEGER"}'],
    ),
    "Documented: files": Talk(
        [call("query", sql="SELECT max(s.items) FROM sales s JOIN returns r ON r.region = s.region"), say("files.")],
        ["[[20]]"],
    ),
    "Documented: logged": Talk([call("list_tables"), say("logged.")], ['["customers", "orders", "salaries"]']),
    "Documented: mcp": Talk([call("weather_hello"), say("mcp.")], ["Hello, world!"]),
    # example_agent_skills, example_custom_toolset
    "How many orders did our top 5 customers": Talk(
        [call("load_skill", skill_name="sql-reporting"), call("query", sql=QUERY), say("Three.")],
        ["<name>sql-reporting</name>", '[["Ada","412.50"]'],
    ),
    "Review this query against our SQL": Talk(
        [call("list_skills"), call("load_skill", skill_name="sql-reporting"), say("Name the columns.")],
        ["sql-reporting", "<name>sql-reporting</name>"],
    ),
    "What is the latest release of apache": Talk(
        [
            call("get_package", name="../secret"),
            call("get_package", name="apache-airflow-providers-common-ai"),
            call("get_package", name="nowhere"),
            say("1.0.0, on Python 3.10 and later."),
        ],
        ["string_pattern_mismatch", '"version":"1.0.0"', "PyPI has no 'nowhere'"],
    ),
}

# What the tasks of each Dag return that say whether all went well.
RETURNED: dict[str, dict[str, Any]] = {
    "quickstart_llm": {"publish": {"summary": "Retries are smarter. Python 3.9 is gone.", "characters": 40}},
    "example_llm_operator": {"summarize": "Revenue grew by a tenth."},
    "example_llm_operator_structured": {},
    "example_llm_operator_model_settings": {"creative_writing": "Rows flow in the night"},
    "example_llm_decorator": {"summarize": "It runs Dags."},
    "example_llm_decorator_structured": {},
    "example_llm_operator_usage_limits": {"capped_summary": "One, two, three."},
    "example_llm_operator_templated_usage_limits": {"capped_summary": "Queues wait, calls do not."},
    "example_llm_classification": {"classify_incident": "critical"},
    "example_llm_analysis_pipeline": {},
    "example_llm_branch_operator": {"handle_auth": "Handling auth issue"},
    "example_llm_branch_descriptions": {"handle_auth": "Handling auth issue"},
    "example_llm_branch_multi": {
        "handle_positive": "Processing positive feedback",
        "handle_shipping": "Escalating shipping issue",
    },
    "example_llm_branch_decorator": {"handle_billing": "Handling billing issue"},
    "example_llm_branch_decorator_multi": {"handle_packaging": "Escalating packaging issue"},
    "example_decision_model_branch": {"grant_bucket_write": "Adding s3:PutObject for the task role"},
    "example_decision_model_confidence": {
        "classify": {"category": "resource", "confidence": None},
        "act": "Paging a human: the classification was a coin flip",
    },
    "example_llm_fallback": {"summarize_through_the_chain": "Revenue grew by a tenth."},
    "example_llm_fallback_operator_argument": {"summarize_with_an_operator_owned_chain": "Revenue grew by a tenth."},
    "example_llm_fallback_explicit_chain": {"classify_with_an_explicit_chain": "Yes."},
    "example_pydantic_ai_hook": {"generate_summary": "A platform."},
    "example_pydantic_ai_structured_output": {"generate_sql": {"query": "SELECT 1", "explanation": "It is short."}},
    "example_task_with_toolsets": {"analyze_revenue": "Ada."},
    "example_pydantic_ai_spec_file": {"summarize_with_additional_instructions": "Open source."},
    "example_pydantic_ai_agent": {"run_pydantic_ai_agent": "It does."},
    "example_sql_toolset_restricted": {"revenue_by_region": "1162.50 in all."},
    "example_agent_operator_sql": {"analyst": "Ada and Belém."},
    "example_agent_operator_hook": {"api_explorer": "Only /status."},
    "example_agent_self_hosted": {"list_models": "One."},
    "example_agent_decorator": {"analyze": "Three orders."},
    "example_agent_structured_output": {},
    "example_agent_chain": {"send_report": "They grow."},
    "example_agent_session": {"ask": "Nothing yet."},
    "example_agent_dynamic_system_prompt": {"draft_reply": "It is on its way."},
    "example_agent_durable_operator": {"durable_analyst": "Ada and Belém."},
    "example_agent_durable_decorator": {"analyze": "Three orders."},
    "example_airflow_durability_capability": {"analyze": "1162.50."},
    "example_agent_recovery": {"investigate_orders": "North."},
    "example_why_common_ai": {"check_report": "It does."},
    "example_object_storage_toolset": {"summarize_month": "1162.50 (2026-09.txt)."},
    "example_object_storage_toolset_restricted": {"read_finance_reports": "Good."},
    "example_datafusion_toolset_restricted": {"returns_by_region": "North."},
    "example_mcp_toolset": {"mcp_agent": "Hello!"},
    "example_mcp_multiple_servers": {"multi_mcp_agent": "Rain, 1024."},
    "example_mcp_filtered_tools": {"forecast_agent": "Yes."},
    "example_mcp_stdio_env_provider": {"stdio_env_agent": "A full disk."},
    "example_agent_skills_local": {"reporter": "Three."},
    "example_agent_skills_restricted": {"report_writer": "Name the columns."},
    "documented_toolsets": {name: f"{name}." for name in ("hook", "several_schemas", "files", "logged", "mcp")},
    "example_custom_toolset": {"check_package": "1.0.0, on Python 3.10 and later."},
}
# Those that need something that is not on loopback: a repository of github.com.
ELSEWHERE = {"example_agent_skills_git"}

ON_BOTH = [
    "quickstart_llm",
    "example_sql_toolset_restricted",
    "example_agent_operator_sql",
    "example_agent_operator_hook",
    "example_agent_structured_output",
    "example_llm_operator_structured",
    "example_llm_branch_multi",
    "example_task_with_toolsets",
    "example_mcp_filtered_tools",
    "example_agent_skills_restricted",
]


def first_prompt(request: dict[str, Any]) -> str:
    return next(message["content"] for message in request["messages"] if message["role"] == "user")


def talk_of(request: dict[str, Any]) -> tuple[str, Talk]:
    prompt = first_prompt(request)
    ((start, talk),) = [(start, talk) for start, talk in TALKS.items() if prompt.startswith(start)]
    return start, talk


class Api(BaseHTTPRequestHandler):
    """What `my_api` and `pypi` name."""

    def do_GET(self) -> None:
        found: Any = None
        if self.path == "/v1/models":
            found = {"data": [{"id": "one"}]}
        elif self.path == "/pypi/apache-airflow-providers-common-ai/json":
            info = {"name": "common-ai", "version": "1.0.0", "summary": "AI.", "requires_python": ">=3.10"}
            found = {"info": info, "urls": []}
        self._send(found)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._send({"status": "well"} if self.path == "/status" else None)

    def _send(self, found: Any) -> None:
        body = json.dumps(found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def api() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def put(url: str, content: bytes) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    with urlopen(Request(url, data=content, method="PUT", headers=headers), timeout=20) as answered:
        assert answered.status == 200


@pytest.fixture(scope="module")
def reports(object_stores: dict[str, str]) -> str:
    """The server of the finance reports."""
    import pyarrow
    import pyarrow.parquet

    server = object_stores["UPDRAFT_TEST_S3_URL"]
    sales = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"region": ["north", "south"], "items": [10, 20]}), sales)
    put(f"{server}/acme-reports", b"")
    put(f"{server}/acme-reports/finance/2026-09.txt", b"Revenue in September: 1162.50\nA third more than in August.\n")
    put(f"{server}/my-bucket", b"")
    for folder in ("acme-reports/finance", "my-bucket/data"):
        put(f"{server}/{folder}/sales/1.parquet", sales.getvalue())
        put(f"{server}/{folder}/returns/1.csv", b"region,items\nnorth,5\nsouth,1\n")
    return server


@pytest.fixture(scope="module")
def examples(airflow: Airflow, database_servers: dict[str, str], reports: str, api: int) -> Airflow:
    """Airflow with the Dags read and everything there that their connections name."""
    psql = ["psql", "-h", "127.0.0.1", "-p", database_servers["UPDRAFT_TEST_POSTGRES_PORT"], "-U", "updraft"]
    setup = (
        "CREATE TABLE customers (id integer PRIMARY KEY, name text);"
        "CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer, total numeric(10, 2));"
        "CREATE TABLE salaries (who text, amount numeric);"
        'CREATE SCHEMA "MODEL_ASTRO"; CREATE TABLE "MODEL_ASTRO".deployment_image_details (id integer);'
        'CREATE SCHEMA "MODEL_CRM"; CREATE TABLE "MODEL_CRM".sf_astro_orgs (id integer);'
        "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Belém'), (3, '日本');"
        "INSERT INTO orders VALUES (1, 1, 412.50), (2, 2, 387.50), (3, 3, 362.50);"
    )
    for database, sql in (("postgres", "CREATE DATABASE examples"), ("examples", setup)):
        subprocess.run([*psql, "-q", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql], check=True, timeout=60)
    for conn_id in ("postgres_default", "my_database", "sql_default", "warehouse", "warehouse_agent_reader", "snowflake_hq"):
        airflow.add_connection(
            conn_id,
            conn_type="postgres",
            host="127.0.0.1",
            port=int(database_servers["UPDRAFT_TEST_POSTGRES_PORT"]),
            login="updraft",
            password="made-up",
            schema="examples",
        )
    for conn_id in ("aws_default", "aws_reports_reader"):
        extra = {"endpoint_url": reports, "endpoint": reports, "region_name": "eu-north-1", "region": "eu-north-1"}
        airflow.add_connection(
            conn_id, conn_type="aws", login="made-up-key", password="made-up-secret", extra=json.dumps(extra)
        )
    for conn_id in ("my_api", "pypi"):
        airflow.add_connection(conn_id, conn_type="http", host="127.0.0.1", port=api)
    program = {"transport": "stdio", "command": sys.executable, "args": [str(TESTS / "servers/mcp_weather.py")]}
    for conn_id in ("my_mcp_server", "weather_mcp", "code_runner_mcp", "splunk_tools_mcp"):
        airflow.add_connection(conn_id, conn_type="mcp", extra=json.dumps({**program, "timeout": 60}))
    airflow.add_connection("splunk_default", conn_type="generic", password=SPLUNK_KEY)
    down = {"model": "openai-chat:gpt-5-mini"}
    for conn_id, extra in (
        ("llm_primary_down", {**down, "fallback_conn_ids": ["llm_fallback"]}),
        ("llm_primary_down_no_chain", down),
        ("llm_primary", down),
    ):
        airflow.add_connection(
            conn_id, conn_type="pydanticai", host="http://127.0.0.1:9/v1", password="sk-down", extra=json.dumps(extra)
        )
    airflow.wait_for_dags(set(RETURNED) | ELSEWHERE, timeout=300)
    return airflow


class Asked:
    """A worker and the model that it asks."""

    def __init__(self, airflow: Airflow, scratch: Path, dags: Path, queue: str, kind: str) -> None:
        self.airflow = airflow
        self.queue = queue
        self.model = ModelServer()
        longest = max(len(talk.turns) for talk in TALKS.values())
        self.script = self.model.script("examples", [self._turn(number) for number in range(longest)])
        connection = json.dumps(
            {
                "conn_type": "pydanticai",
                "password": "sk-made-up-key",
                "host": self.model.base_url,
                "extra": {"model": "openai-chat:examples"},
            }
        )
        names = ("PYDANTICAI_DEFAULT", "DECISION_DEFAULT", "LLM_FALLBACK", "LLM_STANDBY")
        env = {f"AIRFLOW_CONN_{name}": connection for name in names}
        env["AIRFLOW__UPDRAFT__LOCAL_STORAGE"] = str(SESSIONS)
        # A Python task takes a core for some seconds.
        self.at_once = 10 if kind == "updraft" else 3
        concurrency = 6 if kind == "updraft" else 2
        self.worker = Worker(airflow, scratch / queue, dags, queue, queue, concurrency, env=env, kind=kind)

    @staticmethod
    def _turn(number: int) -> Any:
        return lambda request: talk_of(request)[1].turns[number]

    def requests(self) -> dict[str, list[dict[str, Any]]]:
        """What the model was asked, by the beginning of the conversation: one request for each turn, in order."""
        found: dict[str, dict[int, dict[str, Any]]] = {}
        for request in self.script.requests:
            found.setdefault(talk_of(request)[0], {})[len(request["messages"])] = request
        return {start: [turns[length] for length in sorted(turns)] for start, turns in found.items()}

    def run(self, dag_ids: list[str]) -> dict[str, Run]:
        """Runs the Dags, some at a time: more at once is more than Airflow's SQLite takes on a busy machine."""
        runs: dict[str, Run] = {}
        for first in range(0, len(dag_ids), self.at_once):
            group = dag_ids[first : first + self.at_once]
            some = {dag_id: self.airflow.trigger(dag_id, queue=self.queue) for dag_id in group}
            self.finish(some)
            runs |= some
        return runs

    def finish(self, runs: dict[str, Run]) -> None:
        failed = []
        for run in runs.values():
            if self.airflow.wait_for_run(run, 400) != "success":
                for ti in self.airflow.task_instances(run):
                    if ti["state"] == "failed":
                        log = self.airflow.log(run, ti["task_id"], ti["try_number"], ti["map_index"])
                        failed.append(f"{run} {ti['task_id']}: {log.text[-3000:]}")
        assert not failed, "\n\n".join(failed)
        assert self.model.violations == []

    def close(self) -> None:
        self.worker.stop()
        self.model.close()


@pytest.fixture(scope="module")
def asked(examples: Airflow, scratch: Path, worker_dags: Path) -> Iterator[Asked]:
    made = Asked(examples, scratch, worker_dags, "examples", KIND)
    try:
        made.worker.wait_until_registered()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def runs(asked: Asked) -> dict[str, Run]:
    """A finished run of each Dag."""
    shutil.rmtree(SESSIONS, ignore_errors=True)
    dag_ids = [dag_id for dag_id in RETURNED if KIND == "updraft" or dag_id in ON_BOTH]
    return asked.run(dag_ids)


def test_every_example_ends_with_what_its_model_and_its_tools_gave(asked: Asked, runs: dict[str, Run]) -> None:
    for dag_id, run in runs.items():
        for task_id, value in RETURNED[dag_id].items():
            assert asked.airflow.xcoms(run, task_id).get("return_value") == value, (dag_id, task_id)
    told = {start: requests[-1]["messages"] for start, requests in asked.requests().items()}
    for start, talk in TALKS.items():
        if start not in told:
            assert KIND == "python", f"the model was never asked: {start}"
            continue
        results = [message["content"] for message in told[start] if message["role"] == "tool"]
        assert len(results) == len(talk.results), (start, results)
        for expected, result in zip(talk.results, results, strict=True):
            assert expected in result, (start, result)


@pytest.mark.updraft_only
def test_a_secret_for_a_server_is_in_no_log(asked: Asked, runs: dict[str, Run]) -> None:
    run = runs["example_mcp_stdio_env_provider"]
    assert SPLUNK_KEY not in asked.airflow.log(run, "stdio_env_agent").text
    assert SPLUNK_KEY not in json.dumps(asked.script.requests)


@pytest.mark.updraft_only
def test_the_example_of_a_hook_of_amazon_runs_without_its_provider(tmp_path: Path, reports: str) -> None:
    # Airflow makes this Dag only where that provider is installed, which wants older packages than these tests have.
    file = tmp_path / "example_hook_toolset.py"
    shutil.copy2(provider_examples.folder() / file.name, file)
    extra = json.dumps({"endpoint_url": reports, "region_name": "eu-north-1"})
    connection = {"conn_type": "aws", "login": "made-up-key", "password": "made-up-secret", "extra": extra}
    file.with_suffix(".connections.json").write_text(json.dumps({"aws_reports_reader": connection}))
    key = "finance/2026-09.txt"
    turns = [
        {"tool_calls": [{"name": "s3_list_keys", "args": {"prefix": "finance/2026"}}]},
        {"tool_calls": [{"name": "s3_read_key", "args": {"key": key}}]},
        {"text": "Good."},
    ]
    file.with_suffix(".transcript.json").write_text(json.dumps({"turns": turns}))
    xcoms = xcoms_of_the_task(file)
    assert (xcoms["return_value"], xcoms["usage"]["tool_calls"]) == ("Good.", 2)


@pytest.mark.updraft_only
def test_ten_examples_leave_the_same_on_the_python_worker(
    examples: Airflow, asked: Asked, runs: dict[str, Run], scratch: Path, worker_dags: Path
) -> None:
    python = Asked(examples, scratch, worker_dags, "examples-python", "python")
    try:
        python.worker.wait_until_registered()
        there = python.run(ON_BOTH)
        differences = []
        for dag_id in ON_BOTH:
            mine, theirs = everything_left(examples, runs[dag_id]), everything_left(examples, there[dag_id])
            differences += compared(dag_id, mine, theirs)
        ours = asked.requests()
        for start, theirs in python.requests().items():
            differences += compared(start, ours[start], theirs)
    finally:
        python.close()
    unexplained = [text for text in differences if not any(re.match(where, text) for where in DIFFERENCES)]
    assert not unexplained, "\n".join(unexplained)


# In what the two workers differ: where, and why.
DIFFERENCES = {
    r"What endpoints are available and what\[\d\]\.tools\[0\]\.function\.(parameters\.properties\.\w+\.)?description: ": (
        "The hook is the worker's own, with its own documentation. Names, types and order of its parameters are the same."
    ),
    r"Review this query against our SQL\[\d\]\.messages\[3\]\.content: ": (
        "Skills are listed by name here, and there as the folder happens to give them."
    ),
    r"example_llm_branch_multi\.classify\[-1\]\.xcoms\.skipmixin_key\.followed\[\d\]: ": (
        "The branches that were followed are a set in Python, written in whatever order it has."
    ),
}


def everything_left(airflow: Airflow, run: Run) -> dict[str, Any]:
    """States and XComs of a run, without what is of the run itself."""
    left = {}
    for ti in airflow.task_instances(run):
        xcoms = airflow.xcoms(run, ti["task_id"], ti["map_index"])
        for key in [key for key in xcoms if key == "run_id" or key.startswith(LINK)]:
            del xcoms[key]
        left[f"{ti['task_id']}[{ti['map_index']}]"] = {"state": ti["state"], "xcoms": xcoms}
    return left


# Of AgentOperator's page for reviews: its address is empty while reviews are off, and Updraft leaves it out.
LINK = "_link_"


def compared(where: str, mine: Any, theirs: Any) -> list[str]:
    """Where two values differ."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        found = []
        for key in sorted(mine.keys() | theirs.keys()):
            if key not in mine or key not in theirs:
                found.append(f"{where}: {key} only {'there' if key in theirs else 'here'}: {theirs.get(key, mine.get(key))}")
            else:
                found += compared(f"{where}.{key}", mine[key], theirs[key])
        return found
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        return [
            text for index, (one, other) in enumerate(zip(mine, theirs)) for text in compared(f"{where}[{index}]", one, other)
        ]
    return [] if mine == theirs else [f"{where}: here {mine!r}, there {theirs!r}"]
