"""The client, which the generated functions accept, with shortcuts for tool calls."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from attrs import define, field

from .errors import CallError, CallyardError, HeldError, problem_of
from .paths import segment
from .rest.client import Client as RestClient
from .rest.models import Call, CallState, CallToolResult, ConfirmationRequest
from .rest.types import Unset
from .retries import DEADLINE, RETRIES, RetryingAsyncClient, RetryingClient

_ONE_WAIT = 30
"""The wait parameter of one request, in seconds. It is shorter than the timeouts of common proxies."""

_GOING = frozenset({CallState.HELD, CallState.QUEUED, CallState.RUNNING})


@define
class Client(RestClient):
    """A client of one front door. `connect` creates it.

    Every generated function accepts it as its client. It is thread-safe if httpx.Client
    is. The methods that end in `_async` are for asyncio. `retries` is the maximum number
    of retries of a request; see `callyard.retries`.
    """

    retries: int = field(default=RETRIES, kw_only=True)

    def get_httpx_client(self) -> httpx.Client:
        """Return the HTTP client, which is created on first use."""
        if self._client is None:
            self._client = RetryingClient(self.retries, **self._options())
        return self._client

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        """Return the HTTP client of the asynchronous functions, which is created on first use."""
        if self._async_client is None:
            self._async_client = RetryingAsyncClient(self.retries, **self._options())
        return self._async_client

    def call(
        self, server: str, tool: str, arguments: Mapping[str, Any] | None = None, *, timeout_ms: int | None = None, idempotency_key: str | None = None
    ) -> CallToolResult:
        """Call a tool and return its result.

        `timeout_ms` is the timeout of the call in milliseconds; None means the timeout of the
        server. If the tool itself fails, `is_error` of the result is true. Raises `HeldError` if the
        call needs an approval first, `CallError` if it was stored and ended without a
        result, and `ProblemError` if the front door refused the request. With an
        `idempotency_key`, the call runs once even if it is sent repeatedly.
        """
        request = _call(server, tool, arguments, timeout_ms, idempotency_key)
        accepted, result = _outcome(self.get_httpx_client().request(**request))
        return result if result is not None else self.wait(accepted)

    async def call_async(
        self, server: str, tool: str, arguments: Mapping[str, Any] | None = None, *, timeout_ms: int | None = None, idempotency_key: str | None = None
    ) -> CallToolResult:
        """Do what `call` does, for asyncio."""
        request = _call(server, tool, arguments, timeout_ms, idempotency_key)
        accepted, result = _outcome(await self.get_async_httpx_client().request(**request))
        return result if result is not None else await self.wait_async(accepted)

    def wait(self, call_id: str, timeout: float | None = None) -> CallToolResult:
        """Wait until a stored or held call ends and return its result.

        `timeout` is in seconds; None means no timeout. A held call that is not approved
        ends when its approval expires. Raises `CallError` if the call ended without a
        result, `ProblemError` if the front door refused the request, and `TimeoutError`
        if the timeout passed; the call then continues.
        """
        ends = _deadline(timeout)
        while True:
            http = self.get_httpx_client()
            with _until(call_id, ends):
                result = _ended(http.get(_path(call_id), **_poll(ends, http.timeout)))
            if result is not None:
                return result
            _check_time(call_id, ends)

    async def wait_async(self, call_id: str, timeout: float | None = None) -> CallToolResult:
        """Do what `wait` does, for asyncio."""
        ends = _deadline(timeout)
        while True:
            http = self.get_async_httpx_client()
            with _until(call_id, ends):
                result = _ended(await http.get(_path(call_id), **_poll(ends, http.timeout)))
            if result is not None:
                return result
            _check_time(call_id, ends)

    def _options(self) -> dict[str, Any]:
        return {
            "base_url": self._base_url,
            "cookies": self._cookies,
            "headers": self._headers,
            "timeout": self._timeout,
            "verify": self._verify_ssl,
            "follow_redirects": self._follow_redirects,
            **self._httpx_args,
        }


def connect(url: str, key: str = "", *, retries: int = RETRIES, **options: Any) -> Client:
    """Return a client of the front door at `url`, such as "http://127.0.0.1:8080".

    `key` is an API key; it is empty if the front door requires none. `retries` is the
    maximum number of retries of a request when that is safe; 0 disables retries. The
    options are those of the generated client, such as timeout, verify_ssl and httpx_args.
    `timeout` is an `httpx.Timeout`, whose values are in seconds; it limits each attempt of
    a request, and without it there is no limit. The client is a context manager, for `with` and `async with`, that closes its connections.
    """
    if key:
        options["headers"] = {**options.get("headers", {}), "Authorization": f"Bearer {key}"}
    return Client(base_url=url, retries=retries, **options)


def text(result: CallToolResult | Unset) -> str:
    """Return the text blocks of a result, joined by newlines."""
    blocks = (isinstance(result, CallToolResult) and result.content) or []
    return "\n".join(block.text for block in blocks if isinstance(block.text, str))


def _call(server: str, tool: str, arguments: Mapping[str, Any] | None, timeout_ms: int | None, idempotency_key: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {"server": server, "tool": tool, "arguments": dict(arguments or {})}
    if timeout_ms is not None:
        body["timeout_ms"] = timeout_ms
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    return {"method": "POST", "url": "/calls", "json": body, "headers": headers}


def _outcome(response: httpx.Response) -> tuple[str, CallToolResult | None]:
    """Return the result, or the ID of the stored call."""
    answer = _answer(response)
    match answer.pop("outcome", None):
        case "held":
            raise HeldError(ConfirmationRequest.from_dict({**answer, "outcome": "held"}))
        case "completed":
            return "", CallToolResult.from_dict(answer)
        case "accepted":
            return answer["id"], None
    raise _unknown(response)


def _ended(response: httpx.Response) -> CallToolResult | None:
    answer = _answer(response)
    if "state" not in answer:
        raise _unknown(response)
    call = Call.from_dict(answer)
    if not isinstance(call.result, Unset):
        return call.result
    if call.state not in _GOING:
        raise CallError(call)
    return None


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.status_code >= 400:
        raise problem_of(response)
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _unknown(response)
    return answer


def _unknown(response: httpx.Response) -> CallyardError:
    """Return the error for an answer of a newer front door, or of another service."""
    return CallyardError(f"{response.request.method} {response.url}: the answer with status {response.status_code} is unknown to this client.")


def _path(call_id: str) -> str:
    return f"/calls/{segment(call_id)}"


def _deadline(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + timeout


def _poll(ends: float, timeout: httpx.Timeout) -> dict[str, Any]:
    """Return the wait parameter of one request, its timeouts, and its deadline.

    The front door may take the time of the wait parameter to answer. That is in whole seconds, so the
    last request ends with the timeout of the wait, and not with the answer. A wait without time left
    asks once, without a deadline.
    """
    left = ends - time.monotonic()
    wait = math.ceil(min(max(left, 0), _ONE_WAIT))
    read = None if timeout.read is None else timeout.read + wait
    limits = {"connect": timeout.connect, "read": read, "write": timeout.write, "pool": timeout.pool}
    if left <= 0 or math.isinf(left):
        return {"params": {"wait": wait}, "timeout": httpx.Timeout(**limits)}
    limits = {name: left if limit is None else min(limit, left) for name, limit in limits.items()}
    return {"params": {"wait": wait}, "timeout": httpx.Timeout(**limits), "extensions": {DEADLINE: ends}}


@contextmanager
def _until(call_id: str, ends: float) -> Iterator[None]:
    """Turn a request that ended with the timeout of the wait into a TimeoutError."""
    try:
        yield
    except httpx.TimeoutException as fault:
        if time.monotonic() < ends:
            raise
        raise _too_late(call_id) from fault


def _check_time(call_id: str, ends: float) -> None:
    if time.monotonic() >= ends:
        raise _too_late(call_id)


def _too_late(call_id: str) -> TimeoutError:
    return TimeoutError(f"Call {call_id} did not end within the timeout, which does not cancel it.")
