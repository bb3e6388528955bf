from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.fleet_change_type import FleetChangeType
from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="FleetChange")


@_attrs_define
class FleetChange:
    """
    Attributes:
        at (datetime.datetime): The time of the change.
        type_ (FleetChangeType): The kind of the change.
        actor (str | Unset): Who enabled, disabled or stored it.
        reason (str | Unset): The reason that it is disabled or offline.
        server (str | Unset): The server, for the types that begin with tool or server.
        set_ (str | Unset): The set of tools, for the types that begin with set.
        tenant (str | Unset): The tenant that owns the set; default for one of the installation.
        tool (str | Unset): The tool, for the types that begin with tool.
    """

    at: datetime.datetime
    type_: FleetChangeType
    actor: str | Unset = UNSET
    reason: str | Unset = UNSET
    server: str | Unset = UNSET
    set_: str | Unset = UNSET
    tenant: str | Unset = UNSET
    tool: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        type_ = self.type_.value

        actor = self.actor

        reason = self.reason

        server = self.server

        set_ = self.set_

        tenant = self.tenant

        tool = self.tool

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "type": type_,
            }
        )
        if actor is not UNSET:
            field_dict["actor"] = actor
        if reason is not UNSET:
            field_dict["reason"] = reason
        if server is not UNSET:
            field_dict["server"] = server
        if set_ is not UNSET:
            field_dict["set"] = set_
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if tool is not UNSET:
            field_dict["tool"] = tool

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        type_ = FleetChangeType(d.pop("type"))

        actor = d.pop("actor", UNSET)

        reason = d.pop("reason", UNSET)

        server = d.pop("server", UNSET)

        set_ = d.pop("set", UNSET)

        tenant = d.pop("tenant", UNSET)

        tool = d.pop("tool", UNSET)

        fleet_change = cls(
            at=at,
            type_=type_,
            actor=actor,
            reason=reason,
            server=server,
            set_=set_,
            tenant=tenant,
            tool=tool,
        )

        fleet_change.additional_properties = d
        return fleet_change

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
