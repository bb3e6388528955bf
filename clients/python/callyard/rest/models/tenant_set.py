from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.tool_set import ToolSet


T = TypeVar("T", bound="TenantSet")


@_attrs_define
class TenantSet:
    """
    Attributes:
        set_ (ToolSet):
        tenant (str): The tenant that owns the set.
    """

    set_: ToolSet
    tenant: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        set_ = self.set_.to_dict()

        tenant = self.tenant

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "set": set_,
                "tenant": tenant,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        d = dict(src_dict)
        set_ = ToolSet.from_dict(d.pop("set"))

        tenant = d.pop("tenant")

        tenant_set = cls(
            set_=set_,
            tenant=tenant,
        )

        tenant_set.additional_properties = d
        return tenant_set

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
