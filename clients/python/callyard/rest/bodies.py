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
    """The timeout of the call, in milliseconds. The default is the timeout of the server."""


class BatchRequestDict(TypedDict):
    """A batch in one document."""

    callback_url: NotRequired[str]
    """The URL that is notified when the batch ends."""
    calls: NotRequired[Sequence[BatchCallDict]]
    """The calls; optional if open is true."""
    expires_in: NotRequired[int]
    """The number of seconds within which calls must be sent to a worker; the default is 86400 (24 hours)."""
    labels: NotRequired[Mapping[str, str]]
    """The caller's own labels; a name has at most 64 bytes."""
    open: NotRequired[bool]
    """More calls follow with POST /batches/{id}/calls."""
    priority: NotRequired[int]
    """Each step of 5 doubles the batch's share of the capacity, or halves it."""
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
    """The timeout of the call, in milliseconds. The default is the timeout of the server."""


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
    """true confirms the calls, which then run; false rejects them."""


class ConfirmRequestDict(TypedDict):
    """What ConfirmRequest says."""

    confirm: bool
    """true confirms the call, which then runs; false rejects it."""


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
    """The number of calls that may arrive at once; absent: the calls of one second at this rate."""
    in_flight: NotRequired[int]
    """The maximum number of concurrent calls; absent: no limit."""
    rate: NotRequired[float]
    """The maximum number of calls per second; absent: no limit."""


class APIKeyRequestDict(TypedDict):
    """What APIKeyRequest says."""

    name: str
    """The name of the principal that uses the key."""
    expires_at: NotRequired[str]
    """When the key expires, at most 5 years from now; absent: in 90 days."""
    groups: NotRequired[Sequence[str]]
    """The groups of the principal, by which policies select callers."""
    limits: NotRequired[APIKeyLimitsDict]
    """Limits of the key, in addition to those of the configuration. They cannot exceed the limits of your own key."""
    note: NotRequired[str]
    """What the key is for."""
    owner: NotRequired[str]
    """The person or team behind the key. Absent: the owner of your credential."""
    role: NotRequired[Literal["platform-admin", "tenant-admin", "developer", "caller", "auditor"]]
    """The role, instead of scopes. It cannot have a scope that your own credential does not have."""
    scopes: NotRequired[Sequence[str]]
    """Only scopes that your own credential has. Required if role is absent."""
    tenant: NotRequired[str]
    """The tenant of the principal. Absent: your tenant. Only credentials of the default tenant can create keys of other tenants."""
    tools: NotRequired[Sequence[str]]
    """Patterns of SERVER/TOOL. Of the tools that the scopes allow, the key can call only those that match."""


class APIKeyChangeDict(TypedDict):
    """What APIKeyChange says."""

    expires_at: NotRequired[str]
    """When the key expires, at most 5 years from now."""
    groups: NotRequired[Sequence[str]]
    """Replaces all groups of the principal; [] removes them."""
    limits: NotRequired[APIKeyLimitsDict]
    """Replaces all limits of the key; {} removes them."""
    note: NotRequired[str]
    """What the key is for."""
    owner: NotRequired[str]
    """The person or team behind the key."""
    role: NotRequired[Literal["platform-admin", "tenant-admin", "developer", "caller", "auditor"]]
    """Replaces the scopes."""
    scopes: NotRequired[Sequence[str]]
    """Replace the role."""
    tools: NotRequired[Sequence[str]]
    """Replaces all patterns of tools; [] removes them, so that the key can call every tool that its scopes allow."""


class APIKeyRotationDict(TypedDict):
    """What APIKeyRotation says."""

    expires_at: NotRequired[str]
    """When the key expires; absent: unchanged."""
    grace_seconds: NotRequired[int]
    """The number of seconds for which the previous secret stays valid; absent: 86400 (one day). At most 7 days; 0 makes it invalid at once."""


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
    """The tenant of the principal; the default is the default tenant. The policy of this tenant applies too."""


class PolicyTestRequestDict(TypedDict):
    """What PolicyTestRequest says."""

    server: str
    """The id of the server."""
    tool: str
    """The name of the tool."""
    arguments: NotRequired[Mapping[str, Any]]
    """The arguments. The default is an empty object."""
    policy: NotRequired[str]
    """A draft: the text of a policy file. It is used instead of the policy of the platform in force. It requires the scopes of POST /policy/dry-run."""
    principal: NotRequired[PolicyTestPrincipalDict]
    """The principal whose call is tested; the default is the caller. It requires the scopes of POST /policy/dry-run."""


class ServerEntryDict(TypedDict):
    """A server: its id and its entry as in a servers file."""

    apiKey: NotRequired[str]
    """The API key of a remote server, sent as Authorization: Bearer."""
    args: NotRequired[Sequence[str]]
    """The arguments of the command."""
    command: NotRequired[str]
    """The command of a stdio server."""
    docker: NotRequired[Mapping[str, Any]]
    """The container of a high-risk server."""
    env: NotRequired[Mapping[str, str]]
    """Environment variables of the command."""
    headers: NotRequired[Mapping[str, str]]
    """Headers of each request to a remote server."""
    id: NotRequired[str]
    """The id of the new server. Without it, the server is named after its package, program or host; a number is added if the name is taken."""
    pin: NotRequired[Literal["off", "warn", "quarantine"]]
    """What happens to a tool whose definition is not the accepted one; the default is off."""
    riskLevel: NotRequired[int]
    """1 low, 2 medium, 3 high."""
    type: NotRequired[Literal["stdio", "http", "sse", "websocket"]]
    """The transport. Without it: stdio for a command; for a URL, websocket if it begins with ws: or wss:, sse if it ends in /sse, otherwise http."""
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
    """Only tools whose hint destructiveHint has this value. A tool without the hint counts as destructive unless it is read-only."""
    idempotent: NotRequired[bool]
    """Only tools whose hint idempotentHint has this value."""
    max_risk_level: NotRequired[int]
    """The highest risk level of the tool's server, 0 for any; a server without a level has level 1."""
    open_world: NotRequired[bool]
    """Only tools whose hint openWorldHint has this value. Without the hint, the value is true."""
    read_only: NotRequired[bool]
    """Only tools whose hint readOnlyHint has this value."""
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
    """What happens if several tools would have the same name. error leaves all of them out and reports them, prefer gives the name to the one that is selected first, rename names them by server and tool."""
    prefix: NotRequired[str]
    """The text before the separator; {server} in it is replaced by the id of the server. With an empty prefix, tools keep their own names."""
    separator: NotRequired[str]
    """The text between the prefix and the name of the tool."""


class ToolSetDict(TypedDict):
    """What ToolSet says."""

    include: Sequence[ToolSelectorDict]
    """Selects the tools, in order. A tool that several selectors match has the position of the first match."""
    description: NotRequired[str]
    """What the set is for."""
    exclude: NotRequired[Sequence[ToolSelectorDict]]
    """Excludes the matching tools again."""
    name: NotRequired[str]
    """The name of the set."""
    names: NotRequired[ToolNamingDict]
    """The names of the tools in the set. By default, tools of an included set keep their names of that set, and others are named server__tool."""


class ExportedKeyDict(TypedDict):
    """What ExportedKey says."""

    id: str
    """The id of the key."""
    name: str
    """The name of the principal that uses the key."""
    origin: Literal["api", "configuration"]
    """api: created with POST /keys. configuration: an entry of front_door.keys."""
    scopes: Sequence[str]
    """The scopes of the key, those of its role included."""
    expires_at: NotRequired[str]
    """When the key expires; absent if it never does."""
    groups: NotRequired[Sequence[str]]
    """The groups of the principal, by which policies select callers."""
    note: NotRequired[str]
    """What the key is for."""
    owner: NotRequired[str]
    """The person or team behind the key."""
    tenant: NotRequired[str]
    """The tenant of the principal; absent for the default one."""
    tools: NotRequired[Sequence[str]]
    """Patterns of the tools that the key can call; absent: every tool that its scopes allow."""


class AcceptedDigestDict(TypedDict):
    """What AcceptedDigest says."""

    digest: str
    """The digest of the accepted definition."""
    server: str
    """The id of the server."""
    tool: str
    """The name of the tool."""


class PolicyTextDict(TypedDict):
    """What PolicyText says."""

    version: str
    """The version of the policy, which is a digest of its text."""
    text: NotRequired[str]
    """The policy file as it was read; absent if there is none."""


class DisabledToolsDict(TypedDict):
    """What DisabledTools says."""

    reason: NotRequired[str]
    """The reason that they are disabled; callers see it."""
    server: NotRequired[str]
    """A server id or, if wide is true, a pattern of server ids."""
    set: NotRequired[str]
    """Only tools of this set."""
    tool: NotRequired[str]
    """A tool name or, if wide is true, a pattern of tool names."""
    wide: NotRequired[bool]
    """Whether server and tool are patterns."""


class TenantSetDict(TypedDict):
    """What TenantSet says."""

    set: ToolSetDict
    """The definition of the set."""
    tenant: str
    """The tenant that owns the set."""


class FabricStateDict(TypedDict):
    """What FabricState says."""

    format: Literal["callyard-state/1"]
    """The format of the file, with its version."""
    keys: NotRequired[Sequence[ExportedKeyDict]]
    """The API keys without secrets. An import only compares them, and creates none."""
    pins: NotRequired[Sequence[AcceptedDigestDict]]
    """The accepted definitions of tools. An import accepts those that the servers offer now; it does not revoke accepted ones."""
    policy: NotRequired[PolicyTextDict]
    """The policy of the front door. An import only compares it: each process reads its policy from a file."""
    sets: NotRequired[Sequence[ToolSetDict]]
    """The sets of the installation that were created over the API."""
    switches: NotRequired[Sequence[DisabledToolsDict]]
    """The disabled tools, and the patterns and sets that disable tools."""
    tenant_sets: NotRequired[Sequence[TenantSetDict]]
    """The sets of tenants other than the default one. A file of an older version, without this member, changes none of them."""


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
