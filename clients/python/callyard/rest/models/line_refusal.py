from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="LineRefusal")


@_attrs_define
class LineRefusal:
    """
    Attributes:
        detail (str): The fault and the fix.
        index (int): The position of the line in the batch, from 0.
        custom_id (str | Unset): The caller's own id for the call, if it has one.
    """

    detail: str
    index: int
    custom_id: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        detail = self.detail

        index = self.index

        custom_id = self.custom_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "detail": detail,
                "index": index,
            }
        )
        if custom_id is not UNSET:
            field_dict["custom_id"] = custom_id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        detail = d.pop("detail")

        index = d.pop("index")

        custom_id = d.pop("custom_id", UNSET)

        line_refusal = cls(
            detail=detail,
            index=index,
            custom_id=custom_id,
        )

        line_refusal.additional_properties = d
        return line_refusal

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
