"""Typed dictionaries: what the functions of callyard.rest.api take as bodies, next to the classes of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class BatchCallDict(TypedDict):
    """One call of a batch."""

    server: str
    """The id of the server."""
    tool: str
    """The name of the tool."""
    arguments: NotRequired[Mapping[str, Any]]
    """The arguments; without them the tool gets an empty object."""
    custom_id: NotRequired[str]
    """The caller's own name of the call, unique in the batch."""
    timeout_ms: NotRequired[int]
    """How long the call may take."""


class BatchRequestDict(TypedDict):
    """A batch in one document."""

    callback_url: NotRequired[str]
    """An address that is told of the end."""
    calls: NotRequired[Sequence[BatchCallDict]]
    """The calls; may be left out where open is true."""
    expires_in: NotRequired[int]
    """Seconds in which calls may leave; 24 h without it."""
    labels: NotRequired[Mapping[str, str]]
    """Words of the caller's own; a name takes at most 64 bytes."""
    open: NotRequired[bool]
    """More calls follow with POST /batches/{id}/calls."""
    priority: NotRequired[int]
    """Each 5 doubles or halves the share of the batch."""
    stream: NotRequired[bool]
    """Answer with the results while they come."""


class CallRequestDict(TypedDict):
    """What CallRequest says."""

    server: str
    """The id of the server."""
    tool: str
    """The name of the tool."""
    arguments: NotRequired[Mapping[str, Any]]
    """The arguments; they reach the tool as they are. Without them the tool gets an empty object."""
    callback_url: NotRequired[str]
    """An address that is told of the end of the call, which is stored for it; only where the operator has switched callbacks on."""
    timeout_ms: NotRequired[int]
    """How long the call may take. Without it the server's own time counts."""


SettleRequestDict = TypedDict(
    "SettleRequestDict",
    {
        "as": Literal["done", "failed", "run-again"],
        "reason": str,
    },
)


class ConfirmCallsDict(TypedDict):
    """What ConfirmCalls says."""

    calls: Sequence[str]
    """The ids of the calls that the answer is for; it is for no others."""
    confirm: bool


class ConfirmRequestDict(TypedDict):
    """What ConfirmRequest says."""

    confirm: bool


class ServerEntryDict(TypedDict):
    """A server, as an entry of a servers file with its id."""

    id: str
    """The id of the new server."""
    args: NotRequired[Sequence[str]]
    command: NotRequired[str]
    """The program of a stdio server."""
    docker: NotRequired[Mapping[str, Any]]
    """The container of a server of high risk."""
    env: NotRequired[Mapping[str, str]]
    headers: NotRequired[Mapping[str, str]]
    riskLevel: NotRequired[int]
    """1 low, 2 medium, 3 high."""
    type: NotRequired[Literal["stdio", "http", "sse"]]
    url: NotRequired[str]
    """The address of a remote server."""


class SwitchRequestDict(TypedDict):
    """What SwitchRequest says."""

    enabled: bool
    """Whether the tool may be called."""
    reason: NotRequired[str]
    """Why not; callers are shown it."""
