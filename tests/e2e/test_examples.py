"""The Dags that ship with the project, run as they are."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from harness.airflow import Airflow
from harness.model_server import ModelServer, Turn, call, say, transcript
from harness.otlp import OtlpReceiver
from harness.process import wait_until
from harness.worker import KIND, Worker

ROOT = Path(__file__).parents[2]
METADATA = {"return_value", "run_id", "usage", "__AIRFLOW__COMMON_AI_MODEL_NAME__"}


def replay(model: ModelServer) -> None:
    model.script("example", transcript(json.loads((ROOT / "dags/customer_insights.transcript.json").read_text())))


def test_the_sql_agent_leaves_what_the_python_worker_leaves(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    replay(model)
    run, state = airflow.run_dag("customer_insights")
    log = airflow.log(run, "ask")
    assert state == "success", log.text

    xcoms = airflow.xcoms(run, "ask")
    # Python's operator also pushes the address of a review page, which is empty unless reviews are on.
    assert METADATA <= set(xcoms)
    assert xcoms["return_value"].startswith("The three customers with the most revenue are Pinewood Hostel (3,777.00)")
    assert xcoms["usage"] == {
        "requests": 4,
        "input_tokens": 412 + 447 + 731 + 868,
        "output_tokens": 11 + 52 + 96 + 83,
        "total_tokens": 2458 + 242,
        "tool_calls": 5,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cost": None,
    }
    assert xcoms["__AIRFLOW__COMMON_AI_MODEL_NAME__"] == "example"
    instance = airflow.task_instance(run, "ask")
    assert xcoms["run_id"] == instance["id"]

    rendered = instance["rendered_fields"]
    assert rendered["prompt"].endswith("which of them have not ordered since 2026-10-01?")
    assert rendered["llm_conn_id"] == "pydanticai_default"
    assert rendered["system_prompt"].startswith("You are the analyst")
    assert instance["hostname"] == worker.name
    assert instance["operator"] == "AgentOperator"

    log.assert_groups_balance()
    assert [title for title in log.groups() if title.startswith("Tool call")] == [
        "Tool call: list_tables",
        "Tool call: get_schema",
        "Tool call: get_schema",
        "Tool call: get_schema",
        "Tool call: query",
    ]
    assert {"Pre Execute", "Post Execute"} <= set(log.groups())
    assert any(
        title == "LLM run complete: model=example, requests=4, tool_calls=5, input_tokens=2458, output_tokens=242,"
        " total_tokens=2700"
        for title in log.groups()
    ), log.groups()
    assert "Tool call sequence: list_tables -> get_schema -> get_schema -> get_schema -> query" in log.events
    assert any(event.startswith("Running statement: SELECT c.name") for event in log.events)


def test_the_requests_of_the_sql_agent_carry_the_results_of_the_tools(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    replay(model)
    airflow.run_dag("customer_insights")
    requests = model.scripts["example"].requests
    assert [tool["function"]["name"] for tool in requests[0]["tools"]] == [
        "list_tables",
        "get_schema",
        "query",
        "check_query",
    ]
    results = [message["content"] for message in requests[-1]["messages"] if message["role"] == "tool"]
    assert results[0] == '["customers", "orders", "products"]'
    assert json.loads(results[-1])["rows"] == [
        ["Pinewood Hostel", 3777.0, "2026-09-24"],
        ["Aldine Books", 2682.5, "2026-11-08"],
        ["Cedar Press", 1841.0, "2026-11-05"],
    ]


def test_the_spans_of_a_run_hang_under_the_span_of_the_task(
    airflow: Airflow, worker: Worker, model: ModelServer, otlp: OtlpReceiver
) -> None:
    replay(model)
    otlp.spans.clear()
    run, _ = airflow.run_dag("customer_insights")

    def of_the_agent():
        return next((s for s in otlp.spans if s.name.startswith("invoke_agent")), None)

    try:
        agent = wait_until("the spans of the agent", of_the_agent, 20)
    except TimeoutError as error:
        raise AssertionError(f"{error}; there are {otlp.spans}") from None
    mine = [s for s in otlp.spans if s.trace_id == agent.trace_id]
    below = [s.name for s in mine if s.parent_id == agent.span_id]
    assert sorted(below) == sorted(
        ["chat example"] * 4 + ["execute_tool list_tables"] + ["execute_tool get_schema"] * 3 + ["execute_tool query"]
    )
    by_id = {s.span_id: s for s in mine}
    ancestors = []
    span = agent
    while span.parent_id in by_id:
        span = by_id[span.parent_id]
        ancestors.append(span.name)
    assert any("ask" in name for name in ancestors), f"no task span above the agent's: {ancestors}, {mine}"
    assert agent.attributes["airflow.dag_id"] == "customer_insights"
    assert agent.attributes["airflow.dag_run.run_id"] == run.run_id
    assert agent.attributes["airflow.task_id"] == "ask"
    assert agent.attributes["airflow.task_instance.try_number"] == 1


def test_eight_mapped_instances_run_four_at_a_time(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    def answer(request: dict) -> Turn:
        region = request["messages"][1]["content"].rsplit(" ", 1)[1].rstrip("?")
        sql = f"SELECT COUNT(*) AS customers FROM customers WHERE region = '{region}'"
        return call("query", sql=sql, _delay=1.5)

    def conclude(request: dict) -> Turn:
        region = request["messages"][1]["content"].rsplit(" ", 1)[1].rstrip("?")
        return say(f"{region}: {json.loads(request['messages'][-1]['content'])['rows'][0][0]}")

    script = model.script("example", [answer, conclude])
    run, state = airflow.run_dag("region_notes", timeout=180)
    assert state == "success", [airflow.log(run, "note", map_index=index).text for index in range(8)]
    answers = [airflow.xcoms(run, "note", map_index=index)["return_value"] for index in range(8)]
    regions = ["North", "South", "East", "West", "Coast", "Highlands", "Islands", "Capital"]
    assert answers == [f"{region}: 2" for region in regions]
    for index in (0, 7):
        instance = airflow.task_instance(run, "note", index)
        assert instance["rendered_fields"]["prompt"] == f"How much revenue came from the region {regions[index]}?"
    assert len(script.requests) == 16
    assert script.most_active <= 4
    if KIND == "updraft":
        assert script.most_active == 4


def test_a_decorated_agent_gets_its_prompt_from_an_upstream_task(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    script = model.script("example", [say("Four tickets are open.")])
    run, state = airflow.run_dag("ticket_digest")
    assert state == "success", airflow.log(run, "read_tickets").text + airflow.log(run, "write_digest").text
    assert airflow.xcoms(run, "read_tickets")["return_value"] == {
        "open": [
            "Tracking number does not work",
            "Invoice shows last year's VAT number",
            "Ink arrived, pen did not",
            "Courier wants a customs form",
        ],
        "by_topic": {"delivery": 4, "payment": 2, "product": 2},
    }
    prompt = script.requests[0]["messages"][-1]["content"]
    assert prompt.startswith("Tickets by topic: delivery (4), payment (2), product (2).\nStill open:\n- Tracking")
    assert airflow.xcoms(run, "write_digest")["return_value"] == "Four tickets are open."
    # The prompt is made by the function, after the fields were rendered and sent.
    assert airflow.task_instance(run, "write_digest")["rendered_fields"]["prompt"] == "DYNAMIC (set during execution)"


def test_an_agent_with_a_skill_is_told_of_it_and_reads_and_runs_what_is_in_it(
    airflow: Airflow, worker: Worker, model: ModelServer, scratch: Path
) -> None:
    script = model.script(
        "example", transcript(json.loads((ROOT / "dags/sales_report.transcript.json").read_text()))
    )
    run, state = airflow.run_dag("sales_report")
    log = airflow.log(run, "report")
    assert state == "success", log.text
    assert "1,934.00" in airflow.xcoms(run, "report")["return_value"]
    first = script.requests[0]
    assert [tool["function"]["name"] for tool in first["tools"]][:4] == [
        "list_skills",
        "load_skill",
        "read_skill_resource",
        "run_skill_script",
    ]
    prompt, catalogue = (message["content"] for message in first["messages"] if message["role"] == "system")
    assert prompt.startswith("You report on a small mail-order shop.")
    assert f"<uri>{scratch / 'skills/shop-reporting'}</uri>" in catalogue
    results = [message["content"] for message in script.requests[-1]["messages"] if message["role"] == "tool"]
    assert results[0].startswith("<skill>\n<name>shop-reporting</name>")
    assert results[1].startswith("# Columns")
    assert results[2:] == [
        "2026-08-12",
        '{"columns":["revenue"],"rows":[[1934.0]],"row_count":1}',
        '{"columns":["active"],"rows":[[11]],"row_count":1}',
    ]
    log.assert_groups_balance()


def test_tasks_in_a_group_feed_a_template_below_them(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    script = model.script("example", [lambda request: say(f"<{request['messages'][-1]['content'].split(' ')[0]}>")])
    run, state = airflow.run_dag("weekly_review")
    assert state == "success", [ti["state"] for ti in airflow.task_instances(run)]
    prompt = script.requests[-1]["messages"][-1]["content"]
    assert prompt == "Write the weekly review of 2026-01-01 in two sentences.\nCustomers: <Which>\nProducts: <Which>"
    assert airflow.xcoms(run, "review")["return_value"] == "<Write>"


def test_the_shop_database_is_what_its_source_says(worker_dags: Path) -> None:
    made = sqlite3.connect(":memory:")
    made.executescript((ROOT / "dags/data/shop.sql").read_text())
    shipped = sqlite3.connect(f"file:{ROOT / 'dags/data/shop.db'}?mode=ro", uri=True)
    assert list(shipped.iterdump()) == list(made.iterdump())
