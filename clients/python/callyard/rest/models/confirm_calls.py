from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="ConfirmCalls")


@_attrs_define
class ConfirmCalls:
    """
    Attributes:
        calls (list[str]): The ids of the calls to confirm or reject. Other calls are not affected.
        confirm (bool): true confirms the calls, which then run; false rejects them.
    """

    calls: list[str]
    confirm: bool

    def to_dict(self) -> dict[str, Any]:
        calls = self.calls

        confirm = self.confirm

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "calls": calls,
                "confirm": confirm,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        calls = cast(list[str], d.pop("calls"))

        confirm = d.pop("confirm")

        confirm_calls = cls(
            calls=calls,
            confirm=confirm,
        )

        return confirm_calls
