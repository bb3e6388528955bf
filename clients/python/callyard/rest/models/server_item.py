from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.server_item_initialization_state import ServerItemInitializationState
from ..models.server_item_pin import ServerItemPin
from ..models.server_item_transport import ServerItemTransport
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.server_sandbox import ServerSandbox
    from ..models.server_worker import ServerWorker


T = TypeVar("T", bound="ServerItem")


@_attrs_define
class ServerItem:
    """
    Attributes:
        connected (bool): Whether at least one live worker has initialized the server.
        id (str): The id of the server.
        in_flight (int): The number of running calls from this front door.
        initialization_state (ServerItemInitializationState): The state of the server at the worker in the best state.
        pid (int): The process id of the server on the worker in the best state; 0 if it has no process.
        slots (int): The maximum number of concurrent calls from this front door.
        transport (ServerItemTransport): How the worker reaches the server.
        waiting (int): The number of calls that wait for a slot at this front door.
        worker_count (int): The number of live workers that run the server.
        workers (list[ServerWorker]): The workers that run the server.
        changed_tools (list[str] | Unset): The tools whose definition nobody has accepted; GET /servers/{id}/pins shows
            the changes.
        error (str | Unset): The reason that the state is not initialized.
        pin (ServerItemPin | Unset): What happens to a tool whose definition is not the accepted one; absent if
            definitions are not pinned.
        protocol_version (str | Unset): The MCP revision of the session.
        risk_description (str | Unset): The risk level in words; absent if the operator set no level.
        risk_level (int | Unset): The risk level that the operator set, if any.
        running_in_docker (bool | Unset): Whether calls run in a container, as at risk level 3; present if a risk level
            is set.
        sandbox (ServerSandbox | Unset):
        stderr_tail (str | Unset): The last lines of the standard error of a failed server process.
        title (str | Unset): The server's own title.
        tools (int | Unset): The number of tools of the server; absent until they were read.
        version (str | Unset): The server's own version.
    """

    connected: bool
    id: str
    in_flight: int
    initialization_state: ServerItemInitializationState
    pid: int
    slots: int
    transport: ServerItemTransport
    waiting: int
    worker_count: int
    workers: list[ServerWorker]
    changed_tools: list[str] | Unset = UNSET
    error: str | Unset = UNSET
    pin: ServerItemPin | Unset = UNSET
    protocol_version: str | Unset = UNSET
    risk_description: str | Unset = UNSET
    risk_level: int | Unset = UNSET
    running_in_docker: bool | Unset = UNSET
    sandbox: ServerSandbox | Unset = UNSET
    stderr_tail: str | Unset = UNSET
    title: str | Unset = UNSET
    tools: int | Unset = UNSET
    version: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.server_sandbox import ServerSandbox  # noqa: PLC0415
        from ..models.server_worker import ServerWorker  # noqa: PLC0415

        connected = self.connected

        id = self.id

        in_flight = self.in_flight

        initialization_state = self.initialization_state.value

        pid = self.pid

        slots = self.slots

        transport = self.transport.value

        waiting = self.waiting

        worker_count = self.worker_count

        workers = []
        for workers_item_data in self.workers:
            workers_item = workers_item_data.to_dict()
            workers.append(workers_item)

        changed_tools: list[str] | Unset = UNSET
        if not isinstance(self.changed_tools, Unset):
            changed_tools = self.changed_tools

        error = self.error

        pin: str | Unset = UNSET
        if not isinstance(self.pin, Unset):
            pin = self.pin.value

        protocol_version = self.protocol_version

        risk_description = self.risk_description

        risk_level = self.risk_level

        running_in_docker = self.running_in_docker

        sandbox: dict[str, Any] | Unset = UNSET
        if not isinstance(self.sandbox, Unset):
            sandbox = self.sandbox.to_dict()

        stderr_tail = self.stderr_tail

        title = self.title

        tools = self.tools

        version = self.version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "connected": connected,
                "id": id,
                "in_flight": in_flight,
                "initialization_state": initialization_state,
                "pid": pid,
                "slots": slots,
                "transport": transport,
                "waiting": waiting,
                "worker_count": worker_count,
                "workers": workers,
            }
        )
        if changed_tools is not UNSET:
            field_dict["changed_tools"] = changed_tools
        if error is not UNSET:
            field_dict["error"] = error
        if pin is not UNSET:
            field_dict["pin"] = pin
        if protocol_version is not UNSET:
            field_dict["protocol_version"] = protocol_version
        if risk_description is not UNSET:
            field_dict["risk_description"] = risk_description
        if risk_level is not UNSET:
            field_dict["risk_level"] = risk_level
        if running_in_docker is not UNSET:
            field_dict["running_in_docker"] = running_in_docker
        if sandbox is not UNSET:
            field_dict["sandbox"] = sandbox
        if stderr_tail is not UNSET:
            field_dict["stderr_tail"] = stderr_tail
        if title is not UNSET:
            field_dict["title"] = title
        if tools is not UNSET:
            field_dict["tools"] = tools
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.server_sandbox import ServerSandbox  # noqa: PLC0415
        from ..models.server_worker import ServerWorker  # noqa: PLC0415

        d = dict(src_dict)
        connected = d.pop("connected")

        id = d.pop("id")

        in_flight = d.pop("in_flight")

        initialization_state = ServerItemInitializationState(d.pop("initialization_state"))

        pid = d.pop("pid")

        slots = d.pop("slots")

        transport = ServerItemTransport(d.pop("transport"))

        waiting = d.pop("waiting")

        worker_count = d.pop("worker_count")

        workers = []
        _workers = d.pop("workers")
        for workers_item_data in _workers:
            workers_item = ServerWorker.from_dict(workers_item_data)

            workers.append(workers_item)

        changed_tools = cast(list[str], d.pop("changed_tools", UNSET))

        error = d.pop("error", UNSET)

        _pin = d.pop("pin", UNSET)
        pin: ServerItemPin | Unset
        if isinstance(_pin, Unset):
            pin = UNSET
        else:
            pin = ServerItemPin(_pin)

        protocol_version = d.pop("protocol_version", UNSET)

        risk_description = d.pop("risk_description", UNSET)

        risk_level = d.pop("risk_level", UNSET)

        running_in_docker = d.pop("running_in_docker", UNSET)

        _sandbox = d.pop("sandbox", UNSET)
        sandbox: ServerSandbox | Unset
        if isinstance(_sandbox, Unset):
            sandbox = UNSET
        else:
            sandbox = ServerSandbox.from_dict(_sandbox)

        stderr_tail = d.pop("stderr_tail", UNSET)

        title = d.pop("title", UNSET)

        tools = d.pop("tools", UNSET)

        version = d.pop("version", UNSET)

        server_item = cls(
            connected=connected,
            id=id,
            in_flight=in_flight,
            initialization_state=initialization_state,
            pid=pid,
            slots=slots,
            transport=transport,
            waiting=waiting,
            worker_count=worker_count,
            workers=workers,
            changed_tools=changed_tools,
            error=error,
            pin=pin,
            protocol_version=protocol_version,
            risk_description=risk_description,
            risk_level=risk_level,
            running_in_docker=running_in_docker,
            sandbox=sandbox,
            stderr_tail=stderr_tail,
            title=title,
            tools=tools,
            version=version,
        )

        server_item.additional_properties = d
        return server_item

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
