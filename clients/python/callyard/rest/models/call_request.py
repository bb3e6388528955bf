from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.call_request_arguments import CallRequestArguments


T = TypeVar("T", bound="CallRequest")


@_attrs_define
class CallRequest:
    """
    Attributes:
        server (str): The id of the server.
        tool (str): The name of the tool.
        arguments (CallRequestArguments | Unset): The arguments; they reach the tool unchanged. The default is an empty
            object.
        callback_url (str | Unset): The URL that is notified when the call ends; the call becomes durable. Available
            only if the operator enabled callbacks.
        timeout_ms (int | Unset): The timeout of the call, in milliseconds. The default is the timeout of the server.
    """

    server: str
    tool: str
    arguments: CallRequestArguments | Unset = UNSET
    callback_url: str | Unset = UNSET
    timeout_ms: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.call_request_arguments import CallRequestArguments  # noqa: PLC0415

        server = self.server

        tool = self.tool

        arguments: dict[str, Any] | Unset = UNSET
        if not isinstance(self.arguments, Unset):
            arguments = self.arguments.to_dict()

        callback_url = self.callback_url

        timeout_ms = self.timeout_ms

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "server": server,
                "tool": tool,
            }
        )
        if arguments is not UNSET:
            field_dict["arguments"] = arguments
        if callback_url is not UNSET:
            field_dict["callback_url"] = callback_url
        if timeout_ms is not UNSET:
            field_dict["timeout_ms"] = timeout_ms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.call_request_arguments import CallRequestArguments  # noqa: PLC0415

        d = dict(src_dict)
        server = d.pop("server")

        tool = d.pop("tool")

        _arguments = d.pop("arguments", UNSET)
        arguments: CallRequestArguments | Unset
        if isinstance(_arguments, Unset):
            arguments = UNSET
        else:
            arguments = CallRequestArguments.from_dict(_arguments)

        callback_url = d.pop("callback_url", UNSET)

        timeout_ms = d.pop("timeout_ms", UNSET)

        call_request = cls(
            server=server,
            tool=tool,
            arguments=arguments,
            callback_url=callback_url,
            timeout_ms=timeout_ms,
        )

        return call_request
