from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.server_resource_templates_resource_templates_item import ServerResourceTemplatesResourceTemplatesItem


T = TypeVar("T", bound="ServerResourceTemplates")


@_attrs_define
class ServerResourceTemplates:
    """The resource templates of one server, each exactly as the server sent it.

    Attributes:
        resource_templates (list[ServerResourceTemplatesResourceTemplatesItem]): The resource templates of one server,
            each exactly as the server sent it.
    """

    resource_templates: list[ServerResourceTemplatesResourceTemplatesItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.server_resource_templates_resource_templates_item import (
            ServerResourceTemplatesResourceTemplatesItem,
        )  # noqa: PLC0415

        resource_templates = []
        for resource_templates_item_data in self.resource_templates:
            resource_templates_item = resource_templates_item_data.to_dict()
            resource_templates.append(resource_templates_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "resourceTemplates": resource_templates,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.server_resource_templates_resource_templates_item import (
            ServerResourceTemplatesResourceTemplatesItem,
        )  # noqa: PLC0415

        d = dict(src_dict)
        resource_templates = []
        _resource_templates = d.pop("resourceTemplates")
        for resource_templates_item_data in _resource_templates:
            resource_templates_item = ServerResourceTemplatesResourceTemplatesItem.from_dict(
                resource_templates_item_data
            )

            resource_templates.append(resource_templates_item)

        server_resource_templates = cls(
            resource_templates=resource_templates,
        )

        server_resource_templates.additional_properties = d
        return server_resource_templates

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
