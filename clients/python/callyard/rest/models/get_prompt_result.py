from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.get_prompt_result_messages_item import GetPromptResultMessagesItem


T = TypeVar("T", bound="GetPromptResult")


@_attrs_define
class GetPromptResult:
    """The prompt, exactly as the server sent it.

    Attributes:
        messages (list[GetPromptResultMessagesItem]): The messages of the prompt, in order.
        description (str | Unset): The description of the prompt.
    """

    messages: list[GetPromptResultMessagesItem]
    description: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.get_prompt_result_messages_item import GetPromptResultMessagesItem  # noqa: PLC0415

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        description = self.description

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "messages": messages,
            }
        )
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.get_prompt_result_messages_item import GetPromptResultMessagesItem  # noqa: PLC0415

        d = dict(src_dict)
        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = GetPromptResultMessagesItem.from_dict(messages_item_data)

            messages.append(messages_item)

        description = d.pop("description", UNSET)

        get_prompt_result = cls(
            messages=messages,
            description=description,
        )

        get_prompt_result.additional_properties = d
        return get_prompt_result

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
