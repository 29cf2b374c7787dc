"""Hooks of providers: the same requests and mails on Updraft and on Airflow's own worker."""

from __future__ import annotations

import email
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from harness.airflow import Airflow
from harness.model_server import ModelServer, call, say
from harness.worker import Worker

MAIL_SERVER = Path(__file__).parents[1] / "servers" / "mail.py"


@pytest.fixture
def tides() -> Iterator[ThreadingHTTPServer]:
    """Answers each GET with JSON, and keeps what was asked in `seen`."""

    class Tides(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            names = ("authorization", "x-key", "x-call")
            self.server.seen.append([self.path, *(self.headers.get(name) for name in names)])
            body = json.dumps({"tide": "high"}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Tides)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def test_an_agent_and_a_task_reach_a_server_and_a_task_sends_a_mail(
    airflow: Airflow, worker: Worker, model: ModelServer, tides: ThreadingHTTPServer, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, MAIL_SERVER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as post:
        ports = json.loads(post.stdout.readline())
        airflow.add_connection(
            "tides_web",
            conn_type="http",
            host="127.0.0.1",
            port=tides.server_port,
            login="mate",
            password="made-up-web-password",
            extra=json.dumps({"x-key": "made-up-key", "timeout": 10}),
        )
        extra = {"from_email": "port@example.com", "disable_ssl": True, "disable_tls": True}
        airflow.add_connection(
            "tides_post", conn_type="smtp", host="127.0.0.1", port=ports["plain"], extra=json.dumps(extra)
        )
        script = model.script(
            "example",
            [
                call("web_run", endpoint="v1/tide", headers={"x-call": "1"}),
                say("It is."),
            ],
        )
        run, state = airflow.run_dag("hooks")
        log = airflow.log(run, "ask")
        assert state == "success", log.text + airflow.log(run, "tell").text
        post.stdin.close()

    (tool,) = script.requests[0]["tools"]
    parameters = tool["function"]["parameters"]
    assert list(parameters["properties"]) == ["endpoint", "data", "headers", "extra_options"]
    assert parameters["properties"]["endpoint"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert parameters["additionalProperties"] is True
    results = [message["content"] for message in script.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ['"<Response [200]>"']
    login = "Basic bWF0ZTptYWRlLXVwLXdlYi1wYXNzd29yZA=="
    assert sorted(tides.seen) == [
        ["/v1/tide", login, "made-up-key", "1"],
        ["/v1/tide?port=Oslo&days=2", login, "made-up-key", None],
    ]
    assert airflow.xcoms(run, "tell")["return_value"] == [200, {"tide": "high"}]

    (mail,) = [json.loads(line) for line in (tmp_path / "mails").read_text().splitlines()]
    assert mail["from"] == "port@example.com"
    assert mail["to"] == ["mate@example.com", "crew@example.com", "owner@example.com"]
    message = email.message_from_string(mail["text"])
    assert message["Subject"] == "Tide at Oslo"
    assert message["To"] == "mate@example.com, crew@example.com"
    assert message.get_content_type() == "multipart/mixed"
    (part,) = message.get_payload()
    assert part.get_content_type() == "text/html"
    assert part.get_payload(decode=True).decode().strip() == '<b>{"tide": "high"}</b>'
