"""Answers without an end: results one on each line, and server-sent events.

Each function is a generator. A refusal raises `ProblemError`. Leaving the loop
closes the answer, as soon as the generator is closed or collected. After an
error, the cursor of the last result says where the next request goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .connect import AnyClient, refused
from .rest.models import BatchCall, BatchResult

LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Event:
    """One server-sent event.

    `name` says what `data` is: fleet, batch, progress, result or error. `data` is
    JSON, as it came.
    """

    name: str
    id: str
    data: str

    def json(self) -> Any:
        """Return what the data says."""
        return json.loads(self.data)


def run_batch(client: AnyClient, calls: Iterable[BatchCall], *, idempotency_key: str | None = None, **params: str | int) -> Iterator[BatchResult]:
    """Run the calls as one batch and give the results while they come.

    The calls are sent while they are made, so there may be any number of them. The
    parameters are those of POST /batches, such as priority=5.
    """
    headers = {"Content-Type": LINES}
    if idempotency_key is not None:
        headers["Idempotency-Key"] = idempotency_key
    body = (json.dumps(call.to_dict()).encode() + b"\n" for call in calls)
    return _results(client, "POST", "/batches", params={**params, "stream": "true"}, headers=headers, content=body)


def batch_results(client: AnyClient, batch_id: str, *, cursor: str | None = None, follow: bool = True) -> Iterator[BatchResult]:
    """Give the results of a batch after the cursor; `follow` waits for those to come."""
    params = {"follow": "true" if follow else "false"}
    if cursor is not None:
        params["cursor"] = cursor
    return _results(client, "GET", f"/batches/{quote(batch_id, safe='')}/results", params=params)


def events(client: AnyClient, path: str = "/events", *, method: str = "GET", **request: Any) -> Iterator[Event]:
    """Give the events of the fleet, or of another path such as /batches/{id}/events.

    With method="POST" and json= a call at /servers/{id}/tools/{tool} tells its
    progress and then its result.
    """
    request["headers"] = {"Accept": "text/event-stream", **request.get("headers", {})}
    with client.get_httpx_client().stream(method, path, timeout=None, **request) as response:
        if response.status_code >= 400:
            raise refused(response)
        yield from read_events(_lines(response.iter_bytes()))


def read_events(lines: Iterable[tuple[str, bool]]) -> Iterator[Event]:
    """Give the events of lines. One whose end did not come is dropped."""
    name, id_, data = "", "", []
    for line, whole in lines:
        if not whole:
            return
        if not line:
            if data:
                yield Event(name, id_, "\n".join(data))
            name, id_, data = "", "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "id":
            id_ = value
        elif field == "data":
            data.append(value)


def _results(client: AnyClient, method: str, path: str, **request: Any) -> Iterator[BatchResult]:
    with client.get_httpx_client().stream(method, path, timeout=None, **request) as response:
        if response.status_code >= 400:
            raise refused(response)
        for line, _ in _lines(response.iter_bytes()):
            if line.strip():
                yield BatchResult.from_dict(json.loads(line))


def _lines(pieces: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    """Give each line without its end, and whether it had one.

    Only a line feed ends a line; the other characters that str.splitlines knows may
    stand in JSON.
    """
    rest: list[bytes] = []
    for piece in pieces:
        first, *more = piece.split(b"\n")
        rest.append(first)
        for part in more:
            yield b"".join(rest).removesuffix(b"\r").decode(), True
            rest = [part]
    last = b"".join(rest)
    if last:
        yield last.decode(), False
