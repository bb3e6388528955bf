from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.own_tool_call_arguments import OwnToolCallArguments
    from ..models.own_tool_call_call import OwnToolCallCall


T = TypeVar("T", bound="OwnToolCall")


@_attrs_define
class OwnToolCall:
    """
    Attributes:
        index (int): The position among all calls of the message.
        name (str): The name of the tool, as in the parameter own.
        arguments (OwnToolCallArguments | Unset): The arguments; absent if they are not a JSON object.
        call (OwnToolCallCall | Unset): The call, exactly as it is in the message; absent for calls that were extracted
            from a text.
        id (str | Unset): The provider's id of the call.
    """

    index: int
    name: str
    arguments: OwnToolCallArguments | Unset = UNSET
    call: OwnToolCallCall | Unset = UNSET
    id: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.own_tool_call_arguments import OwnToolCallArguments  # noqa: PLC0415
        from ..models.own_tool_call_call import OwnToolCallCall  # noqa: PLC0415

        index = self.index

        name = self.name

        arguments: dict[str, Any] | Unset = UNSET
        if not isinstance(self.arguments, Unset):
            arguments = self.arguments.to_dict()

        call: dict[str, Any] | Unset = UNSET
        if not isinstance(self.call, Unset):
            call = self.call.to_dict()

        id = self.id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "index": index,
                "name": name,
            }
        )
        if arguments is not UNSET:
            field_dict["arguments"] = arguments
        if call is not UNSET:
            field_dict["call"] = call
        if id is not UNSET:
            field_dict["id"] = id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.own_tool_call_arguments import OwnToolCallArguments  # noqa: PLC0415
        from ..models.own_tool_call_call import OwnToolCallCall  # noqa: PLC0415

        d = dict(src_dict)
        index = d.pop("index")

        name = d.pop("name")

        _arguments = d.pop("arguments", UNSET)
        arguments: OwnToolCallArguments | Unset
        if isinstance(_arguments, Unset):
            arguments = UNSET
        else:
            arguments = OwnToolCallArguments.from_dict(_arguments)

        _call = d.pop("call", UNSET)
        call: OwnToolCallCall | Unset
        if isinstance(_call, Unset):
            call = UNSET
        else:
            call = OwnToolCallCall.from_dict(_call)

        id = d.pop("id", UNSET)

        own_tool_call = cls(
            index=index,
            name=name,
            arguments=arguments,
            call=call,
            id=id,
        )

        own_tool_call.additional_properties = d
        return own_tool_call

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
