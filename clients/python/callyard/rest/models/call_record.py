from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.call_record_decision import CallRecordDecision
from ..models.call_state import CallState
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.call_record_error import CallRecordError


T = TypeVar("T", bound="CallRecord")


@_attrs_define
class CallRecord:
    """
    Attributes:
        arguments_bytes (int): The size of the arguments in bytes.
        attempt (int): The number of attempts; 0 if the call was sent to no worker.
        created (datetime.datetime): The time at which the call was admitted.
        id (str): The id of the call.
        method (str): The MCP method of the request.
        principal (str): The principal that made the call.
        result_bytes (int): The size of the result in bytes; 0 if there is none.
        server (str): The id of the server.
        state (CallState): The state of a call. held: it waits for an approval. queued: no attempt was sent yet.
            running: it was admitted or sent, or waits for input. succeeded: the tool returned a result, which can be an
            error of the tool. failed: it was refused, or ended without a result. denied, expired, canceled: it never ran.
            unknown: it was sent, and its outcome cannot be determined. The last six states are final, except that a late
            answer or POST /calls/{id}/settle can change unknown, and settle also failed if given_up is true.
        approval_id (str | Unset): The approval that the call required, if it was held.
        arguments_digest (str | Unset): The SHA-256 digest of the arguments.
        batch_id (str | Unset): The batch of the call; absent if it is in none.
        cancel_requested (bool | Unset): With state unknown: the call was asked to stop while it ran. A call in state
            canceled never ran.
        custom_id (str | Unset): The caller's own id for the call, if it has one.
        decision (CallRecordDecision | Unset): What the policy decided. Absent if the call was refused before the policy
            was evaluated.
        durable (bool | Unset): Whether the call is stored and continues without its caller.
        ended (datetime.datetime | Unset): The time at which the call ended; absent until then.
        error (CallRecordError | Unset):
        front_door (str | Unset): The front door that admitted the call.
        index (int | Unset): Its position in the batch, from 0.
        owner (str | Unset): The person or team behind the principal, if recorded.
        replay_of (str | Unset): The call that this one repeats with the same arguments.
        replayed (bool | Unset): Whether an idempotency key returned the result of an earlier request.
        result_digest (str | Unset): The SHA-256 digest of the result; absent if there is none.
        rule (str | Unset): The rule of the policy that decided, if one did and its name was recorded.
        started (datetime.datetime | Unset): The time at which its last attempt was sent to the MCP server, if known.
        tenant (str | Unset): The tenant of the principal; absent for the default one.
        took_ms (float | Unset): The time that the MCP server took, in milliseconds, measured by the worker; absent if
            it is not known.
        tool (str | Unset): The name of the tool; absent for a request that is not a tool call.
        tool_error (bool | Unset): Whether the tool's result is an error.
        trace_id (str | Unset): The trace that has the spans of the call: 32 hex digits. Absent if the call was not
            traced or not sampled.
        worker (str | Unset): The worker of the last attempt; absent if the call was sent to none.
    """

    arguments_bytes: int
    attempt: int
    created: datetime.datetime
    id: str
    method: str
    principal: str
    result_bytes: int
    server: str
    state: CallState
    approval_id: str | Unset = UNSET
    arguments_digest: str | Unset = UNSET
    batch_id: str | Unset = UNSET
    cancel_requested: bool | Unset = UNSET
    custom_id: str | Unset = UNSET
    decision: CallRecordDecision | Unset = UNSET
    durable: bool | Unset = UNSET
    ended: datetime.datetime | Unset = UNSET
    error: CallRecordError | Unset = UNSET
    front_door: str | Unset = UNSET
    index: int | Unset = UNSET
    owner: str | Unset = UNSET
    replay_of: str | Unset = UNSET
    replayed: bool | Unset = UNSET
    result_digest: str | Unset = UNSET
    rule: str | Unset = UNSET
    started: datetime.datetime | Unset = UNSET
    tenant: str | Unset = UNSET
    took_ms: float | Unset = UNSET
    tool: str | Unset = UNSET
    tool_error: bool | Unset = UNSET
    trace_id: str | Unset = UNSET
    worker: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.call_record_error import CallRecordError  # noqa: PLC0415

        arguments_bytes = self.arguments_bytes

        attempt = self.attempt

        created = self.created.isoformat()

        id = self.id

        method = self.method

        principal = self.principal

        result_bytes = self.result_bytes

        server = self.server

        state = self.state.value

        approval_id = self.approval_id

        arguments_digest = self.arguments_digest

        batch_id = self.batch_id

        cancel_requested = self.cancel_requested

        custom_id = self.custom_id

        decision: str | Unset = UNSET
        if not isinstance(self.decision, Unset):
            decision = self.decision.value

        durable = self.durable

        ended: str | Unset = UNSET
        if not isinstance(self.ended, Unset):
            ended = self.ended.isoformat()

        error: dict[str, Any] | Unset = UNSET
        if not isinstance(self.error, Unset):
            error = self.error.to_dict()

        front_door = self.front_door

        index = self.index

        owner = self.owner

        replay_of = self.replay_of

        replayed = self.replayed

        result_digest = self.result_digest

        rule = self.rule

        started: str | Unset = UNSET
        if not isinstance(self.started, Unset):
            started = self.started.isoformat()

        tenant = self.tenant

        took_ms = self.took_ms

        tool = self.tool

        tool_error = self.tool_error

        trace_id = self.trace_id

        worker = self.worker

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "arguments_bytes": arguments_bytes,
                "attempt": attempt,
                "created": created,
                "id": id,
                "method": method,
                "principal": principal,
                "result_bytes": result_bytes,
                "server": server,
                "state": state,
            }
        )
        if approval_id is not UNSET:
            field_dict["approval_id"] = approval_id
        if arguments_digest is not UNSET:
            field_dict["arguments_digest"] = arguments_digest
        if batch_id is not UNSET:
            field_dict["batch_id"] = batch_id
        if cancel_requested is not UNSET:
            field_dict["cancel_requested"] = cancel_requested
        if custom_id is not UNSET:
            field_dict["custom_id"] = custom_id
        if decision is not UNSET:
            field_dict["decision"] = decision
        if durable is not UNSET:
            field_dict["durable"] = durable
        if ended is not UNSET:
            field_dict["ended"] = ended
        if error is not UNSET:
            field_dict["error"] = error
        if front_door is not UNSET:
            field_dict["front_door"] = front_door
        if index is not UNSET:
            field_dict["index"] = index
        if owner is not UNSET:
            field_dict["owner"] = owner
        if replay_of is not UNSET:
            field_dict["replay_of"] = replay_of
        if replayed is not UNSET:
            field_dict["replayed"] = replayed
        if result_digest is not UNSET:
            field_dict["result_digest"] = result_digest
        if rule is not UNSET:
            field_dict["rule"] = rule
        if started is not UNSET:
            field_dict["started"] = started
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if took_ms is not UNSET:
            field_dict["took_ms"] = took_ms
        if tool is not UNSET:
            field_dict["tool"] = tool
        if tool_error is not UNSET:
            field_dict["tool_error"] = tool_error
        if trace_id is not UNSET:
            field_dict["trace_id"] = trace_id
        if worker is not UNSET:
            field_dict["worker"] = worker

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.call_record_error import CallRecordError  # noqa: PLC0415

        d = dict(src_dict)
        arguments_bytes = d.pop("arguments_bytes")

        attempt = d.pop("attempt")

        created = datetime.datetime.fromisoformat(d.pop("created"))

        id = d.pop("id")

        method = d.pop("method")

        principal = d.pop("principal")

        result_bytes = d.pop("result_bytes")

        server = d.pop("server")

        state = CallState(d.pop("state"))

        approval_id = d.pop("approval_id", UNSET)

        arguments_digest = d.pop("arguments_digest", UNSET)

        batch_id = d.pop("batch_id", UNSET)

        cancel_requested = d.pop("cancel_requested", UNSET)

        custom_id = d.pop("custom_id", UNSET)

        _decision = d.pop("decision", UNSET)
        decision: CallRecordDecision | Unset
        if isinstance(_decision, Unset):
            decision = UNSET
        else:
            decision = CallRecordDecision(_decision)

        durable = d.pop("durable", UNSET)

        _ended = d.pop("ended", UNSET)
        ended: datetime.datetime | Unset
        if isinstance(_ended, Unset):
            ended = UNSET
        else:
            ended = datetime.datetime.fromisoformat(_ended)

        _error = d.pop("error", UNSET)
        error: CallRecordError | Unset
        if isinstance(_error, Unset):
            error = UNSET
        else:
            error = CallRecordError.from_dict(_error)

        front_door = d.pop("front_door", UNSET)

        index = d.pop("index", UNSET)

        owner = d.pop("owner", UNSET)

        replay_of = d.pop("replay_of", UNSET)

        replayed = d.pop("replayed", UNSET)

        result_digest = d.pop("result_digest", UNSET)

        rule = d.pop("rule", UNSET)

        _started = d.pop("started", UNSET)
        started: datetime.datetime | Unset
        if isinstance(_started, Unset):
            started = UNSET
        else:
            started = datetime.datetime.fromisoformat(_started)

        tenant = d.pop("tenant", UNSET)

        took_ms = d.pop("took_ms", UNSET)

        tool = d.pop("tool", UNSET)

        tool_error = d.pop("tool_error", UNSET)

        trace_id = d.pop("trace_id", UNSET)

        worker = d.pop("worker", UNSET)

        call_record = cls(
            arguments_bytes=arguments_bytes,
            attempt=attempt,
            created=created,
            id=id,
            method=method,
            principal=principal,
            result_bytes=result_bytes,
            server=server,
            state=state,
            approval_id=approval_id,
            arguments_digest=arguments_digest,
            batch_id=batch_id,
            cancel_requested=cancel_requested,
            custom_id=custom_id,
            decision=decision,
            durable=durable,
            ended=ended,
            error=error,
            front_door=front_door,
            index=index,
            owner=owner,
            replay_of=replay_of,
            replayed=replayed,
            result_digest=result_digest,
            rule=rule,
            started=started,
            tenant=tenant,
            took_ms=took_ms,
            tool=tool,
            tool_error=tool_error,
            trace_id=trace_id,
            worker=worker,
        )

        call_record.additional_properties = d
        return call_record

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
