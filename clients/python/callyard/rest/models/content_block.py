from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.content_block_resource import ContentBlockResource


T = TypeVar("T", bound="ContentBlock")


@_attrs_define
class ContentBlock:
    """A content block of a result, exactly as the MCP server sent it. Its members depend on its type, and it can have
    others.

        Attributes:
            data (str | Unset): The data in Base64, for types image and audio.
            mime_type (str | Unset): The media type of the data or the resource.
            name (str | Unset): The name of the resource.
            resource (ContentBlockResource | Unset): The content of the resource, for type resource.
            text (str | Unset): The text, for type text.
            type_ (str | Unset): text, image, audio, resource, resource_link, or another type of the server.
            uri (str | Unset): The URI of the resource, for type resource_link.
    """

    data: str | Unset = UNSET
    mime_type: str | Unset = UNSET
    name: str | Unset = UNSET
    resource: ContentBlockResource | Unset = UNSET
    text: str | Unset = UNSET
    type_: str | Unset = UNSET
    uri: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.content_block_resource import ContentBlockResource  # noqa: PLC0415

        data = self.data

        mime_type = self.mime_type

        name = self.name

        resource: dict[str, Any] | Unset = UNSET
        if not isinstance(self.resource, Unset):
            resource = self.resource.to_dict()

        text = self.text

        type_ = self.type_

        uri = self.uri

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if data is not UNSET:
            field_dict["data"] = data
        if mime_type is not UNSET:
            field_dict["mimeType"] = mime_type
        if name is not UNSET:
            field_dict["name"] = name
        if resource is not UNSET:
            field_dict["resource"] = resource
        if text is not UNSET:
            field_dict["text"] = text
        if type_ is not UNSET:
            field_dict["type"] = type_
        if uri is not UNSET:
            field_dict["uri"] = uri

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.content_block_resource import ContentBlockResource  # noqa: PLC0415

        d = dict(src_dict)
        data = d.pop("data", UNSET)

        mime_type = d.pop("mimeType", UNSET)

        name = d.pop("name", UNSET)

        _resource = d.pop("resource", UNSET)
        resource: ContentBlockResource | Unset
        if isinstance(_resource, Unset):
            resource = UNSET
        else:
            resource = ContentBlockResource.from_dict(_resource)

        text = d.pop("text", UNSET)

        type_ = d.pop("type", UNSET)

        uri = d.pop("uri", UNSET)

        content_block = cls(
            data=data,
            mime_type=mime_type,
            name=name,
            resource=resource,
            text=text,
            type_=type_,
            uri=uri,
        )

        content_block.additional_properties = d
        return content_block

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
