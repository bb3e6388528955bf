from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.health_status import HealthStatus
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.health_losses import HealthLosses
    from ..models.health_part import HealthPart
    from ..models.health_server import HealthServer


T = TypeVar("T", bound="Health")


@_attrs_define
class Health:
    """
    Attributes:
        configuration (list[HealthPart]): The files that this process reloads.
        server_count (int): The number of servers.
        servers (list[HealthServer]): The servers that this front door knows. Empty if tenants see different servers,
            because the request has no credential.
        status (HealthStatus): Always ok.
        uptime (float): Seconds since the front door started.
        accepted_losses (HealthLosses | Unset):
    """

    configuration: list[HealthPart]
    server_count: int
    servers: list[HealthServer]
    status: HealthStatus
    uptime: float
    accepted_losses: HealthLosses | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.health_losses import HealthLosses  # noqa: PLC0415
        from ..models.health_part import HealthPart  # noqa: PLC0415
        from ..models.health_server import HealthServer  # noqa: PLC0415

        configuration = []
        for configuration_item_data in self.configuration:
            configuration_item = configuration_item_data.to_dict()
            configuration.append(configuration_item)

        server_count = self.server_count

        servers = []
        for servers_item_data in self.servers:
            servers_item = servers_item_data.to_dict()
            servers.append(servers_item)

        status = self.status.value

        uptime = self.uptime

        accepted_losses: dict[str, Any] | Unset = UNSET
        if not isinstance(self.accepted_losses, Unset):
            accepted_losses = self.accepted_losses.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "configuration": configuration,
                "serverCount": server_count,
                "servers": servers,
                "status": status,
                "uptime": uptime,
            }
        )
        if accepted_losses is not UNSET:
            field_dict["accepted_losses"] = accepted_losses

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.health_losses import HealthLosses  # noqa: PLC0415
        from ..models.health_part import HealthPart  # noqa: PLC0415
        from ..models.health_server import HealthServer  # noqa: PLC0415

        d = dict(src_dict)
        configuration = []
        _configuration = d.pop("configuration")
        for configuration_item_data in _configuration:
            configuration_item = HealthPart.from_dict(configuration_item_data)

            configuration.append(configuration_item)

        server_count = d.pop("serverCount")

        servers = []
        _servers = d.pop("servers")
        for servers_item_data in _servers:
            servers_item = HealthServer.from_dict(servers_item_data)

            servers.append(servers_item)

        status = HealthStatus(d.pop("status"))

        uptime = d.pop("uptime")

        _accepted_losses = d.pop("accepted_losses", UNSET)
        accepted_losses: HealthLosses | Unset
        if isinstance(_accepted_losses, Unset):
            accepted_losses = UNSET
        else:
            accepted_losses = HealthLosses.from_dict(_accepted_losses)

        health = cls(
            configuration=configuration,
            server_count=server_count,
            servers=servers,
            status=status,
            uptime=uptime,
            accepted_losses=accepted_losses,
        )

        health.additional_properties = d
        return health

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
