from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="ToolSwitch")


@_attrs_define
class ToolSwitch:
    """
    Attributes:
        at (datetime.datetime): When it was changed.
        enabled (bool): Whether the tool can be called.
        name (str): The name of the tool.
        server (str): The id of the server.
        by (str | Unset): The principal that changed it.
        reason (str | Unset): The reason that it is disabled; callers see it.
    """

    at: datetime.datetime
    enabled: bool
    name: str
    server: str
    by: str | Unset = UNSET
    reason: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        enabled = self.enabled

        name = self.name

        server = self.server

        by = self.by

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "enabled": enabled,
                "name": name,
                "server": server,
            }
        )
        if by is not UNSET:
            field_dict["by"] = by
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        enabled = d.pop("enabled")

        name = d.pop("name")

        server = d.pop("server")

        by = d.pop("by", UNSET)

        reason = d.pop("reason", UNSET)

        tool_switch = cls(
            at=at,
            enabled=enabled,
            name=name,
            server=server,
            by=by,
            reason=reason,
        )

        tool_switch.additional_properties = d
        return tool_switch

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
