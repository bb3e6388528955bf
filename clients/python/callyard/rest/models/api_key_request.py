from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.api_key_request_role import APIKeyRequestRole
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.api_key_limits import APIKeyLimits


T = TypeVar("T", bound="APIKeyRequest")


@_attrs_define
class APIKeyRequest:
    """
    Attributes:
        name (str): The name of the principal that uses the key.
        expires_at (datetime.datetime | Unset): When the key expires, at most 5 years from now; absent: in 90 days.
        groups (list[str] | Unset): The groups of the principal, by which policies select callers.
        limits (APIKeyLimits | Unset):
        note (str | Unset): What the key is for.
        owner (str | Unset): The person or team behind the key. Absent: the owner of your credential.
        role (APIKeyRequestRole | Unset): The role, instead of scopes. It cannot have a scope that your own credential
            does not have.
        scopes (list[str] | Unset): Only scopes that your own credential has. Required if role is absent.
        tenant (str | Unset): The tenant of the principal. Absent: your tenant. Only credentials of the default tenant
            can create keys of other tenants.
        tools (list[str] | Unset): Patterns of SERVER/TOOL. Of the tools that the scopes allow, the key can call only
            those that match.
    """

    name: str
    expires_at: datetime.datetime | Unset = UNSET
    groups: list[str] | Unset = UNSET
    limits: APIKeyLimits | Unset = UNSET
    note: str | Unset = UNSET
    owner: str | Unset = UNSET
    role: APIKeyRequestRole | Unset = UNSET
    scopes: list[str] | Unset = UNSET
    tenant: str | Unset = UNSET
    tools: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.api_key_limits import APIKeyLimits  # noqa: PLC0415

        name = self.name

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

        tenant = self.tenant

        tools: list[str] | Unset = UNSET
        if not isinstance(self.tools, Unset):
            tools = self.tools

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
            }
        )
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
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if tools is not UNSET:
            field_dict["tools"] = tools

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.api_key_limits import APIKeyLimits  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

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
        role: APIKeyRequestRole | Unset
        if isinstance(_role, Unset):
            role = UNSET
        else:
            role = APIKeyRequestRole(_role)

        scopes = cast(list[str], d.pop("scopes", UNSET))

        tenant = d.pop("tenant", UNSET)

        tools = cast(list[str], d.pop("tools", UNSET))

        api_key_request = cls(
            name=name,
            expires_at=expires_at,
            groups=groups,
            limits=limits,
            note=note,
            owner=owner,
            role=role,
            scopes=scopes,
            tenant=tenant,
            tools=tools,
        )

        api_key_request.additional_properties = d
        return api_key_request

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
