"""Toolsets that a Dag file writes and composes itself: the same requests and results on Updraft and on Airflow's own worker."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

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


def test_files_beside_the_dag_are_tables_that_can_be_joined(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    joined = (
        "SELECT p.name, sum(l.tons) AS tons, max(l.day) AS last FROM landings l JOIN ports p ON l.port = p.id "
        "GROUP BY p.name ORDER BY tons DESC"
    )
    script = model.script(
        "example",
        [
            call("list_tables"),
            call("get_schema", table_name="landings"),
            call("query", sql=joined),
            call("query", sql="SELECT id, name FROM ports ORDER BY id"),
            call("query", sql="SELECT harbour FROM ports"),
            call("query", sql="SELECT 1 / 0"),
            call("query", sql="DROP TABLE ports"),
            say("20 tons in Bergen."),
        ],
    )
    run, state = airflow.run_dag("harbour_files")
    log = airflow.log(run, "ask")
    assert state == "success", log.text
    tools = {tool["function"]["name"]: tool["function"] for tool in script.requests[0]["tools"]}
    assert list(tools) == ["list_tables", "get_schema", "query"]
    assert tools["list_tables"]["description"] == "List available table names."
    results = [message["content"] for message in script.requests[-1]["messages"] if message["role"] == "tool"]
    assert sorted(json.loads(results[0])) == ["landings", "ports"]
    assert results[1] == (
        '{"columns":[{"name":"port","type":"int64"},{"name":"day","type":"date32[day]"},'
        '{"name":"tons","type":"double"}],"column_count":3}'
    )
    assert results[2] == (
        '{"columns":["name","tons","last"],"rows":[["Bergen",20.0,"2026-11-02"],["Ribe",3.0,"2026-11-02"]],"row_count":2}'
    )
    assert results[3] == (
        '{"columns":["id","name"],"rows":[[1,"Bergen"],[2,"Ålesund"]],"row_count":2,"truncated":true,'
        '"truncated_by":"max_rows","hint":"Only the first 2 rows are shown. Filter or aggregate in SQL rather than '
        'paging through the result."}'
    )
    # What the model may mend is a retry; what the engine finds while it computes is an answer. The texts are the engine's.
    assert json.loads(results[4])["error"].startswith("error: Error while executing query: ")
    assert json.loads(results[5])["query"] == "SELECT 1 / 0"
    assert "Statement type 'Drop' is not allowed. Allowed types: Select, Union, Intersect, Except" in results[6]
    assert airflow.xcoms(run, "ask")["return_value"] == "20 tons in Bergen."
    log.assert_groups_balance()


@pytest.mark.updraft_only  # The Python worker of these tests has no S3 client.
def test_an_agent_reads_a_bucket_whose_connection_is_stored_in_airflow(
    airflow: Airflow, worker: Worker, model: ModelServer, object_stores: dict[str, str]
) -> None:
    server = object_stores["UPDRAFT_TEST_S3_URL"]
    airflow.add_connection(
        "harbour_store",
        conn_type="aws",
        login="made-up-key",
        password="made-up-store-secret",
        extra=json.dumps({"endpoint_url": server, "region_name": "eu-north-1"}),
    )
    put(f"{server}/harbour", b"")
    put(f"{server}/harbour/keys.txt", b"outside of the root")
    put(f"{server}/harbour/notes/2026%2011%20%C3%A5.txt", "Fog.\nmade-up-store-secret\n".encode())
    put(f"{server}/harbour/notes/old/a.csv.gz", gzip.compress(b"day,tons\n1,2\n"))
    put(f"{server}/harbour/notes/z.txt", b"z")
    script = model.script(
        "example",
        [
            call("list_files"),
            call("list_files", offset=2),
            call("read_file", path="2026 11 å.txt"),
            call("read_file", path="old/a.csv.gz", offset=2),
            call("get_file_info", path="z.txt"),
            call("read_file", path="../keys.txt"),
            say("Fog."),
        ],
    )
    run, state = airflow.run_dag("harbour_bucket")
    log = airflow.log(run, "ask")
    assert state == "success", log.text
    tools = [tool["function"]["name"] for tool in script.requests[0]["tools"]]
    assert tools == ["list_files", "get_file_info", "read_file"]
    results = [message["content"] for message in script.requests[-1]["messages"] if message["role"] == "tool"]
    assert json.loads(results[0]) == {
        "path": "/",
        "entries": [{"name": "2026 11 å.txt", "size_bytes": 26}, {"name": "old/"}],
        "note": "Showing entries 1 to 2 of 3; list again with offset=2 for more.",
    }
    assert json.loads(results[1])["entries"] == [{"name": "z.txt", "size_bytes": 1}]
    assert results[2:4] == ["Fog.\n***", "1,2"]
    info = json.loads(results[4])
    assert (info["path"], info["type"], info["size_bytes"]) == ("z.txt", "file", 1)
    assert "'../keys.txt' leaves the storage root; '..' is not allowed." in results[5]
    assert airflow.xcoms(run, "ask")["return_value"] == "Fog."
    assert "made-up-store-secret" not in log.text
    log.assert_groups_balance()


def put(url: str, content: bytes) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    with urlopen(Request(url, data=content, method="PUT", headers=headers), timeout=20) as answer:
        assert answer.status == 200


def test_agents_use_the_tools_of_mcp_servers(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    script = model.script(
        "example",
        [
            call("north_add", a=2, b=3),
            call("wait", seconds=0.1),
            call("north_fail"),
            call("north_add", a="x"),
            call("north_token"),
            call("north_photo"),
            call("north_process"),
            say("Aurora."),
        ],
    )
    run, state = airflow.run_dag("mcp_docks")
    log = airflow.log(run, "ask")
    assert state == "success", log.text
    tools = {tool["function"]["name"]: tool["function"] for tool in script.requests[0]["tools"]}
    assert [name for name in tools if not name.startswith("north_")] == ["wait"]
    assert tools["north_add"]["description"] == "Add two numbers."
    assert tools["north_add"]["parameters"]["required"] == ["a"]
    messages = script.requests[-1]["messages"]
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert results[:3] == ["5", "waited", '{"error":"the crane is stuck"}']
    assert "1 validation error for call[add]" in results[3]
    assert results[4] == "***"
    assert results[5] == "See file 4a5eb7."
    photo = next(message["content"] for message in messages if isinstance(message["content"], list))
    assert [part["type"] for part in photo] == ["text", "image_url", "text"]
    assert photo[0]["text"] == (
        '<pyai:tool_result tool_name="north_photo" tool_call_id="%s" file_id="4a5eb7">'
        % [message["tool_call_id"] for message in messages if message["role"] == "tool"][5]
    )
    assert photo[1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0")
    assert "made-up-dock-token" not in log.text
    log.assert_groups_balance()
    # The servers end with the task.
    deadline = time.monotonic() + 20
    while (runs := Path(f"/proc/{results[6]}").exists()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not runs
