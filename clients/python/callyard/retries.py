"""Retry requests when that is safe.

A request is retried:

- after status 429 or 503, if the response is a problem document with Retry-After whose
  member retryable is true, which means that nothing has started, or if the request is
  repeatable: it is neither a POST nor a PATCH, or it has an Idempotency-Key
- after status 409 with Retry-After, if the request has a key, because its call is still
  running
- after a network error, if the request is repeatable or no connection was established

The pause is Retry-After, or a backoff that grows from 0.5 s to 8 s without it. A request
whose body is generated while it is sent is not retried, nor is one whose deadline is earlier
than the end of the pause.

The last answer of a proxy that is no result, such as a redirect or its sign-in page, raises
`ProblemError`, because the generated functions expect JSON.
"""

from __future__ import annotations

import random
import time
from typing import Any

import anyio
import httpx

from .errors import foreign, problem_of, retry_after

RETRIES = 2
LONGEST = 60.0
"""The longest Retry-After that is honored, in seconds. If it is longer, the caller gets the response immediately."""

DEADLINE = "callyard_deadline"
"""The extension of a request that holds its deadline, as a value of time.monotonic."""

_TEMPORARY = frozenset({429, 503})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


def pause(request: httpx.Request, answer: httpx.Response | httpx.TransportError, attempt: int) -> float | None:
    """Return the seconds to wait before attempt + 1, or None if the request is not retried.

    The body of a response with status 429 or 503 must have been read.
    """
    wait = _pause(request, answer, attempt)
    ends = request.extensions.get(DEADLINE)
    return None if wait is None or (ends is not None and time.monotonic() + wait >= ends) else wait


def _pause(request: httpx.Request, answer: httpx.Response | httpx.TransportError, attempt: int) -> float | None:
    keyed = "Idempotency-Key" in request.headers
    repeatable = keyed or request.method in _SAFE
    if not isinstance(request.stream, httpx.ByteStream):
        return None
    if isinstance(answer, httpx.TransportError):
        if not repeatable and not isinstance(answer, (httpx.ConnectError, httpx.ConnectTimeout)):
            return None
        return _backoff(attempt)
    after = retry_after(answer.headers)
    if answer.status_code == 409:
        if not keyed or after is None:
            return None
    elif answer.status_code in _TEMPORARY:
        if not repeatable and (after is None or not _nothing_started(answer)):
            return None
    else:
        return None
    if after is None:
        return _backoff(attempt)
    return after if after <= LONGEST else None


def _nothing_started(answer: httpx.Response) -> bool:
    """Report whether an error response is a problem that says so.

    A refusal without it may be about a request that was stored in part, such as a batch.
    """
    if not answer.headers.get("Content-Type", "").startswith("application/problem+json"):
        return False
    try:
        problem = answer.json()
    except ValueError:
        return False
    return isinstance(problem, dict) and problem.get("retryable") is True


def _backoff(attempt: int) -> float:
    return float(min(0.5 * 2**attempt, 8.0) * random.uniform(0.75, 1.0))


class RetryingClient(httpx.Client):
    """An HTTP client that retries a request at most `retries` times."""

    def __init__(self, retries: int, **options: Any) -> None:
        super().__init__(**options)
        self._retries = retries

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        answer = self._send(request, **options)
        if foreign(answer):
            answer.read()
            raise problem_of(answer)
        return answer

    def _send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        for attempt in range(self._retries):
            answer: httpx.Response | httpx.TransportError
            try:
                answer = super().send(request, **options)
                if answer.status_code in _TEMPORARY:
                    answer.read()
            except httpx.TransportError as fault:
                answer = fault
            wait = pause(request, answer, attempt)
            if isinstance(answer, httpx.Response):
                if wait is None:
                    return answer
                answer.close()
            elif wait is None:
                raise answer
            time.sleep(wait)
        return super().send(request, **options)


class RetryingAsyncClient(httpx.AsyncClient):
    """The variant of `RetryingClient` for asyncio and trio."""

    def __init__(self, retries: int, **options: Any) -> None:
        super().__init__(**options)
        self._retries = retries

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        answer = await self._send(request, **options)
        if foreign(answer):
            await answer.aread()
            raise problem_of(answer)
        return answer

    async def _send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        for attempt in range(self._retries):
            answer: httpx.Response | httpx.TransportError
            try:
                answer = await super().send(request, **options)
                if answer.status_code in _TEMPORARY:
                    await answer.aread()
            except httpx.TransportError as fault:
                answer = fault
            wait = pause(request, answer, attempt)
            if isinstance(answer, httpx.Response):
                if wait is None:
                    return answer
                await answer.aclose()
            elif wait is None:
                raise answer
            await anyio.sleep(wait)
        return await super().send(request, **options)
