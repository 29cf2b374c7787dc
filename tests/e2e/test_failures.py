"""Models, queries, tasks and secrets that go wrong, each in a way that Airflow has an answer to."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.model_server import Fault, ModelServer, call, say
from harness.worker import Worker


def test_a_model_that_answers_500_three_times_costs_one_try(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    # The OpenAI client asks three times before it gives up, so the fourth request belongs to the second try.
    script = model.script("unwell", [say("Hello.")], faults=[Fault(500)] * 3)
    run, state = airflow.run_dag("model_errors")
    assert state == "success", airflow.log(run, "ask", 2).text
    assert len(script.requests) == 4
    first, second = airflow.tries(run, "ask")
    assert (first["state"], second["state"]) == ("failed", "success")
    log = airflow.log(run, "ask", 1)
    assert "status_code: 500, model_name: unwell, body: {'message': 'the model is unwell'}" in log.text
    log.assert_groups_balance()
    assert airflow.xcoms(run, "ask")["return_value"] == "Hello."
    assert airflow.xcoms(run, "ask")["usage"]["requests"] == 1


def test_a_refused_query_is_told_to_the_model_which_corrects_it(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    script = model.script(
        "curious",
        [
            call("query", sql="SELECT name, monthly_salary FROM staff_salaries"),
            call("query", sql="SELECT COUNT(*) AS n FROM customers"),
            say("I may only look at customers: there are 16."),
        ],
    )
    run, state = airflow.run_dag("refused_query")
    assert state == "success", airflow.log(run, "ask").text
    refusal, result = [m["content"] for m in script.requests[-1]["messages"] if m["role"] == "tool"]
    assert "staff_salaries" in json.loads(refusal)["error"]
    assert json.loads(result)["rows"] == [[16]]
    # What both workers log, after the three lines that the API server puts first. Python has three more of its own.
    own = ("DAG bundles loaded", "Filling up the DagBag", "HTTP Request")
    events = [event for event in airflow.log(run, "ask").events[3:] if not event.startswith(own)]
    events = [re.sub(r"\d+\.\d\ds", "0.00s", event) for event in events]
    assert events[5].startswith("Tool query requested ModelRetry after 0.00s: ")
    assert "staff_salaries" in events[5]
    assert events == [
        "::group::Pre Execute",
        "Worker startup parse complete",
        "::endgroup::",
        "Using explicit credentials for provider with model 'openai-chat:curious': ['api_key', 'base_url']",
        "::group::Tool call: query",
        events[5],
        "::endgroup::",
        "::group::Tool call: query",
        "Running statement: SELECT COUNT(*) AS n FROM customers, parameters: None",
        "Tool query returned in 0.00s",
        "::endgroup::",
        "::group::LLM run complete: model=curious, requests=3, tool_calls=1, input_tokens=60, output_tokens=30,"
        " total_tokens=90",
        "Tool call sequence: query -> query",
        "::endgroup::",
        "::group::Post Execute",
        "Pushing xcom",
        "::endgroup::",
    ]
    assert airflow.xcoms(run, "ask")["usage"]["tool_calls"] == 1


def test_a_task_that_fails_is_up_for_retry_and_then_succeeds(airflow: Airflow, worker: Worker) -> None:
    run = airflow.trigger("flaky_task")
    waiting = airflow.wait_for_task(run, "flaky", {"up_for_retry"})
    assert waiting["try_number"] == 1
    assert airflow.wait_for_run(run) == "success"
    log = airflow.log(run, "flaky", 1)
    failure = next(record for record in log.records if record.get("error_detail"))
    detail = failure["error_detail"][0]
    assert (detail["exc_type"], detail["exc_value"]) == ("ValueError", "not on the first try")
    assert any(frame["filename"].endswith("flaky_task.py") and frame["name"] == "flaky" for frame in detail["frames"])
    assert airflow.xcoms(run, "flaky")["return_value"] == "done on try 2"
    assert airflow.task_instance(run, "flaky")["try_number"] == 2


def test_connections_and_variables_come_from_airflows_database(
    airflow: Airflow, worker: Worker, model: ModelServer, worker_dags: Path
) -> None:
    airflow.add_connection(
        "model_in_database",
        conn_type="pydanticai",
        host=model.base_url,
        password="sk-made-up-and-stored",
        extra=json.dumps({"model": "openai-chat:stored"}),
    )
    airflow.add_connection("shop_in_database", conn_type="sqlite", host=str(worker_dags / "data" / "shop.db"))
    airflow.add_variable("house_style", "figures only")
    script = model.script("stored", [call("query", sql="SELECT COUNT(*) AS n FROM customers"), say("16")])
    run, state = airflow.run_dag("database_connection")
    assert state == "success", airflow.log(run, "ask").text
    assert airflow.xcoms(run, "ask")["return_value"] == "16"
    assert script.requests[0]["messages"][-1]["content"].endswith("The house style is: figures only.")


def test_a_password_in_a_tool_result_reads_as_stars_everywhere(
    airflow: Airflow, worker: Worker, model: ModelServer, worker_dags: Path
) -> None:
    password = "made-up-password-of-the-vault"
    vault = worker_dags / "data" / "vault.db"
    database = sqlite3.connect(vault)
    with database:
        database.execute("CREATE TABLE notes (note TEXT)")
        database.execute("INSERT INTO notes VALUES (?)", (f"the password is {password}, keep it",))
    database.close()
    airflow.add_connection("vault", conn_type="sqlite", host=str(vault))
    airflow.add_connection(
        "model_of_the_vault",
        conn_type="pydanticai",
        host=model.base_url,
        password=password,
        extra=json.dumps({"model": "openai-chat:parrot"}),
    )
    script = model.script(
        "parrot",
        [
            call("query", sql="SELECT note FROM notes"),
            call("query", sql="SELECT no_such_column FROM notes"),
            lambda request: say("The note says: " + json.loads(request["messages"][2]["content"])["rows"][0][0]),
        ],
    )
    run, state = airflow.run_dag("secret_echo")
    log = airflow.log(run, "ask")
    assert state == "success", log.text
    assert airflow.xcoms(run, "ask")["return_value"] == "The note says: the password is ***, keep it"
    everything = json.dumps(script.requests) + log.text + json.dumps(airflow.task_instance(run, "ask"))
    assert "the password is ***, keep it" in json.dumps(script.requests)
    assert password not in everything
    assert "sk-made-up-key" not in everything
    assert password not in worker.process.log.read_text()
    for file in airflow.home.glob("logs/**/*.log"):
        assert password not in file.read_text(errors="replace"), file


@pytest.fixture(scope="module")
def bad_connections_run(airflow: Airflow, worker: Worker):
    run, state = airflow.run_dag("bad_connections", timeout=120)
    assert state == "failed"
    return run


@pytest.mark.parametrize(
    ("task_id", "said"),
    [
        ("bad_uri", "bad_uri"),
        ("bad_json", "bad_json"),
        ("not_there", "The conn_id `not_there` isn't defined"),
    ],
)
def test_a_connection_that_cannot_be_read_fails_the_task_with_its_name(
    airflow: Airflow, bad_connections_run, task_id: str, said: str
) -> None:
    assert airflow.task_instance(bad_connections_run, task_id)["state"] == "failed"
    log = airflow.log(bad_connections_run, task_id)
    assert any(said in json.dumps(r.get("error_detail", "")) + r["event"] for r in log.records), log.text
    assert "very-made-up" not in log.text


def test_return_values_that_are_not_json_are_stored_as_airflow_stores_them(airflow: Airflow, worker: Worker) -> None:
    run, state = airflow.run_dag("xcom_values", timeout=120)
    assert state == "failed"
    states = {ti["task_id"]: ti["state"] for ti in airflow.task_instances(run)}
    assert states == {
        "not_a_number": "failed",
        "a_set": "success",
        "a_date": "success",
        "a_datetime": "success",
        "a_tuple": "success",
        "an_object": "failed",
    }
    values = {task_id: airflow.xcoms(run, task_id) for task_id in states}

    def encoded(name: str, version: int, data: object) -> dict:
        return {"return_value": {"__classname__": name, "__version__": version, "__data__": data}}

    utc = encoded("builtins.tuple", 1, ["UTC", "pendulum.tz.timezone.FixedTimezone", 1, True])["return_value"]
    assert values == {
        "not_a_number": {},
        "a_set": encoded("builtins.set", 1, [1]),
        "a_date": encoded("datetime.date", 2, "2026-01-02"),
        "a_datetime": encoded("datetime.datetime", 2, {"timestamp": 1767323045.0, "tz": utc}),
        "a_tuple": encoded("builtins.tuple", 1, [1, "two"]),
        "an_object": {},
    }


def test_a_tool_result_of_50_megabytes_harms_nobody(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    script = model.script("greedy", [call("query", sql="SELECT hex(zeroblob(25000000)) AS everything"), say("Got it.")])
    run, state = airflow.run_dag("huge_result", timeout=240)
    log = airflow.log(run, "ask")
    assert state == "success", log.text
    # One row has no limit but the model's own; what it must not do is flood the log or end the worker.
    assert len(script.requests[-1]["messages"][-1]["content"]) > 50_000_000
    assert airflow.xcoms(run, "ask")["return_value"] == "Got it."
    assert worker.process.running()
    assert len(log.text) < 1_000_000
