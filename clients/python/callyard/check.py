"""Turn error responses into exceptions."""

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
    """Return the result of a generated function, or raise `ProblemError` if it is a problem.

    It accepts the results of `sync`, `asyncio`, `sync_detailed` and `asyncio_detailed`.
    The exception has `retry_after` only for the last two.
    """
    wait, status = None, 0
    if isinstance(answer, Response):
        wait, status = retry_after(answer.headers), answer.status_code
        answer = answer.parsed
    if isinstance(answer, Problem):
        raise ProblemError(answer, wait)
    if answer is None:
        raise ProblemError(blank(status, "An answer that the document does not have"), wait)
    return answer
