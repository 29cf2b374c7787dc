"""A Chat Completions server that answers from a script, one script per model name, and keeps every request.

The turn of a conversation is the number of assistant messages it holds, so one script serves any number of
conversations at once. Faults are used up in order of arrival, before the turn is looked at.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Fault:
    """An answer that is an error."""

    status: int
    body: dict[str, Any] = field(default_factory=lambda: {"error": {"message": "the model is unwell"}})
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Turn:
    """What the model says: text, tool calls as (name, arguments), or both; after `delay` seconds."""

    text: str | None = None
    calls: list[tuple[str, dict[str, Any] | str]] = field(default_factory=list)
    delay: float = 0.0
    usage: dict[str, int] = field(default_factory=lambda: {"input_tokens": 20, "output_tokens": 10})


def say(text: str, **more: Any) -> Turn:
    return Turn(text=text, **more)


def call(name: str, /, _delay: float = 0.0, **arguments: Any) -> Turn:
    return Turn(calls=[(name, arguments)], delay=_delay)


Step = Turn | Callable[[dict[str, Any]], Turn]


@dataclass
class Script:
    turns: list[Step]
    faults: list[Fault] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    active: int = 0
    most_active: int = 0


def transcript(document: dict[str, Any]) -> list[Step]:
    """The turns of a `*.transcript.json` file."""
    return [
        Turn(
            text=turn.get("text"),
            calls=[(made["name"], made["args"]) for made in turn.get("tool_calls", [])],
            usage=turn.get("usage", {}),
        )
        for turn in document["turns"]
    ]


def violations(messages: list[dict[str, Any]]) -> list[str]:
    """Where a conversation breaks the rule: every tool call has one result, at once and in order."""
    found = []
    due: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if not due or due[0] != message["tool_call_id"]:
                found.append(f"message {number}: result of {message['tool_call_id']}, due was {due}")
            if message["tool_call_id"] in due:
                due.remove(message["tool_call_id"])
            continue
        if due:
            found.append(f"message {number}: {message['role']} while results of {due} are missing")
        due = [made["id"] for made in message.get("tool_calls") or []]
    if due:
        found.append(f"the request ends without the results of {due}")
    return found


class ModelServer:
    """The server. `base_url` is what a connection's host holds."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, default: list[Step] | None = None) -> None:
        self.scripts: dict[str, Script] = {}
        self.default = default
        self.violations: list[str] = []
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one segment: as two they wait for each other, some 40 ms an answer.
            wbufsize = -1

            def do_POST(self) -> None:
                owner._answer(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def script(self, model: str, turns: list[Step], faults: list[Fault] | None = None) -> Script:
        """Sets what the model of that name says, and forgets what it was asked before."""
        script = Script(turns=turns, faults=list(faults or []))
        with self._lock:
            self.scripts[model] = script
        return script

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, http: BaseHTTPRequestHandler) -> None:
        body = json.loads(http.rfile.read(int(http.headers["content-length"])))
        with self._lock:
            script = self.scripts.get(body.get("model", ""))
            if script is None and self.default is not None:
                script = Script(turns=self.default)
            fault = None
            if script is not None:
                script.requests.append(body)
                script.arrivals.append(time.monotonic())
                script.active += 1
                script.most_active = max(script.most_active, script.active)
                fault = script.faults.pop(0) if script.faults else None
            self.violations += [f"{body.get('model')}: {text}" for text in violations(body.get("messages", []))]
        try:
            if script is None:
                self._send(http, 404, {"error": {"message": f"no script for model {body.get('model')!r}"}})
            elif not http.path.endswith("/chat/completions"):
                self._send(http, 404, {"error": {"message": f"no such route: {http.path}"}})
            elif fault is not None:
                self._send(http, fault.status, fault.body, fault.headers)
            else:
                self._send_turn(http, script, body)
        finally:
            if script is not None:
                with self._lock:
                    script.active -= 1

    def _send_turn(self, http: BaseHTTPRequestHandler, script: Script, body: dict[str, Any]) -> None:
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if number >= len(script.turns):
            self._send(http, 400, {"error": {"message": f"the script has no turn {number}"}})
            return
        turn = script.turns[number]
        if callable(turn):
            try:
                turn = turn(body)
            except Exception as error:
                self.violations.append(f"{body['model']}: the script's turn {number} raised {error!r} on {body['messages']}"[:2000])
                self._send(http, 400, {"error": {"message": "the script is broken"}})
                return
        time.sleep(turn.delay)
        message: dict[str, Any] = {"role": "assistant", "content": turn.text}
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{number}_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": made if isinstance(made, str) else json.dumps(made)},
                }
                for index, (name, made) in enumerate(turn.calls)
            ]
        inputs, outputs = turn.usage.get("input_tokens", 0), turn.usage.get("output_tokens", 0)
        answer = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if turn.calls else "stop"}
            ],
            "usage": {"prompt_tokens": inputs, "completion_tokens": outputs, "total_tokens": inputs + outputs},
        }
        self._send(http, 200, answer)

    @staticmethod
    def _send(http: BaseHTTPRequestHandler, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        try:
            http.send_response(status)
            http.send_header("content-type", "application/json")
            http.send_header("content-length", str(len(data)))
            for name, value in (headers or {}).items():
                http.send_header(name, value)
            http.end_headers()
            http.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            # The client was killed on purpose, or gave up: nobody is left to be told.
            http.close_connection = True


def main() -> None:
    """Serves one transcript under every model name, for a look at the whole system without a model."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("transcript", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000)
    arguments = parser.parse_args()
    server = ModelServer(arguments.host, arguments.port, transcript(json.loads(arguments.transcript.read_text())))
    print(f"{arguments.transcript} is served at {server.base_url}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
