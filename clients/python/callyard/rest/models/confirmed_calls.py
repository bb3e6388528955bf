from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.refused_call import RefusedCall


T = TypeVar("T", bound="ConfirmedCalls")


@_attrs_define
class ConfirmedCalls:
    """
    Attributes:
        accepted (int): The number of calls to which the answer was applied.
        refused (list[RefusedCall]): The calls to which the answer was not applied.
    """

    accepted: int
    refused: list[RefusedCall]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.refused_call import RefusedCall  # noqa: PLC0415

        accepted = self.accepted

        refused = []
        for refused_item_data in self.refused:
            refused_item = refused_item_data.to_dict()
            refused.append(refused_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accepted": accepted,
                "refused": refused,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.refused_call import RefusedCall  # noqa: PLC0415

        d = dict(src_dict)
        accepted = d.pop("accepted")

        refused = []
        _refused = d.pop("refused")
        for refused_item_data in _refused:
            refused_item = RefusedCall.from_dict(refused_item_data)

            refused.append(refused_item)

        confirmed_calls = cls(
            accepted=accepted,
            refused=refused,
        )

        confirmed_calls.additional_properties = d
        return confirmed_calls

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
