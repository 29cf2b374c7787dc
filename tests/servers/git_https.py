"""git over HTTPS for the tests: `git http-backend` behind TLS, and servers that behave badly.

    git_https.py DIR

DIR holds `server.crt`, `server.key`, `repositories/`. Two servers listen on free ports of loopback; their numbers are
written to DIR/ports. Every request is noted in DIR/requests, one JSON object a line.

    /open/...     anybody may read
    /private/...  asks for the token
    /denied/...   says 401 to everything
    /moved/...    redirects to /private/... of the same server
    /away/...     redirects to /private/... of the other server
    /late/...     asks for the token, then redirects to the other server
    /slow/...     takes its time before it answers
    /api/v3/...   gives the GitHub App 7 a token for its installation 42
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "made-up-git-token"
USER = "reader"
APP_TOKEN = "made-up-installation-token"

folder = Path(sys.argv[1])
backend = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip()) / "git-http-backend"
noting = threading.Lock()
ports: list[int] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.serve()

    do_POST = do_GET

    def serve(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline().strip() or b"0", 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        authorization = self.headers.get("authorization")
        with noting, (folder / "requests").open("a") as file:
            note = {"port": self.server.server_port, "path": self.path, "authorization": authorization}
            print(json.dumps(note), file=file)
        first, _, rest = self.path.lstrip("/").partition("/")
        pairs = (f"{USER}:{TOKEN}", f"x-access-token:{APP_TOKEN}")
        expected = ["Basic " + base64.b64encode(pair.encode()).decode() for pair in pairs]
        if first == "api":
            return self.installation_token(rest, authorization)
        if first in ("private", "late") and authorization not in expected or first == "denied":
            return self.answer(401, {"www-authenticate": 'Basic realm="git"'}, b"")
        if first == "moved":
            return self.answer(302, {"location": f"/private/{rest}"}, b"")
        if first in ("away", "late"):
            other = next(port for port in ports if port != self.server.server_port)
            return self.answer(302, {"location": f"https://127.0.0.1:{other}/private/{rest}"}, b"")
        if first == "slow":
            time.sleep(30)
        return self.git(rest, body)

    def installation_token(self, path, authorization):
        """What GitHub does with an app's signed request."""
        head, claims, signature = (authorization or "").removeprefix("Bearer ").split(".")
        told = json.loads(base64.urlsafe_b64decode(claims + "=="))
        (folder / "signature").write_bytes(base64.urlsafe_b64decode(signature + "=="))
        verify = ["openssl", "dgst", "-sha256", "-verify", folder / "app.pub", "-signature", folder / "signature"]
        signed = subprocess.run(verify, input=f"{head}.{claims}".encode(), capture_output=True, check=False)
        fresh = told["iat"] <= time.time() <= told["exp"] <= told["iat"] + 600
        if signed.returncode or not fresh or told["iss"] != "7":
            return self.answer(401, {}, json.dumps({"message": "A JSON web token could not be decoded"}).encode())
        if path != "v3/app/installations/42/access_tokens" or self.command != "POST":
            return self.answer(404, {}, json.dumps({"message": "Not Found"}).encode())
        given = {"token": APP_TOKEN, "expires_at": "2099-01-01T00:00:00Z"}
        return self.answer(201, {"content-type": "application/json"}, json.dumps(given).encode())

    def git(self, path, body):
        path, _, query = path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(folder / "repositories"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": "/" + path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "REMOTE_USER": USER,
        }
        answer = subprocess.run([backend], input=body, env=environment, capture_output=True, check=False).stdout
        head, _, content = answer.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        self.answer(status, headers, content)

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def listen() -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    # The handshake belongs to the connection's own thread: a client that is silent must not stop the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


servers = [listen(), listen()]
ports += [server.server_port for server in servers]
for server in servers:
    threading.Thread(target=server.serve_forever, daemon=True).start()
(folder / "ports.new").write_text("\n".join(map(str, ports)))
(folder / "ports.new").rename(folder / "ports")
threading.Event().wait()
