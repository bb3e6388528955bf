from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="PolicyTestPrincipal")


@_attrs_define
class PolicyTestPrincipal:
    """
    Attributes:
        name (str): The name of the principal.
        groups (list[str] | Unset): The groups of the principal.
        owner (str | Unset): The person or team behind the name.
        tenant (str | Unset): The tenant of the principal; the default is the default tenant. The policy of this tenant
            applies too.
    """

    name: str
    groups: list[str] | Unset = UNSET
    owner: str | Unset = UNSET
    tenant: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        groups: list[str] | Unset = UNSET
        if not isinstance(self.groups, Unset):
            groups = self.groups

        owner = self.owner

        tenant = self.tenant

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if groups is not UNSET:
            field_dict["groups"] = groups
        if owner is not UNSET:
            field_dict["owner"] = owner
        if tenant is not UNSET:
            field_dict["tenant"] = tenant

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        groups = cast(list[str], d.pop("groups", UNSET))

        owner = d.pop("owner", UNSET)

        tenant = d.pop("tenant", UNSET)

        policy_test_principal = cls(
            name=name,
            groups=groups,
            owner=owner,
            tenant=tenant,
        )

        return policy_test_principal
