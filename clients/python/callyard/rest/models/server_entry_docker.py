from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="ServerEntryDocker")


@_attrs_define
class ServerEntryDocker:
    """The container of a high-risk server.

    Attributes:
        image (str | Unset): The image; required at riskLevel 3.
        network (str | Unset): The network.
        volumes (list[str] | Unset): The mounts, each as HOST:CONTAINER:ro.
    """

    image: str | Unset = UNSET
    network: str | Unset = UNSET
    volumes: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        image = self.image

        network = self.network

        volumes: list[str] | Unset = UNSET
        if not isinstance(self.volumes, Unset):
            volumes = self.volumes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if image is not UNSET:
            field_dict["image"] = image
        if network is not UNSET:
            field_dict["network"] = network
        if volumes is not UNSET:
            field_dict["volumes"] = volumes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        image = d.pop("image", UNSET)

        network = d.pop("network", UNSET)

        volumes = cast(list[str], d.pop("volumes", UNSET))

        server_entry_docker = cls(
            image=image,
            network=network,
            volumes=volumes,
        )

        server_entry_docker.additional_properties = d
        return server_entry_docker

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
