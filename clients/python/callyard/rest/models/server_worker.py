from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.server_worker_initialization_state import ServerWorkerInitializationState
from ..types import UNSET, Unset


T = TypeVar("T", bound="ServerWorker")


@_attrs_define
class ServerWorker:
    """
    Attributes:
        draining (bool): Whether the worker is draining: it finishes its calls and accepts no new ones.
        id (str): The id of the worker.
        initialization_state (ServerWorkerInitializationState): The state of the server at this worker.
        pid (int): The process id of the server; 0 if it has no process.
        restarts (int): The number of sessions that were replaced since the worker started.
        sessions (int): The number of live MCP sessions.
        slots (int): The maximum number of concurrent calls of the server at this worker.
        error (str | Unset): The reason that the state is not initialized.
        other_definitions (int | Unset): The number of attached programs that wait because their definitions differ from
            those of the programs in use.
    """

    draining: bool
    id: str
    initialization_state: ServerWorkerInitializationState
    pid: int
    restarts: int
    sessions: int
    slots: int
    error: str | Unset = UNSET
    other_definitions: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        draining = self.draining

        id = self.id

        initialization_state = self.initialization_state.value

        pid = self.pid

        restarts = self.restarts

        sessions = self.sessions

        slots = self.slots

        error = self.error

        other_definitions = self.other_definitions

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "draining": draining,
                "id": id,
                "initialization_state": initialization_state,
                "pid": pid,
                "restarts": restarts,
                "sessions": sessions,
                "slots": slots,
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
        draining = d.pop("draining")

        id = d.pop("id")

        initialization_state = ServerWorkerInitializationState(d.pop("initialization_state"))

        pid = d.pop("pid")

        restarts = d.pop("restarts")

        sessions = d.pop("sessions")

        slots = d.pop("slots")

        error = d.pop("error", UNSET)

        other_definitions = d.pop("other_definitions", UNSET)

        server_worker = cls(
            draining=draining,
            id=id,
            initialization_state=initialization_state,
            pid=pid,
            restarts=restarts,
            sessions=sessions,
            slots=slots,
            error=error,
            other_definitions=other_definitions,
        )

        server_worker.additional_properties = d
        return server_worker

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
