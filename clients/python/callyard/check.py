"""How a refusal becomes an exception."""

from __future__ import annotations

from typing import Any, TypeVar, Union, overload

from .errors import ProblemError, blank, retry_after
from .rest.client import AuthenticatedClient, Client
from .rest.models import Problem
from .rest.types import Response

Answer = TypeVar("Answer")
AnyClient = Union[AuthenticatedClient, Client]


@overload
def check(answer: Response[Answer | Problem]) -> Answer: ...
@overload
def check(answer: Answer | Problem | None) -> Answer: ...
def check(answer: Any) -> Any:
    """Return the answer of a generated function, or raise the problem that it is.

    It takes what `sync` and `asyncio` return, and what `sync_detailed` and
    `asyncio_detailed` return: only with those the exception has `retry_after`.
    """
    wait = None
    if isinstance(answer, Response):
        wait = retry_after(answer.headers)
        answer = answer.parsed
    if isinstance(answer, Problem):
        raise ProblemError(answer, wait)
    if answer is None:
        raise ProblemError(blank(0, "An answer that the document does not have"), wait)
    return answer
