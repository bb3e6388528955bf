"""Requests that are sent again, where that is safe.

An answer of status 429 or 503 is asked for again when the problem document says by
Retry-After that nothing has started, or when the request may be repeated: a read, or
one with an Idempotency-Key. So is a 409 with Retry-After to a request with a key: its
call still runs. A request without an answer is sent again when it may be repeated, or
when no connection came about. Retry-After says when; without it the pause grows from
0.5 s to 8 s. A body that is made while it is sent cannot be sent again.
"""

from __future__ import annotations

import random
import time
from typing import Any

import anyio
import httpx

from .errors import retry_after

RETRIES = 2
LONGEST = 60.0
"""Seconds. Where Retry-After asks for more, the answer goes to the caller at once."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


def pause(request: httpx.Request, answer: httpx.Response | httpx.TransportError, attempt: int) -> float | None:
    """Return how many seconds to wait before attempt + 1; None says that there is none."""
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
    elif answer.status_code in (429, 503):
        ours = answer.headers.get("Content-Type", "").startswith("application/problem+json")
        if not repeatable and (after is None or not ours):
            return None
    else:
        return None
    if after is None:
        return _backoff(attempt)
    return after if after <= LONGEST else None


def _backoff(attempt: int) -> float:
    return float(min(0.5 * 2**attempt, 8.0) * random.uniform(0.75, 1.0))


class RetryingClient(httpx.Client):
    """An HTTP client that sends a request again at most `retries` times."""

    def __init__(self, retries: int, **options: Any) -> None:
        super().__init__(**options)
        self._retries = retries

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        for attempt in range(self._retries):
            answer: httpx.Response | httpx.TransportError
            try:
                answer = super().send(request, **options)
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
    """The same for asyncio and trio."""

    def __init__(self, retries: int, **options: Any) -> None:
        super().__init__(**options)
        self._retries = retries

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        for attempt in range(self._retries):
            answer: httpx.Response | httpx.TransportError
            try:
                answer = await super().send(request, **options)
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
