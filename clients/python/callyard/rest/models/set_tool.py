from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="SetTool")


@_attrs_define
class SetTool:
    """
    Attributes:
        enabled (bool): False if an operator disabled the tool; its calls then return 403.
        name (str): The name in the set.
        server (str): The id of the server.
        tool (str): The name of the tool at its server.
        offline (str | Unset): The reason that no worker can run it now.
        reason (str | Unset): The reason that it is disabled.
    """

    enabled: bool
    name: str
    server: str
    tool: str
    offline: str | Unset = UNSET
    reason: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        enabled = self.enabled

        name = self.name

        server = self.server

        tool = self.tool

        offline = self.offline

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "enabled": enabled,
                "name": name,
                "server": server,
                "tool": tool,
            }
        )
        if offline is not UNSET:
            field_dict["offline"] = offline
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        enabled = d.pop("enabled")

        name = d.pop("name")

        server = d.pop("server")

        tool = d.pop("tool")

        offline = d.pop("offline", UNSET)

        reason = d.pop("reason", UNSET)

        set_tool = cls(
            enabled=enabled,
            name=name,
            server=server,
            tool=tool,
            offline=offline,
            reason=reason,
        )

        set_tool.additional_properties = d
        return set_tool

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
