"""Runs the agents of tests/fixtures/openai_agents under the OpenAI Agents SDK that is installed here.

Prints a line for the release, and one for each agent: what its scripted model was asked and answered, what came of the run,
and its spans. `tests/fixtures/openai_agents/recorded.jsonl` is the output under the newest release.
"""

import json
import logging
import pathlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fixtures/openai_agents"))
logging.disable(logging.CRITICAL)

import agents  # noqa: E402
import cases  # noqa: E402
import told  # noqa: E402


class Model(BaseHTTPRequestHandler):
    """The scripted models of all agents, each under the agent's name."""

    protocol_version = "HTTP/1.1"
    asked: dict[str, list] = {name: [] for name in cases.CASES}

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _, name, path = self.path.split("/", 2)
        exchanges = self.asked[name]
        script = cases.CASES[name][1]
        over = {"status": 500, "body": "the script is over"}
        answer = script[len(exchanges)] if len(exchanges) < len(script) else over
        status, kind, text = written(answer, path)
        own = {key.lower(): value for key, value in self.headers.items() if key.lower() == "x-team"}
        exchanges.append(
            {"path": f"/{path}", "headers": own, "request": request, "status": status, "type": kind, "answer": text}
        )
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def written(answer, path):
    """Status, type and text of an answer."""
    if "events" in answer:
        events = "".join(
            (f"event: {kind}\n" if kind else "") + f"data: {json.dumps(data)}\n\n" for kind, data in answer["events"]
        )
        return 200, "text/event-stream", events + ("data: [DONE]\n\n" if "completions" in path else "")
    if "body" in answer:
        body = answer["body"]
        return answer["status"], "application/json", body if isinstance(body, str) else json.dumps(body)
    return 200, "application/json", json.dumps(answer)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
here = f"127.0.0.1:{server.server_port}"
print(json.dumps({"version": agents.__version__}))
for name, came in told.run(f"http://{here}", sys.argv[1:]).items():
    line = json.dumps({"name": name, "exchanges": Model.asked[name], **came}, sort_keys=True)
    print(line.replace(here, "model"))
