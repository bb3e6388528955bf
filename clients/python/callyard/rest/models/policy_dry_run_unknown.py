from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="PolicyDryRunUnknown")


@_attrs_define
class PolicyDryRunUnknown:
    """
    Attributes:
        arguments (int): Calls for which a rule reads the arguments, which are not stored.
        groups (int): Calls for which a rule reads the groups of the caller, which were not recorded.
        tools (int): Calls of tools that do not exist any more, so that their risk is not known.
        total (int): All these calls: the sum of arguments, groups and tools.
    """

    arguments: int
    groups: int
    tools: int
    total: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        arguments = self.arguments

        groups = self.groups

        tools = self.tools

        total = self.total

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "arguments": arguments,
                "groups": groups,
                "tools": tools,
                "total": total,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        arguments = d.pop("arguments")

        groups = d.pop("groups")

        tools = d.pop("tools")

        total = d.pop("total")

        policy_dry_run_unknown = cls(
            arguments=arguments,
            groups=groups,
            tools=tools,
            total=total,
        )

        policy_dry_run_unknown.additional_properties = d
        return policy_dry_run_unknown

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
