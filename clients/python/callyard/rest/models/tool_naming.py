from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.tool_naming_conflict import ToolNamingConflict
from ..types import UNSET, Unset


T = TypeVar("T", bound="ToolNaming")


@_attrs_define
class ToolNaming:
    """
    Attributes:
        conflict (ToolNamingConflict | Unset): What happens if several tools would have the same name. error leaves all
            of them out and reports them, prefer gives the name to the one that is selected first, rename names them by
            server and tool. Default: ToolNamingConflict.ERROR.
        prefix (str | Unset): The text before the separator; {server} in it is replaced by the id of the server. With an
            empty prefix, tools keep their own names. Default: '{server}'.
        separator (str | Unset): The text between the prefix and the name of the tool. Default: '__'.
    """

    conflict: ToolNamingConflict | Unset = ToolNamingConflict.ERROR
    prefix: str | Unset = "{server}"
    separator: str | Unset = "__"
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        conflict: str | Unset = UNSET
        if not isinstance(self.conflict, Unset):
            conflict = self.conflict.value

        prefix = self.prefix

        separator = self.separator

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if conflict is not UNSET:
            field_dict["conflict"] = conflict
        if prefix is not UNSET:
            field_dict["prefix"] = prefix
        if separator is not UNSET:
            field_dict["separator"] = separator

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _conflict = d.pop("conflict", UNSET)
        conflict: ToolNamingConflict | Unset
        if isinstance(_conflict, Unset):
            conflict = UNSET
        else:
            conflict = ToolNamingConflict(_conflict)

        prefix = d.pop("prefix", UNSET)

        separator = d.pop("separator", UNSET)

        tool_naming = cls(
            conflict=conflict,
            prefix=prefix,
            separator=separator,
        )

        tool_naming.additional_properties = d
        return tool_naming

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
