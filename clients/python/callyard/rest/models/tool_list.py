from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.quarantined_tool import QuarantinedTool
    from ..models.tool_item import ToolItem


T = TypeVar("T", bound="ToolList")


@_attrs_define
class ToolList:
    """
    Attributes:
        tools (list[ToolItem]): The tools of this page, by server and name.
        next_cursor (str | Unset): The cursor of the next page; absent on the last page.
        quarantined (list[QuarantinedTool] | Unset): Tools that are missing from this page because nobody has accepted
            their definition; see GET /servers/{id}/pins.
        unknown (list[str] | Unset): Servers whose tools are currently unknown and therefore missing.
    """

    tools: list[ToolItem]
    next_cursor: str | Unset = UNSET
    quarantined: list[QuarantinedTool] | Unset = UNSET
    unknown: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.quarantined_tool import QuarantinedTool  # noqa: PLC0415
        from ..models.tool_item import ToolItem  # noqa: PLC0415

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        next_cursor = self.next_cursor

        quarantined: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.quarantined, Unset):
            quarantined = []
            for quarantined_item_data in self.quarantined:
                quarantined_item = quarantined_item_data.to_dict()
                quarantined.append(quarantined_item)

        unknown: list[str] | Unset = UNSET
        if not isinstance(self.unknown, Unset):
            unknown = self.unknown

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tools": tools,
            }
        )
        if next_cursor is not UNSET:
            field_dict["next_cursor"] = next_cursor
        if quarantined is not UNSET:
            field_dict["quarantined"] = quarantined
        if unknown is not UNSET:
            field_dict["unknown"] = unknown

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.quarantined_tool import QuarantinedTool  # noqa: PLC0415
        from ..models.tool_item import ToolItem  # noqa: PLC0415

        d = dict(src_dict)
        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = ToolItem.from_dict(tools_item_data)

            tools.append(tools_item)

        next_cursor = d.pop("next_cursor", UNSET)

        _quarantined = d.pop("quarantined", UNSET)
        quarantined: list[QuarantinedTool] | Unset = UNSET
        if _quarantined is not UNSET:
            quarantined = []
            for quarantined_item_data in _quarantined:
                quarantined_item = QuarantinedTool.from_dict(quarantined_item_data)

                quarantined.append(quarantined_item)

        unknown = cast(list[str], d.pop("unknown", UNSET))

        tool_list = cls(
            tools=tools,
            next_cursor=next_cursor,
            quarantined=quarantined,
            unknown=unknown,
        )

        tool_list.additional_properties = d
        return tool_list

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
