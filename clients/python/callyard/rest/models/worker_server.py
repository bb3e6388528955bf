from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.worker_server_initialization_state import WorkerServerInitializationState
from ..models.worker_server_transport import WorkerServerTransport
from ..types import UNSET, Unset


T = TypeVar("T", bound="WorkerServer")


@_attrs_define
class WorkerServer:
    """
    Attributes:
        id (str): The id of the server.
        initialization_state (WorkerServerInitializationState): The state of the server at this worker.
        pid (int): The process id of the server; 0 if it has no process.
        restarts (int): The number of sessions that were replaced since the worker started.
        sessions (int): The number of live MCP sessions.
        slots (int): The maximum number of concurrent calls of the server at this worker.
        transport (WorkerServerTransport): How the worker reaches the server.
        error (str | Unset): The reason that the state is not initialized.
        other_definitions (int | Unset): The number of attached programs that wait because their definitions differ from
            those of the programs in use.
    """

    id: str
    initialization_state: WorkerServerInitializationState
    pid: int
    restarts: int
    sessions: int
    slots: int
    transport: WorkerServerTransport
    error: str | Unset = UNSET
    other_definitions: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        initialization_state = self.initialization_state.value

        pid = self.pid

        restarts = self.restarts

        sessions = self.sessions

        slots = self.slots

        transport = self.transport.value

        error = self.error

        other_definitions = self.other_definitions

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "initialization_state": initialization_state,
                "pid": pid,
                "restarts": restarts,
                "sessions": sessions,
                "slots": slots,
                "transport": transport,
            }
        )
        if error is not UNSET:
            field_dict["error"] = error
        if other_definitions is not UNSET:
            field_dict["other_definitions"] = other_definitions

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        initialization_state = WorkerServerInitializationState(d.pop("initialization_state"))

        pid = d.pop("pid")

        restarts = d.pop("restarts")

        sessions = d.pop("sessions")

        slots = d.pop("slots")

        transport = WorkerServerTransport(d.pop("transport"))

        error = d.pop("error", UNSET)

        other_definitions = d.pop("other_definitions", UNSET)

        worker_server = cls(
            id=id,
            initialization_state=initialization_state,
            pid=pid,
            restarts=restarts,
            sessions=sessions,
            slots=slots,
            transport=transport,
            error=error,
            other_definitions=other_definitions,
        )

        worker_server.additional_properties = d
        return worker_server

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
