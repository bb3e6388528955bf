from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.server_item import ServerItem
    from ..models.worker_item import WorkerItem


T = TypeVar("T", bound="Fleet")


@_attrs_define
class Fleet:
    """
    Attributes:
        at (datetime.datetime): The time of this view.
        servers (list[ServerItem]): Every server, as in GET /servers.
        workers (list[WorkerItem]): Every live worker, as in GET /workers.
    """

    at: datetime.datetime
    servers: list[ServerItem]
    workers: list[WorkerItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.server_item import ServerItem  # noqa: PLC0415
        from ..models.worker_item import WorkerItem  # noqa: PLC0415

        at = self.at.isoformat()

        servers = []
        for servers_item_data in self.servers:
            servers_item = servers_item_data.to_dict()
            servers.append(servers_item)

        workers = []
        for workers_item_data in self.workers:
            workers_item = workers_item_data.to_dict()
            workers.append(workers_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "servers": servers,
                "workers": workers,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.server_item import ServerItem  # noqa: PLC0415
        from ..models.worker_item import WorkerItem  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        servers = []
        _servers = d.pop("servers")
        for servers_item_data in _servers:
            servers_item = ServerItem.from_dict(servers_item_data)

            servers.append(servers_item)

        workers = []
        _workers = d.pop("workers")
        for workers_item_data in _workers:
            workers_item = WorkerItem.from_dict(workers_item_data)

            workers.append(workers_item)

        fleet = cls(
            at=at,
            servers=servers,
            workers=workers,
        )

        fleet.additional_properties = d
        return fleet

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
