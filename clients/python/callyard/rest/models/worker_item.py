from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.worker_item_labels import WorkerItemLabels
    from ..models.worker_server import WorkerServer


T = TypeVar("T", bound="WorkerItem")


@_attrs_define
class WorkerItem:
    """
    Attributes:
        api_servers (bool): Whether the worker runs servers that are added over the API.
        draining (bool): Whether the worker is draining: it finishes its calls and accepts no new ones.
        host (str): The name of the machine or container.
        id (str): The id of the process, which is new after each start.
        in_flight (int): The number of its running calls, from all front doors.
        name (str): The configured name of the worker.
        pid (int): The process id of the worker.
        servers (list[WorkerServer]): The servers that the worker runs.
        started (datetime.datetime): When the process started.
        version (str): The version of the worker.
        labels (WorkerItemLabels | Unset): The configured labels of the worker.
    """

    api_servers: bool
    draining: bool
    host: str
    id: str
    in_flight: int
    name: str
    pid: int
    servers: list[WorkerServer]
    started: datetime.datetime
    version: str
    labels: WorkerItemLabels | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.worker_item_labels import WorkerItemLabels  # noqa: PLC0415
        from ..models.worker_server import WorkerServer  # noqa: PLC0415

        api_servers = self.api_servers

        draining = self.draining

        host = self.host

        id = self.id

        in_flight = self.in_flight

        name = self.name

        pid = self.pid

        servers = []
        for servers_item_data in self.servers:
            servers_item = servers_item_data.to_dict()
            servers.append(servers_item)

        started = self.started.isoformat()

        version = self.version

        labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.labels, Unset):
            labels = self.labels.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "api_servers": api_servers,
                "draining": draining,
                "host": host,
                "id": id,
                "in_flight": in_flight,
                "name": name,
                "pid": pid,
                "servers": servers,
                "started": started,
                "version": version,
            }
        )
        if labels is not UNSET:
            field_dict["labels"] = labels

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.worker_item_labels import WorkerItemLabels  # noqa: PLC0415
        from ..models.worker_server import WorkerServer  # noqa: PLC0415

        d = dict(src_dict)
        api_servers = d.pop("api_servers")

        draining = d.pop("draining")

        host = d.pop("host")

        id = d.pop("id")

        in_flight = d.pop("in_flight")

        name = d.pop("name")

        pid = d.pop("pid")

        servers = []
        _servers = d.pop("servers")
        for servers_item_data in _servers:
            servers_item = WorkerServer.from_dict(servers_item_data)

            servers.append(servers_item)

        started = datetime.datetime.fromisoformat(d.pop("started"))

        version = d.pop("version")

        _labels = d.pop("labels", UNSET)
        labels: WorkerItemLabels | Unset
        if isinstance(_labels, Unset):
            labels = UNSET
        else:
            labels = WorkerItemLabels.from_dict(_labels)

        worker_item = cls(
            api_servers=api_servers,
            draining=draining,
            host=host,
            id=id,
            in_flight=in_flight,
            name=name,
            pid=pid,
            servers=servers,
            started=started,
            version=version,
            labels=labels,
        )

        worker_item.additional_properties = d
        return worker_item

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
