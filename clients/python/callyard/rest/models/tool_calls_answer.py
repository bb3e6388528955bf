from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.tool_calls_answer_format import ToolCallsAnswerFormat
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.own_tool_call import OwnToolCall
    from ..models.tool_call_item import ToolCallItem
    from ..models.tool_calls_answer_messages_item import ToolCallsAnswerMessagesItem


T = TypeVar("T", bound="ToolCallsAnswer")


@_attrs_define
class ToolCallsAnswer:
    """
    Attributes:
        calls (list[ToolCallItem]): The outcome of each call, in order.
        format_ (ToolCallsAnswerFormat): The provider of the tool calls.
        messages (list[ToolCallsAnswerMessagesItem]): The provider's messages that answer the calls, in order. Append
            them to the message with the calls.
        own_calls (list[OwnToolCall] | Unset): The calls of tools that the parameter own names. They have not run: run
            them, and add their messages.
    """

    calls: list[ToolCallItem]
    format_: ToolCallsAnswerFormat
    messages: list[ToolCallsAnswerMessagesItem]
    own_calls: list[OwnToolCall] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.own_tool_call import OwnToolCall  # noqa: PLC0415
        from ..models.tool_call_item import ToolCallItem  # noqa: PLC0415
        from ..models.tool_calls_answer_messages_item import ToolCallsAnswerMessagesItem  # noqa: PLC0415

        calls = []
        for calls_item_data in self.calls:
            calls_item = calls_item_data.to_dict()
            calls.append(calls_item)

        format_ = self.format_.value

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        own_calls: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.own_calls, Unset):
            own_calls = []
            for own_calls_item_data in self.own_calls:
                own_calls_item = own_calls_item_data.to_dict()
                own_calls.append(own_calls_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "calls": calls,
                "format": format_,
                "messages": messages,
            }
        )
        if own_calls is not UNSET:
            field_dict["own_calls"] = own_calls

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.own_tool_call import OwnToolCall  # noqa: PLC0415
        from ..models.tool_call_item import ToolCallItem  # noqa: PLC0415
        from ..models.tool_calls_answer_messages_item import ToolCallsAnswerMessagesItem  # noqa: PLC0415

        d = dict(src_dict)
        calls = []
        _calls = d.pop("calls")
        for calls_item_data in _calls:
            calls_item = ToolCallItem.from_dict(calls_item_data)

            calls.append(calls_item)

        format_ = ToolCallsAnswerFormat(d.pop("format"))

        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = ToolCallsAnswerMessagesItem.from_dict(messages_item_data)

            messages.append(messages_item)

        _own_calls = d.pop("own_calls", UNSET)
        own_calls: list[OwnToolCall] | Unset = UNSET
        if _own_calls is not UNSET:
            own_calls = []
            for own_calls_item_data in _own_calls:
                own_calls_item = OwnToolCall.from_dict(own_calls_item_data)

                own_calls.append(own_calls_item)

        tool_calls_answer = cls(
            calls=calls,
            format_=format_,
            messages=messages,
            own_calls=own_calls,
        )

        tool_calls_answer.additional_properties = d
        return tool_calls_answer

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
