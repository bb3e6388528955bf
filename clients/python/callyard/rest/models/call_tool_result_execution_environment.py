from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="CallToolResultExecutionEnvironment")


@_attrs_define
class CallToolResultExecutionEnvironment:
    """The sandbox in which the tool ran, as reported by Callyard and not by the server; present only if the call was
    isolated.

        Attributes:
            docker (bool | Unset): Whether the sandbox is a container.
            docker_image (str | Unset): The image that the operator configured.
            isolation (str | Unset): The isolation of the tool: container, or bubblewrap, which is weaker.
            risk_description (str | Unset): The risk level as text.
            risk_level (int | Unset): The risk level of the server, from 1 to 3.
            runtime (str | Unset): The runtime of the container, such as runc or runsc.
    """

    docker: bool | Unset = UNSET
    docker_image: str | Unset = UNSET
    isolation: str | Unset = UNSET
    risk_description: str | Unset = UNSET
    risk_level: int | Unset = UNSET
    runtime: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        docker = self.docker

        docker_image = self.docker_image

        isolation = self.isolation

        risk_description = self.risk_description

        risk_level = self.risk_level

        runtime = self.runtime

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if docker is not UNSET:
            field_dict["docker"] = docker
        if docker_image is not UNSET:
            field_dict["docker_image"] = docker_image
        if isolation is not UNSET:
            field_dict["isolation"] = isolation
        if risk_description is not UNSET:
            field_dict["risk_description"] = risk_description
        if risk_level is not UNSET:
            field_dict["risk_level"] = risk_level
        if runtime is not UNSET:
            field_dict["runtime"] = runtime

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        docker = d.pop("docker", UNSET)

        docker_image = d.pop("docker_image", UNSET)

        isolation = d.pop("isolation", UNSET)

        risk_description = d.pop("risk_description", UNSET)

        risk_level = d.pop("risk_level", UNSET)

        runtime = d.pop("runtime", UNSET)

        call_tool_result_execution_environment = cls(
            docker=docker,
            docker_image=docker_image,
            isolation=isolation,
            risk_description=risk_description,
            risk_level=risk_level,
            runtime=runtime,
        )

        call_tool_result_execution_environment.additional_properties = d
        return call_tool_result_execution_environment

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
