from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="DisabledTools")


@_attrs_define
class DisabledTools:
    """
    Attributes:
        reason (str | Unset): The reason that they are disabled; callers see it.
        server (str | Unset): A server id or, if wide is true, a pattern of server ids.
        set_ (str | Unset): Only tools of this set.
        tool (str | Unset): A tool name or, if wide is true, a pattern of tool names.
        wide (bool | Unset): Whether server and tool are patterns.
    """

    reason: str | Unset = UNSET
    server: str | Unset = UNSET
    set_: str | Unset = UNSET
    tool: str | Unset = UNSET
    wide: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        reason = self.reason

        server = self.server

        set_ = self.set_

        tool = self.tool

        wide = self.wide

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if reason is not UNSET:
            field_dict["reason"] = reason
        if server is not UNSET:
            field_dict["server"] = server
        if set_ is not UNSET:
            field_dict["set"] = set_
        if tool is not UNSET:
            field_dict["tool"] = tool
        if wide is not UNSET:
            field_dict["wide"] = wide

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reason = d.pop("reason", UNSET)

        server = d.pop("server", UNSET)

        set_ = d.pop("set", UNSET)

        tool = d.pop("tool", UNSET)

        wide = d.pop("wide", UNSET)

        disabled_tools = cls(
            reason=reason,
            server=server,
            set_=set_,
            tool=tool,
            wide=wide,
        )

        disabled_tools.additional_properties = d
        return disabled_tools

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
