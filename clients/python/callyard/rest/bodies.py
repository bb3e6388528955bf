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
    """The arguments; the default is an empty object."""
    custom_id: NotRequired[str]
    """The caller's own id for the call, unique in the batch."""
    timeout_ms: NotRequired[int]
    """The timeout of the call."""


class BatchRequestDict(TypedDict):
    """A batch in one document."""

    callback_url: NotRequired[str]
    """The URL that is notified when the batch ends."""
    calls: NotRequired[Sequence[BatchCallDict]]
    """The calls; optional if open is true."""
    expires_in: NotRequired[int]
    """Seconds within which calls must be sent to a worker; the default is 24 h."""
    labels: NotRequired[Mapping[str, str]]
    """The caller's own labels; a name has at most 64 bytes."""
    open: NotRequired[bool]
    """More calls follow with POST /batches/{id}/calls."""
    priority: NotRequired[int]
    """Each 5 doubles or halves the share of the batch."""
    stream: NotRequired[bool]
    """Stream the results in the answer as the calls end."""


class CallRequestDict(TypedDict):
    """What CallRequest says."""

    server: str
    """The id of the server."""
    tool: str
    """The name of the tool."""
    arguments: NotRequired[Mapping[str, Any]]
    """The arguments; they reach the tool unchanged. The default is an empty object."""
    callback_url: NotRequired[str]
    """The URL that is notified when the call ends; the call becomes durable. Available only if the operator enabled callbacks."""
    timeout_ms: NotRequired[int]
    """The timeout of the call. The default is the timeout of the server."""


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
    """The ids of the calls to confirm or reject. Other calls are not affected."""
    confirm: bool


class ConfirmRequestDict(TypedDict):
    """What ConfirmRequest says."""

    confirm: bool


ConversionRequestDict = TypedDict(
    "ConversionRequestDict",
    {
        "from": Literal["mcp", "openai", "openai-responses", "anthropic", "gemini"],
        "to": Literal["mcp", "openai", "openai-responses", "anthropic", "gemini"],
        "calls": NotRequired[Any],
        "tools": NotRequired[Any],
    },
)


class APIKeyLimitsDict(TypedDict):
    """What APIKeyLimits says."""

    burst: NotRequired[int]
    """The number of calls that may come at once within the rate; absent: those of one second."""
    in_flight: NotRequired[int]
    """Calls under way at once; absent: no limit."""
    rate: NotRequired[float]
    """Calls a second; absent: no limit."""


class APIKeyRequestDict(TypedDict):
    """What APIKeyRequest says."""

    name: str
    expires_at: NotRequired[str]
    """When the key ends; absent: in 90 days. At most 5 years."""
    groups: NotRequired[Sequence[str]]
    limits: NotRequired[APIKeyLimitsDict]
    """Limits of the key, in addition to those of the configuration. Not wider than those of your own key."""
    note: NotRequired[str]
    owner: NotRequired[str]
    """The person or team behind the key. Absent: the owner of the credential that makes it."""
    role: NotRequired[Literal["platform-admin", "tenant-admin", "developer", "caller", "auditor"]]
    """In place of scopes: what the key lets do. Not more than your own credential has."""
    scopes: NotRequired[Sequence[str]]
    """Not more than your own credential has. Required without role."""
    tenant: NotRequired[str]
    """The tenant of the principal. Absent: yours. Only credentials of the default tenant make keys of others."""
    tools: NotRequired[Sequence[str]]
    """Patterns of SERVER/TOOL that limit what the scopes let call."""


class APIKeyChangeDict(TypedDict):
    """What APIKeyChange says."""

    expires_at: NotRequired[str]
    groups: NotRequired[Sequence[str]]
    limits: NotRequired[APIKeyLimitsDict]
    """Replaces all limits of the key; {} removes them."""
    note: NotRequired[str]
    owner: NotRequired[str]
    role: NotRequired[Literal["platform-admin", "tenant-admin", "developer", "caller", "auditor"]]
    """Replaces the scopes."""
    scopes: NotRequired[Sequence[str]]
    """Replace the role."""
    tools: NotRequired[Sequence[str]]


class APIKeyRotationDict(TypedDict):
    """What APIKeyRotation says."""

    expires_at: NotRequired[str]
    """When the key ends; absent: as before."""
    grace_seconds: NotRequired[int]
    """How long the present secret stays valid next to the new one; absent: 86400, a day. At most 7 days; 0 ends it at once."""


class PolicyDryRunRequestDict(TypedDict):
    """What PolicyDryRunRequest says."""

    policy: str
    """The draft: the text of a policy file."""
    limit: NotRequired[int]
    """The maximum number of changed calls to list; the default is 100. All are counted."""
    since: NotRequired[str]
    """Only calls admitted at or after this time; the default is 7 days ago."""
    until: NotRequired[str]
    """Only calls admitted before this time; the default is now."""


class PolicyTestPrincipalDict(TypedDict):
    """What PolicyTestPrincipal says."""

    name: str
    """The name of the principal."""
    groups: NotRequired[Sequence[str]]
    """The groups of the principal."""
    owner: NotRequired[str]
    """The person or team behind the name."""
    tenant: NotRequired[str]
    """The tenant of the principal; the default is default. Its policy is used as well."""


class PolicyTestRequestDict(TypedDict):
    """What PolicyTestRequest says."""

    server: str
    """The id of the server."""
    tool: str
    """The name of the tool."""
    arguments: NotRequired[Mapping[str, Any]]
    """The arguments. The default is an empty object."""
    policy: NotRequired[str]
    """A draft: the text of a policy file. It is used in place of the policy of the platform that is in force. It requires what a dry run of a policy requires."""
    principal: NotRequired[PolicyTestPrincipalDict]
    """Whose call it is; the default is the caller. It requires what a dry run of a policy requires."""


class ServerEntryDict(TypedDict):
    """A server: its id and its entry as in a servers file."""

    apiKey: NotRequired[str]
    """The API key of a remote server, sent as Authorization: Bearer."""
    args: NotRequired[Sequence[str]]
    command: NotRequired[str]
    """The command of a stdio server."""
    docker: NotRequired[Mapping[str, Any]]
    """The container of a high-risk server."""
    env: NotRequired[Mapping[str, str]]
    headers: NotRequired[Mapping[str, str]]
    id: NotRequired[str]
    """The id of the new server. Without it, the server is named after its package, program or host; a number is added if the name is taken."""
    pin: NotRequired[Literal["off", "warn", "quarantine"]]
    riskLevel: NotRequired[int]
    """1 low, 2 medium, 3 high."""
    type: NotRequired[Literal["stdio", "http", "sse", "websocket"]]
    url: NotRequired[str]
    """The URL of a remote server."""


class AcceptToolDict(TypedDict):
    """What AcceptTool says."""

    digest: str
    """The digest of the definition that was reviewed."""
    name: str
    """The tool."""


class AcceptRequestDict(TypedDict):
    """What AcceptRequest says."""

    tools: Sequence[AcceptToolDict]
    """The definitions to accept: all of them, or none."""


class SwitchRequestDict(TypedDict):
    """What SwitchRequest says."""

    enabled: bool
    """Whether the tool can be called."""
    reason: NotRequired[str]
    """The reason that it is disabled; callers see it."""


class ToolSelectorDict(TypedDict):
    """What ToolSelector says."""

    destructive: NotRequired[bool]
    """The hint destructiveHint must be this; where it is absent, a tool counts as destructive unless it is read-only."""
    idempotent: NotRequired[bool]
    """The hint idempotentHint must be this."""
    max_risk_level: NotRequired[int]
    """The highest risk level of the tool's server, 0 for any; a server without a level has level 1."""
    open_world: NotRequired[bool]
    """The hint openWorldHint must be this; where it is absent, it counts as true."""
    read_only: NotRequired[bool]
    """The server's hint readOnlyHint must be this."""
    server: NotRequired[str]
    """A pattern of server ids: * stands for any characters, ? for one."""
    set: NotRequired[str]
    """Only tools of this set."""
    tags: NotRequired[Sequence[str]]
    """Tags that the tool must have, all of them."""
    tool: NotRequired[str]
    """A pattern of tool names."""


class ToolNamingDict(TypedDict):
    """What ToolNaming says."""

    conflict: NotRequired[Literal["error", "prefer", "rename"]]
    """What becomes of tools that would have the same name. error leaves all of them out and reports them, prefer gives the name to the one that is selected first, rename names them by server and tool."""
    prefix: NotRequired[str]
    """Stands before the separator; {server} in it is replaced by the server. With an empty prefix, the name is the tool's own."""
    separator: NotRequired[str]
    """Stands between prefix and name."""


class ToolSetDict(TypedDict):
    """What ToolSet says."""

    include: Sequence[ToolSelectorDict]
    """Selects the tools, in order. A tool that several selectors select counts where it is selected first."""
    description: NotRequired[str]
    """What the set is for."""
    exclude: NotRequired[Sequence[ToolSelectorDict]]
    """Takes tools out again."""
    name: NotRequired[str]
    """The name of the set."""
    names: NotRequired[ToolNamingDict]
    """The names of the tools in the set. By default, tools of an included set keep their names of that set, and others are named server__tool."""


class ExportedKeyDict(TypedDict):
    """What ExportedKey says."""

    id: str
    name: str
    origin: Literal["api", "configuration"]
    scopes: Sequence[str]
    expires_at: NotRequired[str]
    groups: NotRequired[Sequence[str]]
    note: NotRequired[str]
    owner: NotRequired[str]
    tenant: NotRequired[str]
    tools: NotRequired[Sequence[str]]


class AcceptedDigestDict(TypedDict):
    """What AcceptedDigest says."""

    digest: str
    server: str
    tool: str


class PolicyTextDict(TypedDict):
    """What PolicyText says."""

    version: str
    text: NotRequired[str]
    """The policy file as it was read; absent where there is none."""


class DisabledToolsDict(TypedDict):
    """What DisabledTools says."""

    reason: NotRequired[str]
    server: NotRequired[str]
    set: NotRequired[str]
    """Only tools of this set."""
    tool: NotRequired[str]
    wide: NotRequired[bool]
    """Whether server and tool are patterns."""


class TenantSetDict(TypedDict):
    """What TenantSet says."""

    set: ToolSetDict
    tenant: str


class FabricStateDict(TypedDict):
    """What FabricState says."""

    format: Literal["callyard-state/1"]
    """The form of the file."""
    keys: NotRequired[Sequence[ExportedKeyDict]]
    """The API keys without secrets. An import compares them only and makes none."""
    pins: NotRequired[Sequence[AcceptedDigestDict]]
    """The accepted definitions of tools. An import accepts those that the servers offer now; it takes no acceptance back."""
    policy: NotRequired[PolicyTextDict]
    """The policy of the front door. An import compares it only: the policy is a file of each process."""
    sets: NotRequired[Sequence[ToolSetDict]]
    """The sets of the installation that were made over the API."""
    switches: NotRequired[Sequence[DisabledToolsDict]]
    """What is disabled."""
    tenant_sets: NotRequired[Sequence[TenantSetDict]]
    """The sets that tenants other than the default one made. A file of a version without them changes none."""


class WideSwitchRequestDict(TypedDict):
    """What WideSwitchRequest says."""

    enabled: bool
    """false disables the tools. true undoes what was disabled with the same server, tool and set."""
    reason: NotRequired[str]
    """The reason that they are disabled; callers see it."""
    server: NotRequired[str]
    """A pattern of servers: * stands for any characters, ? for one. Absent: every server."""
    set: NotRequired[str]
    """Only tools of this set."""
    tool: NotRequired[str]
    """A pattern of tools. Absent: every tool."""
