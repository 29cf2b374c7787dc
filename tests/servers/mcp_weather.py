"""An MCP server over standard input and output with the tools that the provider's example Dags speak of."""

import os

from fastmcp import FastMCP

mcp = FastMCP("weather")


@mcp.tool
def hello(name: str = "world") -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@mcp.tool
def get_forecast(city: str) -> dict:
    """The weather of tomorrow."""
    return {"city": city, "rain": True}


@mcp.tool
def get_alerts(region: str) -> list[str]:
    """Warnings for a region."""
    return [f"fog in {region}"]


@mcp.tool
def delete_station(name: str) -> str:
    """Remove a weather station."""
    return f"{name} is gone"


@mcp.tool
def calculate(base: int, exponent: int) -> int:
    """Raise a number to a power."""
    return base**exponent


@mcp.tool
def search_ticket(text: str) -> str:
    """Search with the key that the server was started with."""
    return f"{text}: found with {os.environ.get('SPLUNK_API_KEY', 'no key')}"


mcp.run(show_banner=False)
