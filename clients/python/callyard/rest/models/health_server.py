from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.health_server_initialization_state import HealthServerInitializationState
from ..types import UNSET, Unset


T = TypeVar("T", bound="HealthServer")


@_attrs_define
class HealthServer:
    """
    Attributes:
        connected (bool): Whether at least one live worker has initialized the server.
        id (str): The id of the server.
        initialization_state (HealthServerInitializationState): The state of the server: starting, initialized, or the
            reason that it is not: timeout or error.
        pid (int): The process id of the server on the worker in the best state; 0 if it has no process.
        risk_description (str | Unset): The risk level in words; absent if the operator set no level.
        risk_level (int | Unset): The risk level that the operator set, if any.
        running_in_docker (bool | Unset): Whether calls run in a container, as at risk level 3; present if a risk level
            is set.
    """

    connected: bool
    id: str
    initialization_state: HealthServerInitializationState
    pid: int
    risk_description: str | Unset = UNSET
    risk_level: int | Unset = UNSET
    running_in_docker: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        connected = self.connected

        id = self.id

        initialization_state = self.initialization_state.value

        pid = self.pid

        risk_description = self.risk_description

        risk_level = self.risk_level

        running_in_docker = self.running_in_docker

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "connected": connected,
                "id": id,
                "initialization_state": initialization_state,
                "pid": pid,
            }
        )
        if risk_description is not UNSET:
            field_dict["risk_description"] = risk_description
        if risk_level is not UNSET:
            field_dict["risk_level"] = risk_level
        if running_in_docker is not UNSET:
            field_dict["running_in_docker"] = running_in_docker

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        connected = d.pop("connected")

        id = d.pop("id")

        initialization_state = HealthServerInitializationState(d.pop("initialization_state"))

        pid = d.pop("pid")

        risk_description = d.pop("risk_description", UNSET)

        risk_level = d.pop("risk_level", UNSET)

        running_in_docker = d.pop("running_in_docker", UNSET)

        health_server = cls(
            connected=connected,
            id=id,
            initialization_state=initialization_state,
            pid=pid,
            risk_description=risk_description,
            risk_level=risk_level,
            running_in_docker=running_in_docker,
        )

        health_server.additional_properties = d
        return health_server

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
