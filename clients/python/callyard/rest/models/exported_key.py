from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.exported_key_origin import ExportedKeyOrigin
from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="ExportedKey")


@_attrs_define
class ExportedKey:
    """
    Attributes:
        id (str): The id of the key.
        name (str): The name of the principal that uses the key.
        origin (ExportedKeyOrigin): api: created with POST /keys. configuration: an entry of front_door.keys.
        scopes (list[str]): The scopes of the key, those of its role included.
        expires_at (datetime.datetime | Unset): When the key expires; absent if it never does.
        groups (list[str] | Unset): The groups of the principal, by which policies select callers.
        note (str | Unset): What the key is for.
        owner (str | Unset): The person or team behind the key.
        tenant (str | Unset): The tenant of the principal; absent for the default one.
        tools (list[str] | Unset): Patterns of the tools that the key can call; absent: every tool that its scopes
            allow.
    """

    id: str
    name: str
    origin: ExportedKeyOrigin
    scopes: list[str]
    expires_at: datetime.datetime | Unset = UNSET
    groups: list[str] | Unset = UNSET
    note: str | Unset = UNSET
    owner: str | Unset = UNSET
    tenant: str | Unset = UNSET
    tools: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        name = self.name

        origin = self.origin.value

        scopes = self.scopes

        expires_at: str | Unset = UNSET
        if not isinstance(self.expires_at, Unset):
            expires_at = self.expires_at.isoformat()

        groups: list[str] | Unset = UNSET
        if not isinstance(self.groups, Unset):
            groups = self.groups

        note = self.note

        owner = self.owner

        tenant = self.tenant

        tools: list[str] | Unset = UNSET
        if not isinstance(self.tools, Unset):
            tools = self.tools

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "origin": origin,
                "scopes": scopes,
            }
        )
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if groups is not UNSET:
            field_dict["groups"] = groups
        if note is not UNSET:
            field_dict["note"] = note
        if owner is not UNSET:
            field_dict["owner"] = owner
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if tools is not UNSET:
            field_dict["tools"] = tools

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        origin = ExportedKeyOrigin(d.pop("origin"))

        scopes = cast(list[str], d.pop("scopes"))

        _expires_at = d.pop("expires_at", UNSET)
        expires_at: datetime.datetime | Unset
        if isinstance(_expires_at, Unset):
            expires_at = UNSET
        else:
            expires_at = datetime.datetime.fromisoformat(_expires_at)

        groups = cast(list[str], d.pop("groups", UNSET))

        note = d.pop("note", UNSET)

        owner = d.pop("owner", UNSET)

        tenant = d.pop("tenant", UNSET)

        tools = cast(list[str], d.pop("tools", UNSET))

        exported_key = cls(
            id=id,
            name=name,
            origin=origin,
            scopes=scopes,
            expires_at=expires_at,
            groups=groups,
            note=note,
            owner=owner,
            tenant=tenant,
            tools=tools,
        )

        exported_key.additional_properties = d
        return exported_key

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
