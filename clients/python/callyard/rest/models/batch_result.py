from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.call_state import CallState
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.call_tool_result import CallToolResult
    from ..models.problem import Problem


T = TypeVar("T", bound="BatchResult")


@_attrs_define
class BatchResult:
    """One call of a batch that has ended.

    Attributes:
        call_id (str): The id of the call.
        cursor (str): The cursor with which the next request continues after this line.
        index (int): Its position in the batch, from 0.
        state (CallState): The state of a call. held: it waits for an approval. queued: no attempt was sent yet.
            running: it was admitted or sent, or waits for input. succeeded: the tool returned a result, which can be an
            error of the tool. failed: it was refused, or ended without a result. denied, expired, canceled: it never ran.
            unknown: it was sent, and its outcome cannot be determined. The last six states are final, except that a late
            answer or POST /calls/{id}/settle can change unknown, and settle also failed if given_up is true.
        attempt (int | Unset): The number of attempts.
        cancel_requested (bool | Unset): With state unknown: the call was asked to stop while it ran. A call in state
            canceled never ran.
        custom_id (str | Unset): The caller's own id for the call.
        problem (Problem | Unset):
        result (CallToolResult | Unset): The result of the tool, exactly as the MCP server sent it. A tool that failed
            has isError true.
        settled (str | Unset): The person who settled a call with unknown outcome, and the reason.
        tool_error (bool | Unset): Whether the tool's result is an error.
        worker (str | Unset): The worker of the last attempt; absent if the call was sent to none.
    """

    call_id: str
    cursor: str
    index: int
    state: CallState
    attempt: int | Unset = UNSET
    cancel_requested: bool | Unset = UNSET
    custom_id: str | Unset = UNSET
    problem: Problem | Unset = UNSET
    result: CallToolResult | Unset = UNSET
    settled: str | Unset = UNSET
    tool_error: bool | Unset = UNSET
    worker: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.call_tool_result import CallToolResult  # noqa: PLC0415
        from ..models.problem import Problem  # noqa: PLC0415

        call_id = self.call_id

        cursor = self.cursor

        index = self.index

        state = self.state.value

        attempt = self.attempt

        cancel_requested = self.cancel_requested

        custom_id = self.custom_id

        problem: dict[str, Any] | Unset = UNSET
        if not isinstance(self.problem, Unset):
            problem = self.problem.to_dict()

        result: dict[str, Any] | Unset = UNSET
        if not isinstance(self.result, Unset):
            result = self.result.to_dict()

        settled = self.settled

        tool_error = self.tool_error

        worker = self.worker

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "call_id": call_id,
                "cursor": cursor,
                "index": index,
                "state": state,
            }
        )
        if attempt is not UNSET:
            field_dict["attempt"] = attempt
        if cancel_requested is not UNSET:
            field_dict["cancel_requested"] = cancel_requested
        if custom_id is not UNSET:
            field_dict["custom_id"] = custom_id
        if problem is not UNSET:
            field_dict["problem"] = problem
        if result is not UNSET:
            field_dict["result"] = result
        if settled is not UNSET:
            field_dict["settled"] = settled
        if tool_error is not UNSET:
            field_dict["tool_error"] = tool_error
        if worker is not UNSET:
            field_dict["worker"] = worker

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.call_tool_result import CallToolResult  # noqa: PLC0415
        from ..models.problem import Problem  # noqa: PLC0415

        d = dict(src_dict)
        call_id = d.pop("call_id")

        cursor = d.pop("cursor")

        index = d.pop("index")

        state = CallState(d.pop("state"))

        attempt = d.pop("attempt", UNSET)

        cancel_requested = d.pop("cancel_requested", UNSET)

        custom_id = d.pop("custom_id", UNSET)

        _problem = d.pop("problem", UNSET)
        problem: Problem | Unset
        if isinstance(_problem, Unset):
            problem = UNSET
        else:
            problem = Problem.from_dict(_problem)

        _result = d.pop("result", UNSET)
        result: CallToolResult | Unset
        if isinstance(_result, Unset):
            result = UNSET
        else:
            result = CallToolResult.from_dict(_result)

        settled = d.pop("settled", UNSET)

        tool_error = d.pop("tool_error", UNSET)

        worker = d.pop("worker", UNSET)

        batch_result = cls(
            call_id=call_id,
            cursor=cursor,
            index=index,
            state=state,
            attempt=attempt,
            cancel_requested=cancel_requested,
            custom_id=custom_id,
            problem=problem,
            result=result,
            settled=settled,
            tool_error=tool_error,
            worker=worker,
        )

        batch_result.additional_properties = d
        return batch_result

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
