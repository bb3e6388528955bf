from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="TenantErasure")


@_attrs_define
class TenantErasure:
    """
    Attributes:
        batches (int): The batches that were deleted.
        canceled (int): The single durable calls that were canceled.
        credentials (int): The credentials of its people at MCP servers that were removed.
        encrypted (bool): Whether the payloads of the tenant were encrypted, so that nobody can read them any more.
            Without encryption.key_file they are not encrypted, and are deleted when their retention ends.
        found (bool): Whether Callyard had data of a tenant with this id. If false, check the id.
        held (int): The held calls that were withdrawn.
        id (str): The id of the tenant.
        keys (int): The API keys that were revoked.
        permissions (int): The standing permissions that were removed.
        sets (int): The sets of tools that were removed.
    """

    batches: int
    canceled: int
    credentials: int
    encrypted: bool
    found: bool
    held: int
    id: str
    keys: int
    permissions: int
    sets: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        batches = self.batches

        canceled = self.canceled

        credentials = self.credentials

        encrypted = self.encrypted

        found = self.found

        held = self.held

        id = self.id

        keys = self.keys

        permissions = self.permissions

        sets = self.sets

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "batches": batches,
                "canceled": canceled,
                "credentials": credentials,
                "encrypted": encrypted,
                "found": found,
                "held": held,
                "id": id,
                "keys": keys,
                "permissions": permissions,
                "sets": sets,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        batches = d.pop("batches")

        canceled = d.pop("canceled")

        credentials = d.pop("credentials")

        encrypted = d.pop("encrypted")

        found = d.pop("found")

        held = d.pop("held")

        id = d.pop("id")

        keys = d.pop("keys")

        permissions = d.pop("permissions")

        sets = d.pop("sets")

        tenant_erasure = cls(
            batches=batches,
            canceled=canceled,
            credentials=credentials,
            encrypted=encrypted,
            found=found,
            held=held,
            id=id,
            keys=keys,
            permissions=permissions,
            sets=sets,
        )

        tenant_erasure.additional_properties = d
        return tenant_erasure

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
