from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.server_pins_pin import ServerPinsPin
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.tool_pin import ToolPin


T = TypeVar("T", bound="ServerPins")


@_attrs_define
class ServerPins:
    """
    Attributes:
        pin (ServerPinsPin): The pin of the server's entry.
        server (str): The id of the server.
        tools (list[ToolPin]): The tools, by name.
        recorded (datetime.datetime | Unset): The time at which the definitions were first recorded; absent until then.
    """

    pin: ServerPinsPin
    server: str
    tools: list[ToolPin]
    recorded: datetime.datetime | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tool_pin import ToolPin  # noqa: PLC0415

        pin = self.pin.value

        server = self.server

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        recorded: str | Unset = UNSET
        if not isinstance(self.recorded, Unset):
            recorded = self.recorded.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pin": pin,
                "server": server,
                "tools": tools,
            }
        )
        if recorded is not UNSET:
            field_dict["recorded"] = recorded

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_pin import ToolPin  # noqa: PLC0415

        d = dict(src_dict)
        pin = ServerPinsPin(d.pop("pin"))

        server = d.pop("server")

        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = ToolPin.from_dict(tools_item_data)

            tools.append(tools_item)

        _recorded = d.pop("recorded", UNSET)
        recorded: datetime.datetime | Unset
        if isinstance(_recorded, Unset):
            recorded = UNSET
        else:
            recorded = datetime.datetime.fromisoformat(_recorded)

        server_pins = cls(
            pin=pin,
            server=server,
            tools=tools,
            recorded=recorded,
        )

        server_pins.additional_properties = d
        return server_pins

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
