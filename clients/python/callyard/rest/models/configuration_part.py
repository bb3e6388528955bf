from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.configuration_part_outcome import ConfigurationPartOutcome
from ..models.configuration_part_part import ConfigurationPartPart
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.configuration_part_servers import ConfigurationPartServers


T = TypeVar("T", bound="ConfigurationPart")


@_attrs_define
class ConfigurationPart:
    """
    Attributes:
        outcome (ConfigurationPartOutcome): Whether the content that was read is in force.
        part (ConfigurationPartPart): The part of the configuration.
        since (datetime.datetime): The time at which this version came into force.
        tried (datetime.datetime): The time at which the file was last read.
        version (str): The version of the content in force.
        error (str | Unset): The reason for a refusal.
        servers (ConfigurationPartServers | Unset): The version of each server in a servers file.
    """

    outcome: ConfigurationPartOutcome
    part: ConfigurationPartPart
    since: datetime.datetime
    tried: datetime.datetime
    version: str
    error: str | Unset = UNSET
    servers: ConfigurationPartServers | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration_part_servers import ConfigurationPartServers  # noqa: PLC0415

        outcome = self.outcome.value

        part = self.part.value

        since = self.since.isoformat()

        tried = self.tried.isoformat()

        version = self.version

        error = self.error

        servers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.servers, Unset):
            servers = self.servers.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "outcome": outcome,
                "part": part,
                "since": since,
                "tried": tried,
                "version": version,
            }
        )
        if error is not UNSET:
            field_dict["error"] = error
        if servers is not UNSET:
            field_dict["servers"] = servers

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_part_servers import ConfigurationPartServers  # noqa: PLC0415

        d = dict(src_dict)
        outcome = ConfigurationPartOutcome(d.pop("outcome"))

        part = ConfigurationPartPart(d.pop("part"))

        since = datetime.datetime.fromisoformat(d.pop("since"))

        tried = datetime.datetime.fromisoformat(d.pop("tried"))

        version = d.pop("version")

        error = d.pop("error", UNSET)

        _servers = d.pop("servers", UNSET)
        servers: ConfigurationPartServers | Unset
        if isinstance(_servers, Unset):
            servers = UNSET
        else:
            servers = ConfigurationPartServers.from_dict(_servers)

        configuration_part = cls(
            outcome=outcome,
            part=part,
            since=since,
            tried=tried,
            version=version,
            error=error,
            servers=servers,
        )

        configuration_part.additional_properties = d
        return configuration_part

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
