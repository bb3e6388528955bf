"""How a client is made, and how a refusal becomes an exception."""

from __future__ import annotations

from typing import Any, TypeVar, Union

import httpx

from .rest.client import AuthenticatedClient, Client
from .rest.models import Problem

Answer = TypeVar("Answer")
AnyClient = Union[AuthenticatedClient, Client]


class ProblemError(Exception):
    """A refusal: an answer whose status is 400 or more.

    `problem` is what the front door says; of what a proxy says, title and status only.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.detail or f"{problem.status} {problem.title}")


def connect(url: str, key: str = "", **options: Any) -> AnyClient:
    """Return a client of the front door at `url`, such as "http://127.0.0.1:8080".

    `key` is an API key, empty where the front door asks for none. The options are
    those of `Client`: timeout, verify_ssl, httpx_args and others. The client is a
    context manager that closes its connections.
    """
    if key:
        return AuthenticatedClient(base_url=url, token=key, **options)
    return Client(base_url=url, **options)


def check(answer: Answer | Problem | None) -> Answer:
    """Return the answer of a generated function, or raise the problem that it is."""
    if isinstance(answer, Problem):
        raise ProblemError(answer)
    if answer is None:
        raise ProblemError(Problem(type_="about:blank", title="An answer that the document does not have", status=0, detail="", error="", retryable=False))
    return answer


def refused(response: httpx.Response) -> ProblemError:
    """Return the refusal that a streamed answer is."""
    response.read()
    try:
        return ProblemError(Problem.from_dict(response.json()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ProblemError(Problem(type_="about:blank", title=response.reason_phrase, status=response.status_code, detail="", error="", retryable=False))
