"""Stands between a worker and the API server and does to requests what bad networks and bad servers do.

It speaks as much of HTTP/1.1 as worker and server do, and passes on what it does not spoil byte for byte.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Sequence

#: What can happen to a request. `lose`, `reset`: the server does not hear of it; `truncate`: its answer breaks off;
#: `replay`: the server hears of it twice; `delay`: the answer comes late; a number: a proxy answers in its place.
KINDS = ("lose", "reset", "truncate", "replay", "delay", "500", "502", "429")

#: A server gives a job away when it is asked for one: if the answer is lost, the job is lost until the scheduler looks
#: for it. These kinds are kept from such requests.
LOSES_ANSWERS = ("truncate", "replay")


class Proxy:
    """Listens on loopback; a `share` of the requests meets a fault of `kinds`."""

    def __init__(self, port: int, seed: int = 1) -> None:
        self.server = ("127.0.0.1", port)
        self.kinds: Sequence[str] = ()
        self.share = 0.0
        self.spare_fetches = True
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, share: float, kinds: Sequence[str] = KINDS) -> None:
        """From now on."""
        with self._lock:
            self.share, self.kinds = share, kinds

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _fault(self, request: bytes) -> str | None:
        with self._lock:
            self.counts["requests"] += 1
            if not self.kinds or self._random.random() >= self.share:
                return None
            kind = self._random.choice(self.kinds)
            if kind in LOSES_ANSWERS and self.spare_fetches and b"/jobs/fetch/" in request.split(b"\r\n", 1)[0]:
                return None
            self.counts[kind] += 1
            return kind

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                while (request := _message(client)) is not None:
                    if not self._carry(client, request, self._fault(request)):
                        return
            except OSError:
                pass

    def _carry(self, client: socket.socket, request: bytes, fault: str | None) -> bool:
        """Carries one request and its answer. False: the connection is over."""
        if fault == "lose":
            return False
        if fault == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if fault is not None and fault.isdigit():
            body = b"<html>a proxy</html>"
            head = f"HTTP/1.1 {fault} Made Up\r\ncontent-length: {len(body)}\r\nretry-after: 0\r\n\r\n"
            client.sendall(head.encode() + body)
            return True
        answer = self._ask(request)
        if answer is None:
            return False
        if fault == "replay":
            answer = self._ask(request) or answer
        if fault == "delay":
            time.sleep(self._random.uniform(0.5, 2.0))
        if fault == "truncate":
            client.sendall(answer[: max(1, len(answer) - 7)])
            return False
        client.sendall(answer)
        return True

    def _ask(self, request: bytes) -> bytes | None:
        try:
            with socket.create_connection(self.server, timeout=30) as server:
                server.sendall(request)
                return _message(server)
        except OSError:
            return None


def _message(stream: socket.socket) -> bytes | None:
    """One HTTP message with its body; None at the end of the stream."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = stream.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length, chunked = 0, False
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
        if name.strip().lower() == b"transfer-encoding":
            chunked = True

    def incomplete() -> bool:
        return not _ends(body) if chunked else len(body) < length

    while incomplete():
        piece = stream.recv(65536)
        if not piece:
            return None
        body += piece
    return head + b"\r\n\r\n" + body


def _ends(body: bytes) -> bool:
    """Is this body in chunks whole?"""
    at = 0
    while (line := body.find(b"\r\n", at)) >= 0:
        size = int(body[at:line].split(b";")[0], 16)
        at = line + 2 + size + 2
        if size == 0:
            return len(body) >= at
    return False
