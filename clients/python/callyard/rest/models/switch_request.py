from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="SwitchRequest")


@_attrs_define
class SwitchRequest:
    """
    Attributes:
        enabled (bool): Whether the tool can be called.
        reason (str | Unset): The reason that it is disabled; callers see it.
    """

    enabled: bool
    reason: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        enabled = self.enabled

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "enabled": enabled,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        enabled = d.pop("enabled")

        reason = d.pop("reason", UNSET)

        switch_request = cls(
            enabled=enabled,
            reason=reason,
        )

        return switch_request
