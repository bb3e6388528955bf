from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.conversion_request_from import ConversionRequestFrom
from ..models.conversion_request_to import ConversionRequestTo
from ..types import UNSET, Unset


T = TypeVar("T", bound="ConversionRequest")


@_attrs_define
class ConversionRequest:
    """
    Attributes:
        from_ (ConversionRequestFrom): The format of tools and calls.
        to (ConversionRequestTo): The format to convert them to.
        calls (Any | Unset): A list of tool calls. The whole answer of the provider and its assistant message are
            accepted too.
        tools (Any | Unset): Tool definitions, as the tools member of a request to the provider, or for mcp the tools of
            tools/list. An object with this list as its member tools is accepted too.
    """

    from_: ConversionRequestFrom
    to: ConversionRequestTo
    calls: Any | Unset = UNSET
    tools: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_.value

        to = self.to.value

        calls = self.calls

        tools = self.tools

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from": from_,
                "to": to,
            }
        )
        if calls is not UNSET:
            field_dict["calls"] = calls
        if tools is not UNSET:
            field_dict["tools"] = tools

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        from_ = ConversionRequestFrom(d.pop("from"))

        to = ConversionRequestTo(d.pop("to"))

        calls = d.pop("calls", UNSET)

        tools = d.pop("tools", UNSET)

        conversion_request = cls(
            from_=from_,
            to=to,
            calls=calls,
            tools=tools,
        )

        return conversion_request
