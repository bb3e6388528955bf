from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.added_server_status import AddedServerStatus
from ..types import UNSET, Unset


T = TypeVar("T", bound="AddedServer")


@_attrs_define
class AddedServer:
    """
    Attributes:
        id (str): The id of the server.
        pid (int): The process id of the server; 0 if it has no process.
        status (AddedServerStatus): Always connected.
        risk_description (str | Unset): The risk level in words; absent if the entry has none.
        risk_level (int | Unset): The risk level of the entry, if it has one.
        running_in_docker (bool | Unset): Whether calls run in a container, as at risk level 3; present if the entry has
            a risk level.
    """

    id: str
    pid: int
    status: AddedServerStatus
    risk_description: str | Unset = UNSET
    risk_level: int | Unset = UNSET
    running_in_docker: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        pid = self.pid

        status = self.status.value

        risk_description = self.risk_description

        risk_level = self.risk_level

        running_in_docker = self.running_in_docker

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "pid": pid,
                "status": status,
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
        id = d.pop("id")

        pid = d.pop("pid")

        status = AddedServerStatus(d.pop("status"))

        risk_description = d.pop("risk_description", UNSET)

        risk_level = d.pop("risk_level", UNSET)

        running_in_docker = d.pop("running_in_docker", UNSET)

        added_server = cls(
            id=id,
            pid=pid,
            status=status,
            risk_description=risk_description,
            risk_level=risk_level,
            running_in_docker=running_in_docker,
        )

        added_server.additional_properties = d
        return added_server

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
