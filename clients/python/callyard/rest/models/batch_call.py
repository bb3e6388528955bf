from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.batch_call_arguments import BatchCallArguments


T = TypeVar("T", bound="BatchCall")


@_attrs_define
class BatchCall:
    """One call of a batch.

    Attributes:
        server (str): The id of the server.
        tool (str): The name of the tool.
        arguments (BatchCallArguments | Unset): The arguments; the default is an empty object.
        custom_id (str | Unset): The caller's own id for the call, unique in the batch.
        timeout_ms (int | Unset): The timeout of the call, in milliseconds. The default is the timeout of the server.
    """

    server: str
    tool: str
    arguments: BatchCallArguments | Unset = UNSET
    custom_id: str | Unset = UNSET
    timeout_ms: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.batch_call_arguments import BatchCallArguments  # noqa: PLC0415

        server = self.server

        tool = self.tool

        arguments: dict[str, Any] | Unset = UNSET
        if not isinstance(self.arguments, Unset):
            arguments = self.arguments.to_dict()

        custom_id = self.custom_id

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
        if custom_id is not UNSET:
            field_dict["custom_id"] = custom_id
        if timeout_ms is not UNSET:
            field_dict["timeout_ms"] = timeout_ms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.batch_call_arguments import BatchCallArguments  # noqa: PLC0415

        d = dict(src_dict)
        server = d.pop("server")

        tool = d.pop("tool")

        _arguments = d.pop("arguments", UNSET)
        arguments: BatchCallArguments | Unset
        if isinstance(_arguments, Unset):
            arguments = UNSET
        else:
            arguments = BatchCallArguments.from_dict(_arguments)

        custom_id = d.pop("custom_id", UNSET)

        timeout_ms = d.pop("timeout_ms", UNSET)

        batch_call = cls(
            server=server,
            tool=tool,
            arguments=arguments,
            custom_id=custom_id,
            timeout_ms=timeout_ms,
        )

        return batch_call
