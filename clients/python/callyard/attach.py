"""Serve tools to Callyard from a separate program, which dials a worker.

`Server` turns functions into tools. `run` serves it, or an existing MCP server of the
official SDK, until the process receives SIGTERM or SIGINT. This module needs the
packages mcp and websockets: `pip install callyard[attach]`.

When the connection ends, `run` dials again after 0.2 s, doubling to 10 s, with jitter.
It never resends a message of the old connection.
"""

import asyncio
import inspect
import json
import logging
import random
import re
import signal
import time
import typing
import urllib.parse
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

import anyio
import mcp_types
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.shared.message import SessionMessage
from pydantic import Field, ValidationError
from pydantic_core import PydanticSerializationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

__all__ = ["Episode", "RefusedError", "Server", "episode", "run", "serve"]

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before dialing again
SESSION, CLOCK, SEED = "dev.callyard/session", "dev.callyard/clock", "dev.callyard/seed"  # keys of _meta
SESSION_ENDED = "notifications/callyard/session_ended"
DRAINING = '{"jsonrpc":"2.0","method":"notifications/callyard/draining"}'
log = logging.getLogger("callyard.attach")

F = TypeVar("F", bound=Callable[..., Any])


class RefusedError(Exception):
    """The worker refuses the program permanently: the key is not valid, or a header is wrong."""


@dataclass(frozen=True)
class Episode:
    """The training episode of a call.

    Attributes:
        session: the unique name of the episode, under which the tool can keep state
        clock: the fixed time of the episode; if None, use the machine's clock
        seed: the seed for the tool's random numbers; if None, any seed may be used
    """

    session: str
    clock: datetime | None = None
    seed: int | None = None


def episode(context: Context[Any, Any]) -> Episode | None:
    """Return the episode of the call with this context, or None if it has none."""
    meta: dict[str, Any] = dict(context.request_context.meta or {})
    if SESSION not in meta:
        return None
    clock, seed = meta.get(CLOCK), meta.get(SEED)
    return Episode(meta[SESSION], None if clock is None else datetime.fromisoformat(clock), None if seed is None else int(seed))


class SessionEnded(mcp_types.NotificationParams):
    """The params of the session_ended notification."""

    session: str


class Server:
    """An MCP server whose tools are functions."""

    def __init__(self, name: str, *, version: str = "0", instructions: str | None = None) -> None:
        self._changes = InMemorySubscriptionBus()
        self._loop: asyncio.AbstractEventLoop | None = None  # of serve
        self.mcp = MCPServer(name, version=version, instructions=instructions, subscriptions=self._changes)

    def tool(self, *, name: str | None = None, read_only: bool = False, idempotent: bool = False) -> Callable[[F], F]:
        """Return a decorator that registers a function as a tool.

        The type hints of the function become the schema, and its Google-style docstring
        the descriptions. Tools can also be added while the server is served.

        Args:
            name: name of the tool; the default is the function's name
            read_only: the tool changes nothing
            idempotent: running the tool twice with the same arguments has the effect of running it once
        """

        def register(function: F) -> F:
            summary, parameters = docstring(inspect.getdoc(function) or "")
            hints = typing.get_type_hints(function, include_extras=True)
            for parameter, text in parameters.items():
                if parameter in hints:
                    hints[parameter] = Annotated[hints[parameter], Field(description=text)]
            function.__annotations__ = hints
            annotations = mcp_types.ToolAnnotations(read_only_hint=read_only, idempotent_hint=idempotent or read_only)
            self.mcp.add_tool(function, name=name, description=summary, annotations=annotations)
            self._changed()
            return function

        return register

    def remove(self, name: str) -> None:
        """Remove a tool, also while the server is served."""
        self.mcp.remove_tool(name)
        self._changed()

    def _changed(self) -> None:
        """Notify the worker that the tool list changed. Tools may change in any thread."""
        if self._loop is not None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._changes.publish(ToolsListChanged()), self._loop)


def docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into the text before its sections and the parameter descriptions in Args."""
    parts = re.split(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$", text, flags=re.MULTILINE)
    parameters: dict[str, str] = {}
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Args", "Arguments", "Parameters"):
            for found in re.finditer(r"^ +\*{0,2}(\w+)(?: *\([^)\n]*\))?: *(.*(?:\n {6,}.*)*)", body, flags=re.MULTILINE):
                parameters[found[1]] = " ".join(found[2].split())
    return parts[0].strip(), parameters


def run(url: str, server: "Server | MCPServer[Any] | LowLevelServer[Any]", *, key: str, in_flight: int = 16, ended: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then drain: accept no new calls, and return when the calls in flight are answered.

    Args:
        url: URL of the worker's listener for programs, such as ws://127.0.0.1:9191 or wss://worker.example:9191
        server: server to attach; its name must be the name of the server in Callyard
        key: key that `callyard keys attach` printed for the server
        in_flight: maximum number of concurrent calls
        ended: called in the event loop with the name of each session that has ended; it must not block

    Raises:
        RefusedError: the worker refuses the program, and dialing again would not help
    """

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def drain() -> None:
            stop.set()
            for number in (signal.SIGTERM, signal.SIGINT):  # a second signal ends the process at once
                loop.remove_signal_handler(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, drain)
        await serve(url, server, key=key, in_flight=in_flight, stop=stop, ended=ended)

    asyncio.run(main())


async def serve(
    url: str, server: "Server | MCPServer[Any] | LowLevelServer[Any]", *, key: str, in_flight: int = 16, stop: asyncio.Event, ended: Callable[[str], None] | None = None
) -> None:
    """Do the same as `run` in an existing event loop. It drains when `stop` is set."""
    if isinstance(server, Server):
        server._loop = asyncio.get_running_loop()
    inner = server.mcp if isinstance(server, Server) else server
    low: LowLevelServer[Any] = inner._lowlevel_server if isinstance(inner, MCPServer) else inner
    if ended is not None:

        async def tell(_: Any, params: SessionEnded) -> None:
            ended(params.session)

        low.add_notification_handler(SESSION_ENDED, SessionEnded, tell)
    address = f"{url.rstrip('/')}/attach/{urllib.parse.quote(low.name, safe='')}"
    headers = {"Authorization": f"Bearer {key}", "Callyard-Instance": uuid.uuid4().hex, "Callyard-In-Flight": str(in_flight), "Callyard-Language": "python"}
    pause = FIRST_PAUSE
    while not stop.is_set():
        began = time.monotonic()
        try:
            async with connect(address, additional_headers=headers, subprotocols=["mcp"], compression=None, max_size=None) as ws:  # type: ignore[list-item]
                log.info("attached to %s as %s", url, low.name)
                await _connection(low, ws, stop)
                log.info("the connection ended with code %s: %s", ws.close_code, ws.close_reason)
        except InvalidStatus as refused:
            text = refused.response.body.decode(errors="replace") if refused.response.body else ""
            if refused.response.status_code in (400, 401, 403):
                raise RefusedError(f"the worker at {url} refuses {low.name} with HTTP {refused.response.status_code}: {text}") from None
            log.warning("the worker at %s does not take %s now: HTTP %d: %s", url, low.name, refused.response.status_code, text)
        except (OSError, TimeoutError, InvalidHandshake, ConnectionClosed) as broken:
            log.warning("the worker at %s cannot be reached: %s", url, broken)
        if time.monotonic() - began > LONGEST_PAUSE:
            pause = FIRST_PAUSE
        try:
            await asyncio.wait_for(stop.wait(), pause * random.uniform(0.5, 1))
        except TimeoutError:
            pause = min(2 * pause, LONGEST_PAUSE)


async def _connection(low: LowLevelServer[Any], ws: ClientConnection, stop: asyncio.Event) -> None:
    """Serve one connection until it ends. The worker closes the connection after it has drained."""
    to_server, from_worker = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_worker, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_server:
            try:
                async for text in ws:
                    try:
                        message: SessionMessage | Exception = SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False))
                    except ValidationError as fault:
                        message = fault
                    await to_server.send(message)
            except ConnectionClosed:
                pass  # the caller logs the code and dials again

    async def write() -> None:
        async with from_server:
            async for message in from_server:
                await ws.send(_encoded(message.message))

    async def drain() -> None:
        await stop.wait()
        await ws.send(DRAINING)

    async with anyio.create_task_group() as tasks:
        for task in (read, write, drain):
            tasks.start_soon(_until_closed, task)
        await low.run(from_worker, to_worker, low.create_initialization_options())
        tasks.cancel_scope.cancel()


def _encoded(message: mcp_types.JSONRPCMessage) -> str:
    """Return the text of a message, with U+FFFD for lone surrogates, which a file name that is not UTF-8 has."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:  # it would end the connection with all of its calls
        text = json.dumps(message.model_dump(mode="json", by_alias=True, exclude_unset=True), ensure_ascii=False)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


async def _until_closed(task: Callable[[], Any]) -> None:
    try:
        await task()
    except (ConnectionClosed, anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # the other tasks end with the connection
