from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.server_entry_pin import ServerEntryPin
from ..models.server_entry_type import ServerEntryType
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.server_entry_docker import ServerEntryDocker
    from ..models.server_entry_env import ServerEntryEnv
    from ..models.server_entry_headers import ServerEntryHeaders


T = TypeVar("T", bound="ServerEntry")


@_attrs_define
class ServerEntry:
    """A server: its id and its entry as in a servers file.

    Attributes:
        api_key (str | Unset): The API key of a remote server, sent as Authorization: Bearer.
        args (list[str] | Unset): The arguments of the command.
        command (str | Unset): The command of a stdio server.
        docker (ServerEntryDocker | Unset): The container of a high-risk server.
        env (ServerEntryEnv | Unset): Environment variables of the command.
        headers (ServerEntryHeaders | Unset): Headers of each request to a remote server.
        id (str | Unset): The id of the new server. Without it, the server is named after its package, program or host;
            a number is added if the name is taken.
        pin (ServerEntryPin | Unset): What happens to a tool whose definition is not the accepted one; the default is
            off.
        risk_level (int | Unset): 1 low, 2 medium, 3 high.
        type_ (ServerEntryType | Unset): The transport. Without it: stdio for a command; for a URL, websocket if it
            begins with ws: or wss:, sse if it ends in /sse, otherwise http.
        url (str | Unset): The URL of a remote server.
    """

    api_key: str | Unset = UNSET
    args: list[str] | Unset = UNSET
    command: str | Unset = UNSET
    docker: ServerEntryDocker | Unset = UNSET
    env: ServerEntryEnv | Unset = UNSET
    headers: ServerEntryHeaders | Unset = UNSET
    id: str | Unset = UNSET
    pin: ServerEntryPin | Unset = UNSET
    risk_level: int | Unset = UNSET
    type_: ServerEntryType | Unset = UNSET
    url: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.server_entry_docker import ServerEntryDocker  # noqa: PLC0415
        from ..models.server_entry_env import ServerEntryEnv  # noqa: PLC0415
        from ..models.server_entry_headers import ServerEntryHeaders  # noqa: PLC0415

        api_key = self.api_key

        args: list[str] | Unset = UNSET
        if not isinstance(self.args, Unset):
            args = self.args

        command = self.command

        docker: dict[str, Any] | Unset = UNSET
        if not isinstance(self.docker, Unset):
            docker = self.docker.to_dict()

        env: dict[str, Any] | Unset = UNSET
        if not isinstance(self.env, Unset):
            env = self.env.to_dict()

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        id = self.id

        pin: str | Unset = UNSET
        if not isinstance(self.pin, Unset):
            pin = self.pin.value

        risk_level = self.risk_level

        type_: str | Unset = UNSET
        if not isinstance(self.type_, Unset):
            type_ = self.type_.value

        url = self.url

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if api_key is not UNSET:
            field_dict["apiKey"] = api_key
        if args is not UNSET:
            field_dict["args"] = args
        if command is not UNSET:
            field_dict["command"] = command
        if docker is not UNSET:
            field_dict["docker"] = docker
        if env is not UNSET:
            field_dict["env"] = env
        if headers is not UNSET:
            field_dict["headers"] = headers
        if id is not UNSET:
            field_dict["id"] = id
        if pin is not UNSET:
            field_dict["pin"] = pin
        if risk_level is not UNSET:
            field_dict["riskLevel"] = risk_level
        if type_ is not UNSET:
            field_dict["type"] = type_
        if url is not UNSET:
            field_dict["url"] = url

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.server_entry_docker import ServerEntryDocker  # noqa: PLC0415
        from ..models.server_entry_env import ServerEntryEnv  # noqa: PLC0415
        from ..models.server_entry_headers import ServerEntryHeaders  # noqa: PLC0415

        d = dict(src_dict)
        api_key = d.pop("apiKey", UNSET)

        args = cast(list[str], d.pop("args", UNSET))

        command = d.pop("command", UNSET)

        _docker = d.pop("docker", UNSET)
        docker: ServerEntryDocker | Unset
        if isinstance(_docker, Unset):
            docker = UNSET
        else:
            docker = ServerEntryDocker.from_dict(_docker)

        _env = d.pop("env", UNSET)
        env: ServerEntryEnv | Unset
        if isinstance(_env, Unset):
            env = UNSET
        else:
            env = ServerEntryEnv.from_dict(_env)

        _headers = d.pop("headers", UNSET)
        headers: ServerEntryHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = ServerEntryHeaders.from_dict(_headers)

        id = d.pop("id", UNSET)

        _pin = d.pop("pin", UNSET)
        pin: ServerEntryPin | Unset
        if isinstance(_pin, Unset):
            pin = UNSET
        else:
            pin = ServerEntryPin(_pin)

        risk_level = d.pop("riskLevel", UNSET)

        _type_ = d.pop("type", UNSET)
        type_: ServerEntryType | Unset
        if isinstance(_type_, Unset):
            type_ = UNSET
        else:
            type_ = ServerEntryType(_type_)

        url = d.pop("url", UNSET)

        server_entry = cls(
            api_key=api_key,
            args=args,
            command=command,
            docker=docker,
            env=env,
            headers=headers,
            id=id,
            pin=pin,
            risk_level=risk_level,
            type_=type_,
            url=url,
        )

        server_entry.additional_properties = d
        return server_entry

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
