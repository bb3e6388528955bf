from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="APIKeyLimits")


@_attrs_define
class APIKeyLimits:
    """
    Attributes:
        burst (int | Unset): The number of calls that may arrive at once; absent: the calls of one second at this rate.
        in_flight (int | Unset): The maximum number of concurrent calls; absent: no limit.
        rate (float | Unset): The maximum number of calls per second; absent: no limit.
    """

    burst: int | Unset = UNSET
    in_flight: int | Unset = UNSET
    rate: float | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        burst = self.burst

        in_flight = self.in_flight

        rate = self.rate

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if burst is not UNSET:
            field_dict["burst"] = burst
        if in_flight is not UNSET:
            field_dict["in_flight"] = in_flight
        if rate is not UNSET:
            field_dict["rate"] = rate

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        burst = d.pop("burst", UNSET)

        in_flight = d.pop("in_flight", UNSET)

        rate = d.pop("rate", UNSET)

        api_key_limits = cls(
            burst=burst,
            in_flight=in_flight,
            rate=rate,
        )

        api_key_limits.additional_properties = d
        return api_key_limits

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
