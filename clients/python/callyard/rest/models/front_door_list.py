from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.fabric import Fabric
    from ..models.front_door_item import FrontDoorItem


T = TypeVar("T", bound="FrontDoorList")


@_attrs_define
class FrontDoorList:
    """
    Attributes:
        fabric (Fabric):
        front_doors (list[FrontDoorItem]): The answering front door is first, with current counts; the others announced
            theirs about a second ago or less.
    """

    fabric: Fabric
    front_doors: list[FrontDoorItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.fabric import Fabric  # noqa: PLC0415
        from ..models.front_door_item import FrontDoorItem  # noqa: PLC0415

        fabric = self.fabric.to_dict()

        front_doors = []
        for front_doors_item_data in self.front_doors:
            front_doors_item = front_doors_item_data.to_dict()
            front_doors.append(front_doors_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "fabric": fabric,
                "front_doors": front_doors,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.fabric import Fabric  # noqa: PLC0415
        from ..models.front_door_item import FrontDoorItem  # noqa: PLC0415

        d = dict(src_dict)
        fabric = Fabric.from_dict(d.pop("fabric"))

        front_doors = []
        _front_doors = d.pop("front_doors")
        for front_doors_item_data in _front_doors:
            front_doors_item = FrontDoorItem.from_dict(front_doors_item_data)

            front_doors.append(front_doors_item)

        front_door_list = cls(
            fabric=fabric,
            front_doors=front_doors,
        )

        front_door_list.additional_properties = d
        return front_door_list

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
