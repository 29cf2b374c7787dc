"""Toolsets that a Dag file writes and composes itself: the same requests and results on Updraft and on Airflow's own worker."""

from __future__ import annotations

import json

from harness.airflow import Airflow
from harness.model_server import ModelServer, call, say
from harness.worker import Worker


def test_functions_hooks_and_classes_of_the_dag_file_are_tools(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    script = model.script(
        "example",
        [
            call("find_berth", length="12.5", boat="Aurora"),
            call("find_berth", length=120),
            call("find_berth", size=3),
            call("sea_tide", port="Oslo"),
            call("shop_query", sql="SELECT name FROM customers ORDER BY id LIMIT 1"),
            say("Berth 1."),
        ],
    )
    run, state = airflow.run_dag("own_toolsets")
    log = airflow.log(run, "ask")
    assert state == "success", log.text
    tools = {tool["function"]["name"]: tool["function"] for tool in script.requests[0]["tools"]}
    assert list(tools) == ["find_berth", "sea_tide", "shop_query"]
    berth = tools["find_berth"]["parameters"]
    assert berth["required"] == ["length"]
    assert berth["properties"]["length"] == {"type": "number", "description": "Length of the boat in metres."}
    assert tools["find_berth"]["description"] == "Find a berth."
    tide = tools["sea_tide"]["parameters"]["properties"]
    assert tide["days"] == {"type": "integer", "description": "How many days ahead."}
    results = [message["content"] for message in script.requests[-1]["messages"] if message["role"] == "tool"]
    assert results[0] == "Aurora: berth 1 of ask"
    assert results[1] == '{"error":"no berth is longer than 100 m"}'
    assert [fault["type"] for fault in json.loads(results[2])["error"]] == ["missing", "extra_forbidden"]
    assert results[3] == '{"port": "Oslo", "days": 1, "connection": "ask_tide"}'
    assert results[4] == '{"COLUMNS":["NAME"],"ROWS":[["ALDINE BOOKS"]],"ROW_COUNT":1}'
    assert airflow.xcoms(run, "ask")["return_value"] == "Berth 1."
    log.assert_groups_balance()
