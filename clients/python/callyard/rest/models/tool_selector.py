from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="ToolSelector")


@_attrs_define
class ToolSelector:
    """
    Attributes:
        destructive (bool | Unset): Only tools whose hint destructiveHint has this value. A tool without the hint counts
            as destructive unless it is read-only.
        idempotent (bool | Unset): Only tools whose hint idempotentHint has this value.
        max_risk_level (int | Unset): The highest risk level of the tool's server, 0 for any; a server without a level
            has level 1.
        open_world (bool | Unset): Only tools whose hint openWorldHint has this value. Without the hint, the value is
            true.
        read_only (bool | Unset): Only tools whose hint readOnlyHint has this value.
        server (str | Unset): A pattern of server ids: * stands for any characters, ? for one.
        set_ (str | Unset): Only tools of this set.
        tags (list[str] | Unset): Tags that the tool must have, all of them.
        tool (str | Unset): A pattern of tool names.
    """

    destructive: bool | Unset = UNSET
    idempotent: bool | Unset = UNSET
    max_risk_level: int | Unset = UNSET
    open_world: bool | Unset = UNSET
    read_only: bool | Unset = UNSET
    server: str | Unset = UNSET
    set_: str | Unset = UNSET
    tags: list[str] | Unset = UNSET
    tool: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        destructive = self.destructive

        idempotent = self.idempotent

        max_risk_level = self.max_risk_level

        open_world = self.open_world

        read_only = self.read_only

        server = self.server

        set_ = self.set_

        tags: list[str] | Unset = UNSET
        if not isinstance(self.tags, Unset):
            tags = self.tags

        tool = self.tool

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if destructive is not UNSET:
            field_dict["destructive"] = destructive
        if idempotent is not UNSET:
            field_dict["idempotent"] = idempotent
        if max_risk_level is not UNSET:
            field_dict["max_risk_level"] = max_risk_level
        if open_world is not UNSET:
            field_dict["open_world"] = open_world
        if read_only is not UNSET:
            field_dict["read_only"] = read_only
        if server is not UNSET:
            field_dict["server"] = server
        if set_ is not UNSET:
            field_dict["set"] = set_
        if tags is not UNSET:
            field_dict["tags"] = tags
        if tool is not UNSET:
            field_dict["tool"] = tool

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        destructive = d.pop("destructive", UNSET)

        idempotent = d.pop("idempotent", UNSET)

        max_risk_level = d.pop("max_risk_level", UNSET)

        open_world = d.pop("open_world", UNSET)

        read_only = d.pop("read_only", UNSET)

        server = d.pop("server", UNSET)

        set_ = d.pop("set", UNSET)

        tags = cast(list[str], d.pop("tags", UNSET))

        tool = d.pop("tool", UNSET)

        tool_selector = cls(
            destructive=destructive,
            idempotent=idempotent,
            max_risk_level=max_risk_level,
            open_world=open_world,
            read_only=read_only,
            server=server,
            set_=set_,
            tags=tags,
            tool=tool,
        )

        tool_selector.additional_properties = d
        return tool_selector

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
