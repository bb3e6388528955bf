from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.tool_call_item_state import ToolCallItemState
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.confirmation_request import ConfirmationRequest
    from ..models.problem import Problem
    from ..models.tool_call_item_arguments import ToolCallItemArguments


T = TypeVar("T", bound="ToolCallItem")


@_attrs_define
class ToolCallItem:
    """
    Attributes:
        index (int): The position of the call in the message, from 0.
        name (str): The name of the tool in the model's call.
        state (ToolCallItemState): failed: it was refused or failed, for the reason in problem. held: it waits for
            approval. unknown: it was sent and no answer arrived. accepted: it is stored and continues, as Prefer requested;
            location has its path.
        arguments (ToolCallItemArguments | Unset): The parsed arguments, for calls that were extracted from a text.
        call_id (str | Unset): The id of the call, if it was admitted.
        confirmation (ConfirmationRequest | Unset):
        id (str | Unset): The provider's id of the call.
        location (str | Unset): For an accepted or held call, the path that returns its state.
        notes (list[str] | Unset): The parts of the result that the provider does not accept.
        problem (Problem | Unset):
        repaired (bool | Unset): Whether the text of the call was invalid JSON and was repaired.
        server (str | Unset): The server, if the name matched a tool.
        tool (str | Unset): The name of the tool at its server, if the name matched one.
        tool_error (bool | Unset): Whether the tool's result is an error.
    """

    index: int
    name: str
    state: ToolCallItemState
    arguments: ToolCallItemArguments | Unset = UNSET
    call_id: str | Unset = UNSET
    confirmation: ConfirmationRequest | Unset = UNSET
    id: str | Unset = UNSET
    location: str | Unset = UNSET
    notes: list[str] | Unset = UNSET
    problem: Problem | Unset = UNSET
    repaired: bool | Unset = UNSET
    server: str | Unset = UNSET
    tool: str | Unset = UNSET
    tool_error: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.confirmation_request import ConfirmationRequest  # noqa: PLC0415
        from ..models.problem import Problem  # noqa: PLC0415
        from ..models.tool_call_item_arguments import ToolCallItemArguments  # noqa: PLC0415

        index = self.index

        name = self.name

        state = self.state.value

        arguments: dict[str, Any] | Unset = UNSET
        if not isinstance(self.arguments, Unset):
            arguments = self.arguments.to_dict()

        call_id = self.call_id

        confirmation: dict[str, Any] | Unset = UNSET
        if not isinstance(self.confirmation, Unset):
            confirmation = self.confirmation.to_dict()

        id = self.id

        location = self.location

        notes: list[str] | Unset = UNSET
        if not isinstance(self.notes, Unset):
            notes = self.notes

        problem: dict[str, Any] | Unset = UNSET
        if not isinstance(self.problem, Unset):
            problem = self.problem.to_dict()

        repaired = self.repaired

        server = self.server

        tool = self.tool

        tool_error = self.tool_error

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "index": index,
                "name": name,
                "state": state,
            }
        )
        if arguments is not UNSET:
            field_dict["arguments"] = arguments
        if call_id is not UNSET:
            field_dict["call_id"] = call_id
        if confirmation is not UNSET:
            field_dict["confirmation"] = confirmation
        if id is not UNSET:
            field_dict["id"] = id
        if location is not UNSET:
            field_dict["location"] = location
        if notes is not UNSET:
            field_dict["notes"] = notes
        if problem is not UNSET:
            field_dict["problem"] = problem
        if repaired is not UNSET:
            field_dict["repaired"] = repaired
        if server is not UNSET:
            field_dict["server"] = server
        if tool is not UNSET:
            field_dict["tool"] = tool
        if tool_error is not UNSET:
            field_dict["tool_error"] = tool_error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.confirmation_request import ConfirmationRequest  # noqa: PLC0415
        from ..models.problem import Problem  # noqa: PLC0415
        from ..models.tool_call_item_arguments import ToolCallItemArguments  # noqa: PLC0415

        d = dict(src_dict)
        index = d.pop("index")

        name = d.pop("name")

        state = ToolCallItemState(d.pop("state"))

        _arguments = d.pop("arguments", UNSET)
        arguments: ToolCallItemArguments | Unset
        if isinstance(_arguments, Unset):
            arguments = UNSET
        else:
            arguments = ToolCallItemArguments.from_dict(_arguments)

        call_id = d.pop("call_id", UNSET)

        _confirmation = d.pop("confirmation", UNSET)
        confirmation: ConfirmationRequest | Unset
        if isinstance(_confirmation, Unset):
            confirmation = UNSET
        else:
            confirmation = ConfirmationRequest.from_dict(_confirmation)

        id = d.pop("id", UNSET)

        location = d.pop("location", UNSET)

        notes = cast(list[str], d.pop("notes", UNSET))

        _problem = d.pop("problem", UNSET)
        problem: Problem | Unset
        if isinstance(_problem, Unset):
            problem = UNSET
        else:
            problem = Problem.from_dict(_problem)

        repaired = d.pop("repaired", UNSET)

        server = d.pop("server", UNSET)

        tool = d.pop("tool", UNSET)

        tool_error = d.pop("tool_error", UNSET)

        tool_call_item = cls(
            index=index,
            name=name,
            state=state,
            arguments=arguments,
            call_id=call_id,
            confirmation=confirmation,
            id=id,
            location=location,
            notes=notes,
            problem=problem,
            repaired=repaired,
            server=server,
            tool=tool,
            tool_error=tool_error,
        )

        tool_call_item.additional_properties = d
        return tool_call_item

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
