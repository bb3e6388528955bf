from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="TenantInFlight")


@_attrs_define
class TenantInFlight:
    """
    Attributes:
        borrowed (int): The number of its calls in flight that exceed nominal.
        calls (int): The number of its calls in flight.
        lent (int): The number of calls in flight that other tenants borrow from its nominal number. If several tenants
            lend, borrowed calls are divided in proportion to their unused numbers.
    """

    borrowed: int
    calls: int
    lent: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        borrowed = self.borrowed

        calls = self.calls

        lent = self.lent

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "borrowed": borrowed,
                "calls": calls,
                "lent": lent,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        borrowed = d.pop("borrowed")

        calls = d.pop("calls")

        lent = d.pop("lent")

        tenant_in_flight = cls(
            borrowed=borrowed,
            calls=calls,
            lent=lent,
        )

        tenant_in_flight.additional_properties = d
        return tenant_in_flight

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
