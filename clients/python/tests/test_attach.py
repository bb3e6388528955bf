"""Tests of attached programs against a minimal worker."""

import asyncio
import json
import unittest
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any

from mcp.server.mcpserver import Context
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from callyard import attach


class Worker:
    """Accept a program and call its tool once on each connection, or refuse it with `status` if that is set."""

    def __init__(self, status: HTTPStatus | None = None, metas: tuple[dict[str, str], ...] = ()) -> None:
        self.metas = metas
        self.status = status
        self.connections: list[ServerConnection] = []
        self.results: asyncio.Queue[Any] = asyncio.Queue()
        self.drained = asyncio.Event()

    async def start(self) -> Server:
        return await serve(self.talk, "127.0.0.1", 0, subprotocols=["mcp"], process_request=self.check)  # type: ignore[list-item]

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        assert request.path == "/attach/prices" and request.headers["Authorization"] == "Bearer key" and request.headers["Callyard-In-Flight"] == "3"
        return connection.respond(self.status, "no") if self.status else None

    async def talk(self, connection: ServerConnection) -> None:
        self.connections.append(connection)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "worker", "version": "1"}}
        await self.ask(connection, 1, "initialize", hello)
        await connection.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        tools = await self.ask(connection, 2, "tools/list", {})
        called = await self.ask(connection, 3, "tools/call", {"name": "quote", "arguments": {"sku": "a", "quantity": 4}})
        await self.results.put((tools, called))
        for meta in self.metas:
            await self.results.put(await self.ask(connection, 4, "tools/call", {"name": "quote", "arguments": {"sku": "a"}, "_meta": meta}))
        await connection.send('{"jsonrpc":"2.0","method":"notifications/callyard/session_ended","params":{"session":"episode_1"}}')
        async for text in connection:
            if json.loads(text).get("method") == "notifications/callyard/draining":
                self.drained.set()
                await connection.close()

    async def ask(self, connection: ServerConnection, number: int, method: str, params: dict[str, Any]) -> Any:
        await connection.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        async for text in connection:
            answer = json.loads(text)
            if answer.get("id") == number:
                return answer["result"]
        raise AssertionError("the connection ended")


def prices() -> attach.Server:
    server = attach.Server("prices", version="1")

    @server.tool(read_only=True)
    def quote(sku: str, quantity: int = 1) -> dict[str, float]:
        """What that number of an article costs.

        Args:
            sku: article number,
                as printed
            quantity (int): how many

        Returns:
            the total
        """
        return {"total": 2.5 * quantity}

    return server


class AttachTest(unittest.IsolatedAsyncioTestCase):
    async def test_it_serves_and_dials_again_and_drains(self) -> None:
        worker, stop = Worker(), asyncio.Event()
        async with await worker.start() as listening:
            url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            program = asyncio.create_task(attach.serve(url, prices(), key="key", in_flight=3, stop=stop))
            tools, called = await asyncio.wait_for(worker.results.get(), 20)
            tool = tools["tools"][0]
            self.assertEqual("What that number of an article costs.", tool["description"])
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            self.assertEqual(["sku"], tool["inputSchema"]["required"])
            self.assertEqual("article number, as printed", tool["inputSchema"]["properties"]["sku"]["description"])
            self.assertEqual("how many", tool["inputSchema"]["properties"]["quantity"]["description"])
            self.assertEqual({"total": 10.0}, called["structuredContent"])
            await worker.connections[0].close(1001)
            await asyncio.wait_for(worker.results.get(), 20)
            self.assertFalse(worker.drained.is_set())
            stop.set()
            await asyncio.wait_for(program, 20)
            self.assertTrue(worker.drained.is_set())
            self.assertEqual(2, len(worker.connections))

    async def test_a_call_tells_of_its_episode_and_the_program_is_told_of_the_end(self) -> None:
        told: list[attach.Episode | None] = []
        ended: asyncio.Queue[str] = asyncio.Queue()
        server = attach.Server("prices", version="1")

        @server.tool()
        def quote(sku: str, context: Context[Any, Any]) -> str:
            told.append(attach.episode(context))
            return sku

        full = {"dev.callyard/session": "episode_1", "dev.callyard/clock": "2026-01-31T12:00:00+02:00", "dev.callyard/seed": "-9223372036854775808"}
        worker, stop = Worker(metas=(full, {"dev.callyard/session": "episode_2"})), asyncio.Event()
        async with await worker.start() as listening:
            url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            program = asyncio.create_task(attach.serve(url, server, key="key", in_flight=3, stop=stop, ended=ended.put_nowait))
            self.assertEqual("episode_1", await asyncio.wait_for(ended.get(), 20))
            stop.set()
            await asyncio.wait_for(program, 20)
        clock = datetime(2026, 1, 31, 10, tzinfo=timezone.utc)
        self.assertEqual([None, attach.Episode("episode_1", clock, -(2**63)), attach.Episode("episode_2")], told)

    async def test_a_tool_that_is_added_or_removed_while_it_serves_is_announced(self) -> None:
        server, stop = prices(), asyncio.Event()
        changed: asyncio.Queue[str] = asyncio.Queue()

        async def talk(connection: ServerConnection) -> None:
            names = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "worker", "version": "1"}}
            meta = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
            params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
            await connection.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}))
            async for text in connection:
                message = json.loads(text)
                if message.get("method") == "notifications/callyard/draining":
                    await connection.close()
                else:
                    await changed.put(message.get("method", text))

        async with await serve(talk, "127.0.0.1", 0, subprotocols=["mcp"]) as listening:  # type: ignore[list-item]
            url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            program = asyncio.create_task(attach.serve(url, server, key="key", stop=stop))
            self.assertEqual("notifications/subscriptions/acknowledged", await asyncio.wait_for(changed.get(), 20))
            for change in (lambda: server.tool(name="more")(lambda: "more"), lambda: server.remove("more")):
                await asyncio.to_thread(change)  # the thread pool that runs functions without async
                self.assertEqual("notifications/tools/list_changed", await asyncio.wait_for(changed.get(), 20))
            stop.set()
            await asyncio.wait_for(program, 20)
        server.tool(name="after")(lambda: "after")  # not announced to a worker, but no error either

    async def test_a_lone_surrogate_in_a_result_does_not_end_the_program(self) -> None:
        server, stop, worker = prices(), asyncio.Event(), Worker()

        @server.tool()
        def name(odd: bool) -> str:
            return "caf\udce9" if odd else "é\U0001f600"  # os.listdir returns the first for a name in Latin-1

        answers: asyncio.Queue[Any] = asyncio.Queue()

        async def talk(connection: ServerConnection) -> None:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "worker", "version": "1"}}
            await worker.ask(connection, 1, "initialize", hello)
            await connection.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
            for number, odd in ((2, True), (3, False)):
                await answers.put(await worker.ask(connection, number, "tools/call", {"name": "name", "arguments": {"odd": odd}}))
            async for _ in connection:  # it drains
                await connection.close()

        async with await serve(talk, "127.0.0.1", 0, subprotocols=["mcp"]) as listening:  # type: ignore[list-item]
            url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            program = asyncio.create_task(attach.serve(url, server, key="key", stop=stop))
            for want in ("caf\ufffd", "é\U0001f600"):
                answer = asyncio.create_task(answers.get())
                await asyncio.wait((answer, program), timeout=20, return_when=asyncio.FIRST_COMPLETED)
                self.assertFalse(program.done(), "the program ended")
                self.assertEqual(want, (await answer)["content"][0]["text"])
            stop.set()
            await asyncio.wait_for(program, 20)

    async def test_a_refusal_for_good_is_raised(self) -> None:
        worker = Worker(HTTPStatus.UNAUTHORIZED)
        async with await worker.start() as listening:
            url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
            with self.assertRaisesRegex(attach.RefusedError, "HTTP 401"):
                await asyncio.wait_for(attach.serve(url, prices(), key="key", in_flight=3, stop=asyncio.Event()), 20)

    def test_docstrings_without_sections_stay_as_they_are(self) -> None:
        self.assertEqual(("One.\n\nTwo: three.", {}), attach.docstring("One.\n\nTwo: three."))


if __name__ == "__main__":
    unittest.main()
