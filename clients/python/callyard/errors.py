"""The exceptions for calls without a result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import httpx

from .rest.models import Call, CallState, ConfirmationRequest, Problem, ProblemFault
from .rest.types import Unset


class CallyardError(Exception):
    """The base class of the exceptions of this package."""


class ProblemError(CallyardError):
    """An error response: a response with status 400 or higher, or a redirect or an HTML page
    of a proxy, such as its sign-in page.

    `problem` is the problem document of the front door. If the response comes from a
    proxy, only the title, the status and, for a redirect or a page, the detail are set. The text of the exception names each
    fault with its location. `status` is the HTTP status.
    `retry_after` is the number of seconds to wait before repeating the request, or None
    if the response did not specify it.
    """

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        self.problem = problem
        self.status = problem.status
        self.retry_after = retry_after
        faults = [] if isinstance(problem.errors, Unset) else problem.errors
        super().__init__("".join([problem.detail or f"{problem.status} {problem.title}", *(f" [{_place(fault)}: {fault.message}]" for fault in faults)]))


def _place(fault: ProblemFault) -> str:
    """Return the JSON pointer or the parameter of a fault."""
    return fault.pointer or fault.parameter or "whole document"


class HeldError(CallyardError):
    """The call is held for approval and has not run.

    `request` is the whole confirmation request. `confirmation_id` is the token with
    which the caller confirms the call, or None if an approver must decide. Once the call
    is approved, `client.wait(error.call_id)` returns its result.
    """

    def __init__(self, request: ConfirmationRequest) -> None:
        self.request = request
        self.call_id: str = request.call_id
        self.approval_id: str = request.approval_id
        self.confirmation_id: str | None = request.confirmation_id or None
        self.approval_url: str | None = request.approval_url or None
        self.expires_at: datetime = request.expires_at
        reasons = "; ".join(reason.removesuffix(".") for reason in request.reasons or [request.risk_description])
        how = "confirm it" if self.confirmation_id else f"approve it at {self.approval_url}" if self.approval_url else "somebody else must approve it"
        super().__init__(f"{request.server_id}/{request.tool_name} is held and has not run: {reasons}. Call {self.call_id}: {how} until {self.expires_at.isoformat()}")


class CallError(CallyardError):
    """A stored call ended without a result.

    `call` is its record. `state` is its final state: failed, denied, expired or canceled,
    or unknown if it cannot be determined whether the tool ran.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.state: CallState = call.state
        super().__init__(f"Call {call.id} of {call.server}/{call.tool} ended as {call.state.value}{_why(call)}")


def _why(call: Call) -> str:
    """Return the person who denied the call and the reason, or the problem, or an empty text."""
    decisions = [] if isinstance(call.decisions, Unset) or call.state != CallState.DENIED else call.decisions
    for decision in reversed(decisions):
        if decision.kind in ("deny", "revoke"):
            return f" by {decision.by}" + (f": {decision.reason}" if decision.reason else "")
    return "" if isinstance(call.problem, Unset) else f": {call.problem.detail}"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Parse Retry-After, which is a number of seconds or a date. Return seconds, or None if it is missing."""
    said = headers.get("Retry-After", "").strip()
    if said.isdecimal():
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max((at - datetime.now(timezone.utc)).total_seconds(), 0.0) if at.tzinfo else None


def blank(status: int, title: str, detail: str = "") -> Problem:
    """Return the problem for a response that has no problem document."""
    return Problem(type_="about:blank", title=title, status=status, detail=detail, error=detail, retryable=False)


def foreign(response: httpx.Response) -> bool:
    """Report whether the response is a refusal, a redirect or a page of a proxy, not an answer of the front door."""
    if response.status_code >= 400 or response.has_redirect_location:
        return "json" not in response.headers.get("Content-Type", "")
    return _is_page(response)


def _is_page(response: httpx.Response) -> bool:
    """Report whether the response is an HTML page that no operation returns. Only GET /evaluations/{id}/page returns one."""
    media = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    path = response.url.path
    return media in ("text/html", "application/xhtml+xml") and not ("/evaluations/" in path and path.endswith("/page"))


def _why_foreign(response: httpx.Response) -> str:
    if response.has_redirect_location:
        return f"The answer redirects to {response.headers['Location']}; connect to the front door itself."
    if response.status_code < 400 and _is_page(response):
        origin = f"{response.url.scheme}://{response.url.netloc.decode()}"
        return (
            f"{origin} answered with status {response.status_code} and an HTML page, such as the sign-in page of a proxy, "
            "and not as a front door does. Connect to the front door itself, or sign in to the proxy."
        )
    return ""


def problem_of(response: httpx.Response) -> ProblemError:
    """Return the error for a response. Its body must have been read."""
    try:
        problem = Problem.from_dict(response.json())
    except (ValueError, KeyError, TypeError, AttributeError):
        problem = blank(response.status_code, response.reason_phrase, _why_foreign(response))
    return ProblemError(problem, retry_after(response.headers))
