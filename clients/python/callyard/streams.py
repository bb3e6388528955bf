"""Streamed responses: results as JSON lines, and server-sent events.

Each function is a generator. Functions that end in `_async` are for asyncio. An error
response raises `ProblemError`. After the loop is left, the response is closed as soon as
the generator is closed or collected. If a stream breaks, `batch_results` continues after
the cursor of the last result; `started` tells the ID of the batch for that.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from .check import AnyClient
from .errors import foreign, problem_of
from .paths import segment
from .rest.bodies import BatchCallDict
from .rest.models import BatchCall, BatchResult

LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Event:
    """One server-sent event.

    `name` is the type of `data`: fleet, batch, progress, result or error. `data` is
    the JSON text as received.
    """

    name: str
    id: str
    data: str

    def json(self) -> Any:
        """Return the decoded data."""
        return json.loads(self.data)


def run_batch(
    client: AnyClient,
    calls: Iterable[BatchCall | BatchCallDict],
    *,
    idempotency_key: str | None = None,
    started: Callable[[str], None] | None = None,
    **params: str | int,
) -> Generator[BatchResult, None, None]:
    """Run the calls as one batch and yield the results as they arrive.

    The calls are sent while `calls` produces them, so there may be any number of them.
    `started` is called with the ID of the batch when all calls are sent, before the first
    result. `params` are the query parameters of POST /batches, such as priority=5.
    """
    return _results(client, started, **_batch(params, idempotency_key), content=(_line(call) for call in calls))


def run_batch_async(
    client: AnyClient,
    calls: Iterable[BatchCall | BatchCallDict] | AsyncIterable[BatchCall | BatchCallDict],
    *,
    idempotency_key: str | None = None,
    started: Callable[[str], None] | None = None,
    **params: str | int,
) -> AsyncGenerator[BatchResult, None]:
    """Do the same as `run_batch`, for asyncio. `calls` may be an asynchronous generator."""
    return _results_async(client, started, **_batch(params, idempotency_key), content=_lines_of(calls))


def batch_results(client: AnyClient, batch_id: str, *, cursor: str | None = None, follow: bool = True) -> Generator[BatchResult, None, None]:
    """Yield the results of a batch after the cursor. With `follow`, wait for further results."""
    return _results(client, None, **_from(batch_id, cursor, follow))


def batch_results_async(client: AnyClient, batch_id: str, *, cursor: str | None = None, follow: bool = True) -> AsyncGenerator[BatchResult, None]:
    """Do the same as `batch_results`, for asyncio."""
    return _results_async(client, None, **_from(batch_id, cursor, follow))


def events(client: AnyClient, path: str = "/events", *, method: str = "GET", **request: Any) -> Generator[Event, None, None]:
    """Yield the events of the fleet, or of another path such as /batches/{id}/events.

    With method="POST" and json=, a call at /servers/{id}/tools/{tool} yields its
    progress and then its result.
    """
    reader = _Events()
    for line, whole in _stream(client, None, **_events(method, path, request)):
        event = reader.take(line) if whole else None
        if event is not None:
            yield event


async def events_async(client: AnyClient, path: str = "/events", *, method: str = "GET", **request: Any) -> AsyncGenerator[Event, None]:
    """Do the same as `events`, for asyncio."""
    reader = _Events()
    async for line, whole in _stream_async(client, None, **_events(method, path, request)):
        event = reader.take(line) if whole else None
        if event is not None:
            yield event


@dataclass
class _Events:
    """A parser of server-sent events. It drops an incomplete last event."""

    name: str = ""
    id: str = ""
    data: list[str] = field(default_factory=list)

    def take(self, line: str) -> Event | None:
        """Parse a line and return the event that it completes, if any."""
        if not line:
            event = Event(self.name, self.id, "\n".join(self.data)) if self.data else None
            self.name, self.id, self.data = "", "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self.name = value
        elif name == "id":
            self.id = value
        elif name == "data":
            self.data.append(value)
        return None


@dataclass
class _Lines:
    """A splitter of byte pieces into lines, which buffers an incomplete line.

    Only a line feed ends a line. JSON may contain the other line boundaries of
    str.splitlines.
    """

    rest: list[bytes] = field(default_factory=list)

    def take(self, piece: bytes) -> Iterator[tuple[str, bool]]:
        """Yield each line that the piece completes, without its line ending."""
        first, *more = piece.split(b"\n")
        self.rest.append(first)
        for part in more:
            line = b"".join(self.rest).removesuffix(b"\r").decode()
            self.rest = [part]
            yield line, True

    def end(self) -> Iterator[tuple[str, bool]]:
        """Yield the last line if it has no line ending."""
        last = b"".join(self.rest)
        if last:
            yield last.decode(), False


def _batch(params: dict[str, str | int], idempotency_key: str | None) -> dict[str, Any]:
    headers = {"Content-Type": LINES}
    if idempotency_key is not None:
        headers["Idempotency-Key"] = idempotency_key
    return {"method": "POST", "url": "/batches", "params": {**params, "stream": "true"}, "headers": headers}


def _from(batch_id: str, cursor: str | None, follow: bool) -> dict[str, Any]:
    params = {"follow": "true" if follow else "false"}
    if cursor is not None:
        params["cursor"] = cursor
    return {"method": "GET", "url": f"/batches/{segment(batch_id)}/results", "params": params}


def _events(method: str, path: str, request: dict[str, Any]) -> dict[str, Any]:
    return {**request, "method": method, "url": path, "headers": {"Accept": "text/event-stream", **request.get("headers", {})}}


def _line(call: BatchCall | BatchCallDict) -> bytes:
    return json.dumps(call.to_dict() if isinstance(call, BatchCall) else call).encode() + b"\n"


async def _lines_of(calls: Iterable[BatchCall | BatchCallDict] | AsyncIterable[BatchCall | BatchCallDict]) -> AsyncIterator[bytes]:
    if isinstance(calls, AsyncIterable):
        async for call in calls:
            yield _line(call)
    else:
        for call in calls:
            yield _line(call)


def _results(client: AnyClient, started: Callable[[str], None] | None, **request: Any) -> Generator[BatchResult, None, None]:
    for line, _ in _stream(client, started, **request):
        if line.strip():
            yield BatchResult.from_dict(json.loads(line))


async def _results_async(client: AnyClient, started: Callable[[str], None] | None, **request: Any) -> AsyncGenerator[BatchResult, None]:
    async for line, _ in _stream_async(client, started, **request):
        if line.strip():
            yield BatchResult.from_dict(json.loads(line))


def _connecting(timeout: httpx.Timeout) -> httpx.Timeout:
    """Return the timeouts of a stream: those of its connection. Nothing may arrive for long, or be read by the front door."""
    return httpx.Timeout(None, connect=timeout.connect, pool=timeout.pool)


def _stream(client: AnyClient, started: Callable[[str], None] | None, **request: Any) -> Generator[tuple[str, bool], None, None]:
    http = client.get_httpx_client()
    with http.stream(timeout=_connecting(http.timeout), **request) as response:
        if response.status_code >= 400 or foreign(response):
            response.read()
            raise problem_of(response)
        if started is not None:
            started(_batch_id(response))
        lines = _Lines()
        for piece in response.iter_bytes():
            yield from lines.take(piece)
        yield from lines.end()


async def _stream_async(client: AnyClient, started: Callable[[str], None] | None, **request: Any) -> AsyncGenerator[tuple[str, bool], None]:
    http = client.get_async_httpx_client()
    async with http.stream(timeout=_connecting(http.timeout), **request) as response:
        if response.status_code >= 400 or foreign(response):
            await response.aread()
            raise problem_of(response)
        if started is not None:
            started(_batch_id(response))
        lines = _Lines()
        async for piece in response.aiter_bytes():
            for line in lines.take(piece):
                yield line
        for line in lines.end():
            yield line


def _batch_id(response: httpx.Response) -> str:
    location: str = response.headers.get("Location", "")
    return location.rpartition("/")[2]
