from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.api_key_change_role import APIKeyChangeRole
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.api_key_limits import APIKeyLimits


T = TypeVar("T", bound="APIKeyChange")


@_attrs_define
class APIKeyChange:
    """
    Attributes:
        expires_at (datetime.datetime | Unset): When the key expires, at most 5 years from now.
        groups (list[str] | Unset): Replaces all groups of the principal; [] removes them.
        limits (APIKeyLimits | Unset):
        note (str | Unset): What the key is for.
        owner (str | Unset): The person or team behind the key.
        role (APIKeyChangeRole | Unset): Replaces the scopes.
        scopes (list[str] | Unset): Replace the role.
        tools (list[str] | Unset): Replaces all patterns of tools; [] removes them, so that the key can call every tool
            that its scopes allow.
    """

    expires_at: datetime.datetime | Unset = UNSET
    groups: list[str] | Unset = UNSET
    limits: APIKeyLimits | Unset = UNSET
    note: str | Unset = UNSET
    owner: str | Unset = UNSET
    role: APIKeyChangeRole | Unset = UNSET
    scopes: list[str] | Unset = UNSET
    tools: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.api_key_limits import APIKeyLimits  # noqa: PLC0415

        expires_at: str | Unset = UNSET
        if not isinstance(self.expires_at, Unset):
            expires_at = self.expires_at.isoformat()

        groups: list[str] | Unset = UNSET
        if not isinstance(self.groups, Unset):
            groups = self.groups

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        note = self.note

        owner = self.owner

        role: str | Unset = UNSET
        if not isinstance(self.role, Unset):
            role = self.role.value

        scopes: list[str] | Unset = UNSET
        if not isinstance(self.scopes, Unset):
            scopes = self.scopes

        tools: list[str] | Unset = UNSET
        if not isinstance(self.tools, Unset):
            tools = self.tools

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if groups is not UNSET:
            field_dict["groups"] = groups
        if limits is not UNSET:
            field_dict["limits"] = limits
        if note is not UNSET:
            field_dict["note"] = note
        if owner is not UNSET:
            field_dict["owner"] = owner
        if role is not UNSET:
            field_dict["role"] = role
        if scopes is not UNSET:
            field_dict["scopes"] = scopes
        if tools is not UNSET:
            field_dict["tools"] = tools

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.api_key_limits import APIKeyLimits  # noqa: PLC0415

        d = dict(src_dict)
        _expires_at = d.pop("expires_at", UNSET)
        expires_at: datetime.datetime | Unset
        if isinstance(_expires_at, Unset):
            expires_at = UNSET
        else:
            expires_at = datetime.datetime.fromisoformat(_expires_at)

        groups = cast(list[str], d.pop("groups", UNSET))

        _limits = d.pop("limits", UNSET)
        limits: APIKeyLimits | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = APIKeyLimits.from_dict(_limits)

        note = d.pop("note", UNSET)

        owner = d.pop("owner", UNSET)

        _role = d.pop("role", UNSET)
        role: APIKeyChangeRole | Unset
        if isinstance(_role, Unset):
            role = UNSET
        else:
            role = APIKeyChangeRole(_role)

        scopes = cast(list[str], d.pop("scopes", UNSET))

        tools = cast(list[str], d.pop("tools", UNSET))

        api_key_change = cls(
            expires_at=expires_at,
            groups=groups,
            limits=limits,
            note=note,
            owner=owner,
            role=role,
            scopes=scopes,
            tools=tools,
        )

        api_key_change.additional_properties = d
        return api_key_change

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
