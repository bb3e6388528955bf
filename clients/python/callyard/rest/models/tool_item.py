from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.tool_item_definition import ToolItemDefinition


T = TypeVar("T", bound="ToolItem")


@_attrs_define
class ToolItem:
    """
    Attributes:
        definition (ToolItemDefinition): The tool, exactly as the server sent it.
        enabled (bool): False if an operator disabled the tool; its calls then return 403.
        name (str): The name of the tool.
        server (str): The id of the server.
        changed (str | Unset): The reason that the definition is not the accepted one, for a server with pin: warn.
        name_in_set (str | Unset): With set: the name of the tool in the set.
        offline (str | Unset): The reason that no worker can run the tool now: its server is in state error on all
            workers. Calls return 503 with this reason, and lists for models omit the tool.
        reason (str | Unset): The reason that the tool is disabled.
    """

    definition: ToolItemDefinition
    enabled: bool
    name: str
    server: str
    changed: str | Unset = UNSET
    name_in_set: str | Unset = UNSET
    offline: str | Unset = UNSET
    reason: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tool_item_definition import ToolItemDefinition  # noqa: PLC0415

        definition = self.definition.to_dict()

        enabled = self.enabled

        name = self.name

        server = self.server

        changed = self.changed

        name_in_set = self.name_in_set

        offline = self.offline

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "definition": definition,
                "enabled": enabled,
                "name": name,
                "server": server,
            }
        )
        if changed is not UNSET:
            field_dict["changed"] = changed
        if name_in_set is not UNSET:
            field_dict["name_in_set"] = name_in_set
        if offline is not UNSET:
            field_dict["offline"] = offline
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_item_definition import ToolItemDefinition  # noqa: PLC0415

        d = dict(src_dict)
        definition = ToolItemDefinition.from_dict(d.pop("definition"))

        enabled = d.pop("enabled")

        name = d.pop("name")

        server = d.pop("server")

        changed = d.pop("changed", UNSET)

        name_in_set = d.pop("name_in_set", UNSET)

        offline = d.pop("offline", UNSET)

        reason = d.pop("reason", UNSET)

        tool_item = cls(
            definition=definition,
            enabled=enabled,
            name=name,
            server=server,
            changed=changed,
            name_in_set=name_in_set,
            offline=offline,
            reason=reason,
        )

        tool_item.additional_properties = d
        return tool_item

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
