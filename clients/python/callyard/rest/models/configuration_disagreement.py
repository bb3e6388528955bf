from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.configuration_disagreement_part import ConfigurationDisagreementPart
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.configuration_version import ConfigurationVersion


T = TypeVar("T", bound="ConfigurationDisagreement")


@_attrs_define
class ConfigurationDisagreement:
    """
    Attributes:
        part (ConfigurationDisagreementPart): The part of the configuration. people_keys and caller_keys are the public
            keys in warrants.people_keys and warrants.caller_keys of workers, and the keys with which approvers and front
            doors sign.
        versions (list[ConfigurationVersion]): The versions in use, each with its processes.
        server (str | Unset): The server, if the part is servers.
    """

    part: ConfigurationDisagreementPart
    versions: list[ConfigurationVersion]
    server: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration_version import ConfigurationVersion  # noqa: PLC0415

        part = self.part.value

        versions = []
        for versions_item_data in self.versions:
            versions_item = versions_item_data.to_dict()
            versions.append(versions_item)

        server = self.server

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "part": part,
                "versions": versions,
            }
        )
        if server is not UNSET:
            field_dict["server"] = server

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_version import ConfigurationVersion  # noqa: PLC0415

        d = dict(src_dict)
        part = ConfigurationDisagreementPart(d.pop("part"))

        versions = []
        _versions = d.pop("versions")
        for versions_item_data in _versions:
            versions_item = ConfigurationVersion.from_dict(versions_item_data)

            versions.append(versions_item)

        server = d.pop("server", UNSET)

        configuration_disagreement = cls(
            part=part,
            versions=versions,
            server=server,
        )

        configuration_disagreement.additional_properties = d
        return configuration_disagreement

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
