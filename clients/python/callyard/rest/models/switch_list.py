from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.switch import Switch


T = TypeVar("T", bound="SwitchList")


@_attrs_define
class SwitchList:
    """
    Attributes:
        switches (list[Switch]): The switches, by server, tool and set.
    """

    switches: list[Switch]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.switch import Switch  # noqa: PLC0415

        switches = []
        for switches_item_data in self.switches:
            switches_item = switches_item_data.to_dict()
            switches.append(switches_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "switches": switches,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.switch import Switch  # noqa: PLC0415

        d = dict(src_dict)
        switches = []
        _switches = d.pop("switches")
        for switches_item_data in _switches:
            switches_item = Switch.from_dict(switches_item_data)

            switches.append(switches_item)

        switch_list = cls(
            switches=switches,
        )

        switch_list.additional_properties = d
        return switch_list

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
