"""The story that the Python SDK plays: story.py URL legacy|auto

It judges nothing: it prints what it saw, and the Go test compares. story.mjs
plays the same.
"""

import json
import sys

import anyio
from mcp import Client
from mcp_types import ElicitResult


def text(result):
    return "".join(getattr(block, "text", "") for block in result.content)


async def main(url, mode):
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        wanted = list(params.requested_schema["properties"])
        return ElicitResult(action="accept", content={"confirm": True} if "confirm" in wanted else {wanted[0]: "Ada"})

    async with Client(url, mode=mode, elicitation_callback=answer, read_timeout_seconds=60) as client:
        report = {"revision": client.protocol_version, "tools": []}
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            report["tools"] += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break

        report["said"] = text(await client.call_tool("everything__echo", {"message": "good evening"}))
        report["simple"] = text(await client.call_tool("conformance__test_simple_text", {}))

        steps = []

        async def step(progress, total, message):
            steps.append(progress)

        await client.call_tool("everything__trigger-long-running-operation", {"duration": 1, "steps": 4}, progress_callback=step)
        report["progress"] = steps

        report["cancelled"] = "it was answered"
        with anyio.CancelScope() as scope:

            async def enough(progress, total, message):
                scope.cancel()

            await client.call_tool("everything__trigger-long-running-operation", {"duration": 120, "steps": 240}, progress_callback=enough)
        if scope.cancelled_caught:
            report["cancelled"] = "yes"

        report["named"] = text(await client.call_tool("conformance__test_input_required_result_elicitation", {}))
        report["confirmed"] = text(await client.call_tool("risky__echo", {"text": "it ran"}))
        if mode == "legacy":
            report["elicited"] = text(await client.call_tool("asking__test_elicitation", {"message": "Which user is it?"}))
        report["asked"] = asked
    print(json.dumps(report))


anyio.run(main, *sys.argv[1:])
