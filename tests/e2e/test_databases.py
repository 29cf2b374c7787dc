"""Agents over a real database server, whose connection is stored in Airflow's database."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.model_server import ModelServer, call, say
from harness.worker import Worker

TESTS = Path(__file__).parent.parent
SECRET = "a-salary-that-nobody-may-read"
TABLES = (TESTS / "it" / "databases" / "harbour_postgres.sql").read_text()
SALARIES = f"CREATE TABLE salaries (who text, amount text); INSERT INTO salaries VALUES ('Ada', '{SECRET}');"


@pytest.fixture(scope="module")
def postgres(database_servers: dict[str, str]) -> dict[str, str]:
    """The harbour's tables and one table that no list names."""
    psql(database_servers, TABLES + SALARIES)
    return database_servers


def psql(server: dict[str, str], sql: str) -> str:
    command = ["psql", "-h", "127.0.0.1", "-p", server["UPDRAFT_TEST_POSTGRES_PORT"], "-U", "updraft", "-d", "harbour"]
    done = subprocess.run(
        [*command, "-v", "ON_ERROR_STOP=1", "-qAt"], input=sql, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    return done.stdout


def test_an_agent_asks_postgresql_and_gets_nothing_beyond_its_list(
    airflow: Airflow, worker: Worker, model: ModelServer, postgres: dict[str, str]
) -> None:
    airflow.add_connection(
        "harbour",
        conn_type="postgres",
        host="127.0.0.1",
        port=int(postgres["UPDRAFT_TEST_POSTGRES_PORT"]),
        login="updraft",
        password="made-up",
        schema="harbour",
    )
    airflow.add_connection(
        "harbour_model",
        conn_type="pydanticai",
        host=model.base_url,
        password="sk-made-up",
        extra=json.dumps({"model": "openai-chat:harbour"}),
    )
    script = model.script(
        "harbour",
        [
            call("list_tables"),
            call("get_schema", table_name="orders"),
            call(
                "query",
                sql="SELECT name, SUM(total) AS paid, MAX(placed) AS last FROM customers"
                " JOIN orders ON customer_id = customers.id WHERE orders.paid GROUP BY name ORDER BY 2 DESC",
            ),
            call("query", sql="SELECT item, amount, tags FROM depot.stock ORDER BY item"),
            call("query", sql="SELECT amount FROM salaries"),
            call("query", sql="SELECT query_to_xml('SELECT amount FROM salaries', true, true, '')"),
            call("query", sql="WITH gone AS (DELETE FROM orders RETURNING id) SELECT count(*) FROM gone"),
            call("query", sql="SELECT id FROM orders WHERE id = 1; DELETE FROM orders"),
            say("Ada, and rope and sails."),
        ],
    )
    run, state = airflow.run_dag("postgres_harbour")
    assert state == "success", airflow.log(run, "ask").text
    assert airflow.xcoms(run, "ask")["return_value"] == "Ada, and rope and sails."
    answers = [message["content"] for message in script.requests[-1]["messages"] if message["role"] == "tool"]
    assert json.loads(answers[0]) == ["depot.stock", "customers", "orders"]
    assert json.loads(answers[1])["columns"] == [
        {"name": "id", "type": "BIGINT"},
        {"name": "customer_id", "type": "INTEGER"},
        {"name": "total", "type": "NUMERIC(10, 2)"},
        {"name": "paid", "type": "BOOLEAN"},
        {"name": "placed", "type": "TIMESTAMP"},
    ]
    assert json.loads(answers[2])["rows"] == [
        ["Ada", "412.50", "2024-01-04 18:00:00+00:00"],
        ["Belém", "387.50", "2024-01-04 15:00:00+00:00"],
        ["日本", "362.50", "2024-01-04 12:00:00+00:00"],
    ]
    # Python's json reads and writes NaN, and so do the tools.
    assert '[["rope",1.5,["a","b c"]],["sail",NaN,null]]' in answers[3]
    for answer in answers[4:]:
        assert "The query tool failed" in answer, answer
        assert SECRET not in answer
    assert SECRET not in airflow.log(run, "ask").text
    assert psql(postgres, "SELECT count(*) FROM orders").strip() == "60"
