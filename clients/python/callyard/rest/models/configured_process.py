from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.configured_process_role import ConfiguredProcessRole
from typing import cast

if TYPE_CHECKING:
    from ..models.configuration_part import ConfigurationPart


T = TypeVar("T", bound="ConfiguredProcess")


@_attrs_define
class ConfiguredProcess:
    """
    Attributes:
        id (str): The id of the process, which is new after each start.
        parts (list[ConfigurationPart]): The files that the process reloads.
        role (ConfiguredProcessRole): The role of the process.
    """

    id: str
    parts: list[ConfigurationPart]
    role: ConfiguredProcessRole
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration_part import ConfigurationPart  # noqa: PLC0415

        id = self.id

        parts = []
        for parts_item_data in self.parts:
            parts_item = parts_item_data.to_dict()
            parts.append(parts_item)

        role = self.role.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "parts": parts,
                "role": role,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_part import ConfigurationPart  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        parts = []
        _parts = d.pop("parts")
        for parts_item_data in _parts:
            parts_item = ConfigurationPart.from_dict(parts_item_data)

            parts.append(parts_item)

        role = ConfiguredProcessRole(d.pop("role"))

        configured_process = cls(
            id=id,
            parts=parts,
            role=role,
        )

        configured_process.additional_properties = d
        return configured_process

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
