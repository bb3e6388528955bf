"""Serve the tool echo by attaching to a worker if ATTACH_URL is set, and over stdio otherwise, to compare both."""

import os

from callyard import attach

tools = attach.Server("echo")


@tools.tool(read_only=True)
async def echo(message: str) -> str:
    """Answers its message."""
    return "Echo: " + message


if url := os.environ.get("ATTACH_URL"):
    attach.run(url, tools, key=os.environ["ATTACH_KEY"], in_flight=64)
else:
    tools.mcp.run("stdio")
