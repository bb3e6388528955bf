from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.server_resources_resources_item import ServerResourcesResourcesItem


T = TypeVar("T", bound="ServerResources")


@_attrs_define
class ServerResources:
    """The resources of one server, each exactly as the server sent it.

    Attributes:
        resources (list[ServerResourcesResourcesItem]): The resources of one server, each exactly as the server sent it.
    """

    resources: list[ServerResourcesResourcesItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.server_resources_resources_item import ServerResourcesResourcesItem  # noqa: PLC0415

        resources = []
        for resources_item_data in self.resources:
            resources_item = resources_item_data.to_dict()
            resources.append(resources_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "resources": resources,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.server_resources_resources_item import ServerResourcesResourcesItem  # noqa: PLC0415

        d = dict(src_dict)
        resources = []
        _resources = d.pop("resources")
        for resources_item_data in _resources:
            resources_item = ServerResourcesResourcesItem.from_dict(resources_item_data)

            resources.append(resources_item)

        server_resources = cls(
            resources=resources,
        )

        server_resources.additional_properties = d
        return server_resources

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
