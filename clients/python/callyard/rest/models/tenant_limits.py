from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="TenantLimits")


@_attrs_define
class TenantLimits:
    """
    Attributes:
        weight (int): The weight of the tenant while calls of several tenants wait for slots, or several tenants borrow
            calls in flight.
        borrow (int | Unset): The number of calls in flight that it may have in addition to nominal, while other tenants
            do not use theirs. Absent: its calls in flight are not limited.
        nominal (int | Unset): The guaranteed number of calls in flight. Absent: its calls in flight are not limited.
    """

    weight: int
    borrow: int | Unset = UNSET
    nominal: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        weight = self.weight

        borrow = self.borrow

        nominal = self.nominal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "weight": weight,
            }
        )
        if borrow is not UNSET:
            field_dict["borrow"] = borrow
        if nominal is not UNSET:
            field_dict["nominal"] = nominal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        weight = d.pop("weight")

        borrow = d.pop("borrow", UNSET)

        nominal = d.pop("nominal", UNSET)

        tenant_limits = cls(
            weight=weight,
            borrow=borrow,
            nominal=nominal,
        )

        tenant_limits.additional_properties = d
        return tenant_limits

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
