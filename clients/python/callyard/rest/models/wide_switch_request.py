from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="WideSwitchRequest")


@_attrs_define
class WideSwitchRequest:
    """
    Attributes:
        enabled (bool): false disables the tools. true undoes what was disabled with the same server, tool and set.
        reason (str | Unset): The reason that they are disabled; callers see it.
        server (str | Unset): A pattern of servers: * stands for any characters, ? for one. Absent: every server.
        set_ (str | Unset): Only tools of this set.
        tool (str | Unset): A pattern of tools. Absent: every tool.
    """

    enabled: bool
    reason: str | Unset = UNSET
    server: str | Unset = UNSET
    set_: str | Unset = UNSET
    tool: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        enabled = self.enabled

        reason = self.reason

        server = self.server

        set_ = self.set_

        tool = self.tool

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "enabled": enabled,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason
        if server is not UNSET:
            field_dict["server"] = server
        if set_ is not UNSET:
            field_dict["set"] = set_
        if tool is not UNSET:
            field_dict["tool"] = tool

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        enabled = d.pop("enabled")

        reason = d.pop("reason", UNSET)

        server = d.pop("server", UNSET)

        set_ = d.pop("set", UNSET)

        tool = d.pop("tool", UNSET)

        wide_switch_request = cls(
            enabled=enabled,
            reason=reason,
            server=server,
            set_=set_,
            tool=tool,
        )

        return wide_switch_request
