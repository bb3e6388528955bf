from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.conversion_calls_item import ConversionCallsItem
    from ..models.conversion_note import ConversionNote
    from ..models.conversion_tools_item import ConversionToolsItem


T = TypeVar("T", bound="Conversion")


@_attrs_define
class Conversion:
    """
    Attributes:
        from_ (str): The format of the request, as in its member from.
        notes (list[ConversionNote]): Each part of the request that is missing from the answer or differs there. Beyond
            1,000, the last note gives the number of the others.
        to (str): The format of the answer, as in the member to of the request.
        calls (list[ConversionCallsItem] | Unset): The converted calls: tool_calls of a message, items of output,
            content blocks, parts, or for mcp requests; absent if the request has no calls.
        tools (list[ConversionToolsItem] | Unset): The converted tools, as the tools member of a request to the
            provider, or for mcp the tools of tools/list; absent if the request has no tools.
    """

    from_: str
    notes: list[ConversionNote]
    to: str
    calls: list[ConversionCallsItem] | Unset = UNSET
    tools: list[ConversionToolsItem] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.conversion_calls_item import ConversionCallsItem  # noqa: PLC0415
        from ..models.conversion_note import ConversionNote  # noqa: PLC0415
        from ..models.conversion_tools_item import ConversionToolsItem  # noqa: PLC0415

        from_ = self.from_

        notes = []
        for notes_item_data in self.notes:
            notes_item = notes_item_data.to_dict()
            notes.append(notes_item)

        to = self.to

        calls: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.calls, Unset):
            calls = []
            for calls_item_data in self.calls:
                calls_item = calls_item_data.to_dict()
                calls.append(calls_item)

        tools: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.tools, Unset):
            tools = []
            for tools_item_data in self.tools:
                tools_item = tools_item_data.to_dict()
                tools.append(tools_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "from": from_,
                "notes": notes,
                "to": to,
            }
        )
        if calls is not UNSET:
            field_dict["calls"] = calls
        if tools is not UNSET:
            field_dict["tools"] = tools

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.conversion_calls_item import ConversionCallsItem  # noqa: PLC0415
        from ..models.conversion_note import ConversionNote  # noqa: PLC0415
        from ..models.conversion_tools_item import ConversionToolsItem  # noqa: PLC0415

        d = dict(src_dict)
        from_ = d.pop("from")

        notes = []
        _notes = d.pop("notes")
        for notes_item_data in _notes:
            notes_item = ConversionNote.from_dict(notes_item_data)

            notes.append(notes_item)

        to = d.pop("to")

        _calls = d.pop("calls", UNSET)
        calls: list[ConversionCallsItem] | Unset = UNSET
        if _calls is not UNSET:
            calls = []
            for calls_item_data in _calls:
                calls_item = ConversionCallsItem.from_dict(calls_item_data)

                calls.append(calls_item)

        _tools = d.pop("tools", UNSET)
        tools: list[ConversionToolsItem] | Unset = UNSET
        if _tools is not UNSET:
            tools = []
            for tools_item_data in _tools:
                tools_item = ConversionToolsItem.from_dict(tools_item_data)

                tools.append(tools_item)

        conversion = cls(
            from_=from_,
            notes=notes,
            to=to,
            calls=calls,
            tools=tools,
        )

        conversion.additional_properties = d
        return conversion

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
