from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.server_sandbox_isolation import ServerSandboxIsolation
from ..types import UNSET, Unset


T = TypeVar("T", bound="ServerSandbox")


@_attrs_define
class ServerSandbox:
    """
    Attributes:
        docker_image (str): The image that the operator configured.
        isolation (ServerSandboxIsolation): The kind of the sandbox.
        only (bool): Whether the server runs only in a container.
        ready (bool): Whether a worker can run calls in a container now.
        error (str | Unset): The reason that it is not ready.
    """

    docker_image: str
    isolation: ServerSandboxIsolation
    only: bool
    ready: bool
    error: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        docker_image = self.docker_image

        isolation = self.isolation.value

        only = self.only

        ready = self.ready

        error = self.error

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "docker_image": docker_image,
                "isolation": isolation,
                "only": only,
                "ready": ready,
            }
        )
        if error is not UNSET:
            field_dict["error"] = error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        docker_image = d.pop("docker_image")

        isolation = ServerSandboxIsolation(d.pop("isolation"))

        only = d.pop("only")

        ready = d.pop("ready")

        error = d.pop("error", UNSET)

        server_sandbox = cls(
            docker_image=docker_image,
            isolation=isolation,
            only=only,
            ready=ready,
            error=error,
        )

        server_sandbox.additional_properties = d
        return server_sandbox

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
