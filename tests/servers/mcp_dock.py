"""An MCP server for the tests, made with FastMCP: `mcp_dock.py stdio|http|sse [--legacy]`.

Over HTTP it takes a free port of 127.0.0.1 and prints it. DOCK_TOKEN names a bearer token that it then asks for.
`GET /forget` makes it forget its sessions; `GET /sessions` says how many were begun, `GET /lists` how often its tools
were asked for. `--legacy` refuses the newest protocol, which knows no sessions. The server ends when its standard input
does.
"""

import base64
import json
import os
import socket
import sys
import threading

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool, ToolResult
from fastmcp.utilities.types import Image
from mcp.types import AudioContent, BlobResourceContents, EmbeddedResource, ResourceLink, TextContent, ToolListChangedNotification

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

mcp = FastMCP("dock", instructions="Ask the harbour master.")


@mcp.tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def ship(name: str) -> dict:
    """Describe a ship."""
    return {"name": name, "length": 40.5}


@mcp.tool
def photo() -> Image:
    """Take a photo."""
    return Image(data=PIXEL, format="png")


@mcp.tool
def papers() -> ToolResult:
    """Everything that a result can hold."""
    return ToolResult(
        content=[
            TextContent(type="text", text="caption"),
            AudioContent(type="audio", data="JVBERg==", mimeType="audio/wav"),
            EmbeddedResource(
                type="resource",
                resource=BlobResourceContents(uri="dock:manifest", blob="JVBERg==", mimeType="application/pdf"),
            ),
            ResourceLink(type="resource_link", uri="dock:berth/7", name="berth"),
        ]
    )


@mcp.tool
def fail() -> str:
    """Always fail."""
    raise ToolError("the crane is stuck")


@mcp.tool
def environment() -> list[str]:
    """The names of the server's environment variables."""
    return sorted(os.environ)


@mcp.tool
def token() -> str:
    """The token that the server was started with."""
    return os.environ.get("DOCK_TOKEN", "unset")


@mcp.tool
def process() -> int:
    """The server's process."""
    return os.getpid()


@mcp.tool
async def wait(seconds: float) -> str:
    """Wait."""
    import asyncio

    await asyncio.sleep(seconds)
    return "waited"


@mcp.tool(output_schema=None)
def manifest(mebibytes: int) -> str:
    """Much text."""
    return "x" * (mebibytes << 20)


@mcp.tool
async def hire(name: str, ctx: Context) -> str:
    """Add a tool of this name, and say so."""

    def hired() -> str:
        """A hired hand."""
        return f"{name} at work"

    mcp.add_tool(Tool.from_function(hired, name=name))
    await ctx.send_notification(ToolListChangedNotification())
    return "hired"


class Gate:
    """Stands before the server: asks for the token, forgets sessions, refuses the newest protocol."""

    def __init__(self, app, legacy):
        self.app = app
        self.legacy = legacy
        self.forgotten = set()
        self.known = set()
        self.lists = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        wanted = os.environ.get("DOCK_TOKEN")
        if wanted and headers.get("authorization") != f"Bearer {wanted}":
            return await answer(send, 401, {"error": "unauthorized"}, [(b"www-authenticate", b"Bearer")])
        if scope["path"] == "/forget":
            self.forgotten |= self.known
            return await answer(send, 200, len(self.forgotten))
        if scope["path"] == "/sessions":
            return await answer(send, 200, len(self.known))
        if scope["path"] == "/lists":
            return await answer(send, 200, self.lists)
        query = dict(part.split("=", 1) for part in scope["query_string"].decode().split("&") if "=" in part)
        session = headers.get("mcp-session-id") or query.get("session_id")
        if session:
            self.known.add(session)
            if session in self.forgotten:
                return await answer(send, 404, {"error": "no such session"})
        if scope["method"] == "POST":
            body, more = b"", True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
            said = json.loads(body)
            self.lists += said.get("method") == "tools/list"
            if self.legacy and said.get("method") == "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                return await answer(send, 200, {"jsonrpc": "2.0", "id": said["id"], "error": error})
            sent = False

            async def again():
                nonlocal sent
                if not sent:
                    sent = True
                    return {"type": "http.request", "body": body, "more_body": False}
                return await receive()

            return await self.app(scope, again, send)
        await self.app(scope, receive, send)


async def answer(send, status, body, headers=()):
    headers = [(b"content-type", b"application/json"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def serve(transport, legacy):
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # Whoever is told the port may connect at once.
    listener.listen()
    app = Gate(mcp.http_app(transport=transport), legacy)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))

    def end_with_the_tests():
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_the_tests, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        mcp.run(show_banner=False)
    else:
        serve(sys.argv[1], "--legacy" in sys.argv)
