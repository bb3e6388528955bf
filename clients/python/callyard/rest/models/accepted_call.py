from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.accepted_call_outcome import AcceptedCallOutcome
from ..models.call_state import CallState
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.accepted_call_arguments import AcceptedCallArguments
    from ..models.call_tool_result import CallToolResult
    from ..models.decision import Decision
    from ..models.problem import Problem


T = TypeVar("T", bound="AcceptedCall")


@_attrs_define
class AcceptedCall:
    """A call that is stored and continues without its caller; GET /calls/{id} returns its state.

    Attributes:
        created (datetime.datetime): When the call was admitted.
        id (str): The id of the call.
        outcome (AcceptedCallOutcome): Always accepted; other answers to a call have a different value.
        server (str): The id of the server.
        state (CallState): The state of a call. held: it waits for an approval. queued: no attempt was sent yet.
            running: it was admitted or sent, or waits for input. succeeded: the tool returned a result, which can be an
            error of the tool. failed: it was refused, or ended without a result. denied, expired, canceled: it never ran.
            unknown: it was sent, and its outcome cannot be determined. The last six states are final, except that a late
            answer or POST /calls/{id}/settle can change unknown, and settle also failed if given_up is true.
        tool (str): The name of the tool.
        approval_id (str | Unset): The approval that the call requires or required; absent if it was never held.
        arguments (AcceptedCallArguments | Unset): The arguments as the caller sent them, if the request asks for them
            and they are stored.
        attempt (int | Unset): The number of attempts; absent before the first.
        batch_id (str | Unset): The batch of the call; absent if it is in none.
        cancel_requested (bool | Unset): With state unknown: the call was asked to stop while it ran. A call in state
            canceled never ran.
        custom_id (str | Unset): The caller's own id for the call, if it has one.
        decisions (list[Decision] | Unset): The decisions of people on the call, oldest first.
        edited (bool | Unset): Whether an approver edited the arguments.
        ended (datetime.datetime | Unset): When the call ended; absent until then.
        expires_at (datetime.datetime | Unset): The time until which it can be approved or sent; absent if there is no
            limit.
        given_up (bool | Unset): Whether every attempt failed; POST /calls/{id}/settle can start another.
        index (int | Unset): Its position in the batch, from 0; absent if it is in none.
        problem (Problem | Unset):
        reasons (list[str] | Unset): The reasons for which it was held.
        replay_of (str | Unset): The call that this one repeats with the same arguments; absent if it repeats none.
        result (CallToolResult | Unset): The result of the tool, exactly as the MCP server sent it. A tool that failed
            has isError true.
        settled (str | Unset): The person who settled a call with unknown outcome, and the reason; absent if nobody did.
        tool_error (bool | Unset): Whether the tool's result is an error.
        trace_id (str | Unset): The trace that has the spans of the call: 32 hex digits. Absent if the call was not
            traced or not sampled. For a call of a batch, GET /calls has it.
        worker (str | Unset): The worker of the last attempt; absent if the call was sent to none.
    """

    created: datetime.datetime
    id: str
    outcome: AcceptedCallOutcome
    server: str
    state: CallState
    tool: str
    approval_id: str | Unset = UNSET
    arguments: AcceptedCallArguments | Unset = UNSET
    attempt: int | Unset = UNSET
    batch_id: str | Unset = UNSET
    cancel_requested: bool | Unset = UNSET
    custom_id: str | Unset = UNSET
    decisions: list[Decision] | Unset = UNSET
    edited: bool | Unset = UNSET
    ended: datetime.datetime | Unset = UNSET
    expires_at: datetime.datetime | Unset = UNSET
    given_up: bool | Unset = UNSET
    index: int | Unset = UNSET
    problem: Problem | Unset = UNSET
    reasons: list[str] | Unset = UNSET
    replay_of: str | Unset = UNSET
    result: CallToolResult | Unset = UNSET
    settled: str | Unset = UNSET
    tool_error: bool | Unset = UNSET
    trace_id: str | Unset = UNSET
    worker: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.accepted_call_arguments import AcceptedCallArguments  # noqa: PLC0415
        from ..models.call_tool_result import CallToolResult  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.problem import Problem  # noqa: PLC0415

        created = self.created.isoformat()

        id = self.id

        outcome = self.outcome.value

        server = self.server

        state = self.state.value

        tool = self.tool

        approval_id = self.approval_id

        arguments: dict[str, Any] | Unset = UNSET
        if not isinstance(self.arguments, Unset):
            arguments = self.arguments.to_dict()

        attempt = self.attempt

        batch_id = self.batch_id

        cancel_requested = self.cancel_requested

        custom_id = self.custom_id

        decisions: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.decisions, Unset):
            decisions = []
            for decisions_item_data in self.decisions:
                decisions_item = decisions_item_data.to_dict()
                decisions.append(decisions_item)

        edited = self.edited

        ended: str | Unset = UNSET
        if not isinstance(self.ended, Unset):
            ended = self.ended.isoformat()

        expires_at: str | Unset = UNSET
        if not isinstance(self.expires_at, Unset):
            expires_at = self.expires_at.isoformat()

        given_up = self.given_up

        index = self.index

        problem: dict[str, Any] | Unset = UNSET
        if not isinstance(self.problem, Unset):
            problem = self.problem.to_dict()

        reasons: list[str] | Unset = UNSET
        if not isinstance(self.reasons, Unset):
            reasons = self.reasons

        replay_of = self.replay_of

        result: dict[str, Any] | Unset = UNSET
        if not isinstance(self.result, Unset):
            result = self.result.to_dict()

        settled = self.settled

        tool_error = self.tool_error

        trace_id = self.trace_id

        worker = self.worker

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "created": created,
                "id": id,
                "outcome": outcome,
                "server": server,
                "state": state,
                "tool": tool,
            }
        )
        if approval_id is not UNSET:
            field_dict["approval_id"] = approval_id
        if arguments is not UNSET:
            field_dict["arguments"] = arguments
        if attempt is not UNSET:
            field_dict["attempt"] = attempt
        if batch_id is not UNSET:
            field_dict["batch_id"] = batch_id
        if cancel_requested is not UNSET:
            field_dict["cancel_requested"] = cancel_requested
        if custom_id is not UNSET:
            field_dict["custom_id"] = custom_id
        if decisions is not UNSET:
            field_dict["decisions"] = decisions
        if edited is not UNSET:
            field_dict["edited"] = edited
        if ended is not UNSET:
            field_dict["ended"] = ended
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if given_up is not UNSET:
            field_dict["given_up"] = given_up
        if index is not UNSET:
            field_dict["index"] = index
        if problem is not UNSET:
            field_dict["problem"] = problem
        if reasons is not UNSET:
            field_dict["reasons"] = reasons
        if replay_of is not UNSET:
            field_dict["replay_of"] = replay_of
        if result is not UNSET:
            field_dict["result"] = result
        if settled is not UNSET:
            field_dict["settled"] = settled
        if tool_error is not UNSET:
            field_dict["tool_error"] = tool_error
        if trace_id is not UNSET:
            field_dict["trace_id"] = trace_id
        if worker is not UNSET:
            field_dict["worker"] = worker

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.accepted_call_arguments import AcceptedCallArguments  # noqa: PLC0415
        from ..models.call_tool_result import CallToolResult  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.problem import Problem  # noqa: PLC0415

        d = dict(src_dict)
        created = datetime.datetime.fromisoformat(d.pop("created"))

        id = d.pop("id")

        outcome = AcceptedCallOutcome(d.pop("outcome"))

        server = d.pop("server")

        state = CallState(d.pop("state"))

        tool = d.pop("tool")

        approval_id = d.pop("approval_id", UNSET)

        _arguments = d.pop("arguments", UNSET)
        arguments: AcceptedCallArguments | Unset
        if isinstance(_arguments, Unset):
            arguments = UNSET
        else:
            arguments = AcceptedCallArguments.from_dict(_arguments)

        attempt = d.pop("attempt", UNSET)

        batch_id = d.pop("batch_id", UNSET)

        cancel_requested = d.pop("cancel_requested", UNSET)

        custom_id = d.pop("custom_id", UNSET)

        _decisions = d.pop("decisions", UNSET)
        decisions: list[Decision] | Unset = UNSET
        if _decisions is not UNSET:
            decisions = []
            for decisions_item_data in _decisions:
                decisions_item = Decision.from_dict(decisions_item_data)

                decisions.append(decisions_item)

        edited = d.pop("edited", UNSET)

        _ended = d.pop("ended", UNSET)
        ended: datetime.datetime | Unset
        if isinstance(_ended, Unset):
            ended = UNSET
        else:
            ended = datetime.datetime.fromisoformat(_ended)

        _expires_at = d.pop("expires_at", UNSET)
        expires_at: datetime.datetime | Unset
        if isinstance(_expires_at, Unset):
            expires_at = UNSET
        else:
            expires_at = datetime.datetime.fromisoformat(_expires_at)

        given_up = d.pop("given_up", UNSET)

        index = d.pop("index", UNSET)

        _problem = d.pop("problem", UNSET)
        problem: Problem | Unset
        if isinstance(_problem, Unset):
            problem = UNSET
        else:
            problem = Problem.from_dict(_problem)

        reasons = cast(list[str], d.pop("reasons", UNSET))

        replay_of = d.pop("replay_of", UNSET)

        _result = d.pop("result", UNSET)
        result: CallToolResult | Unset
        if isinstance(_result, Unset):
            result = UNSET
        else:
            result = CallToolResult.from_dict(_result)

        settled = d.pop("settled", UNSET)

        tool_error = d.pop("tool_error", UNSET)

        trace_id = d.pop("trace_id", UNSET)

        worker = d.pop("worker", UNSET)

        accepted_call = cls(
            created=created,
            id=id,
            outcome=outcome,
            server=server,
            state=state,
            tool=tool,
            approval_id=approval_id,
            arguments=arguments,
            attempt=attempt,
            batch_id=batch_id,
            cancel_requested=cancel_requested,
            custom_id=custom_id,
            decisions=decisions,
            edited=edited,
            ended=ended,
            expires_at=expires_at,
            given_up=given_up,
            index=index,
            problem=problem,
            reasons=reasons,
            replay_of=replay_of,
            result=result,
            settled=settled,
            tool_error=tool_error,
            trace_id=trace_id,
            worker=worker,
        )

        accepted_call.additional_properties = d
        return accepted_call

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
