"""The tool echo, attached to a worker where ATTACH_URL is set and on the standard streams elsewhere: the same server both ways, to compare them."""

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
