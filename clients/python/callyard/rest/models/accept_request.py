from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.accept_tool import AcceptTool


T = TypeVar("T", bound="AcceptRequest")


@_attrs_define
class AcceptRequest:
    """
    Attributes:
        tools (list[AcceptTool]): The definitions to accept: all of them, or none.
    """

    tools: list[AcceptTool]

    def to_dict(self) -> dict[str, Any]:
        from ..models.accept_tool import AcceptTool  # noqa: PLC0415

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "tools": tools,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.accept_tool import AcceptTool  # noqa: PLC0415

        d = dict(src_dict)
        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = AcceptTool.from_dict(tools_item_data)

            tools.append(tools_item)

        accept_request = cls(
            tools=tools,
        )

        return accept_request
