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
        as_ (SettleRequestAs): done: it has run. failed: it has not run and will not run. run-again: run it once more.
        reason (str): The reason. At most its first 1000 bytes are stored.
    """

    as_: SettleRequestAs
    reason: str

    def to_dict(self) -> dict[str, Any]:
        as_ = self.as_.value

        reason = self.reason

        field_dict: dict[str, Any] = {}

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

        return settle_request
