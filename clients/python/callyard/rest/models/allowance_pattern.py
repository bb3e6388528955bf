from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.allowance_value import AllowanceValue


T = TypeVar("T", bound="AllowancePattern")


@_attrs_define
class AllowancePattern:
    """
    Attributes:
        kind (str): The arguments that match: exact, the same arguments; values, the same values at some places; any,
            every argument.
        arguments_digest (str | Unset): For exact: the digest of the arguments. The approver sets it.
        values (list[AllowanceValue] | Unset): For values: the places whose values must be the same.
    """

    kind: str
    arguments_digest: str | Unset = UNSET
    values: list[AllowanceValue] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.allowance_value import AllowanceValue  # noqa: PLC0415

        kind = self.kind

        arguments_digest = self.arguments_digest

        values: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.values, Unset):
            values = []
            for values_item_data in self.values:
                values_item = values_item_data.to_dict()
                values.append(values_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
            }
        )
        if arguments_digest is not UNSET:
            field_dict["arguments_digest"] = arguments_digest
        if values is not UNSET:
            field_dict["values"] = values

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.allowance_value import AllowanceValue  # noqa: PLC0415

        d = dict(src_dict)
        kind = d.pop("kind")

        arguments_digest = d.pop("arguments_digest", UNSET)

        _values = d.pop("values", UNSET)
        values: list[AllowanceValue] | Unset = UNSET
        if _values is not UNSET:
            values = []
            for values_item_data in _values:
                values_item = AllowanceValue.from_dict(values_item_data)

                values.append(values_item)

        allowance_pattern = cls(
            kind=kind,
            arguments_digest=arguments_digest,
            values=values,
        )

        allowance_pattern.additional_properties = d
        return allowance_pattern

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
