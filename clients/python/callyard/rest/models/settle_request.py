from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.settle_request_as import SettleRequestAs


T = TypeVar("T", bound="SettleRequest")


@_attrs_define
class SettleRequest:
    """
    Attributes:
        as_ (SettleRequestAs): done: it has run. failed: it has not, and shall not. run-again: it shall run once more.
        reason (str): Why; it is kept.
    """

    as_: SettleRequestAs
    reason: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        as_ = self.as_.value

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "as": as_,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        as_ = SettleRequestAs(d.pop("as"))

        reason = d.pop("reason")

        settle_request = cls(
            as_=as_,
            reason=reason,
        )

        settle_request.additional_properties = d
        return settle_request

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
