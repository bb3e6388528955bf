from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.tool_naming import ToolNaming
    from ..models.tool_selector import ToolSelector


T = TypeVar("T", bound="ToolSet")


@_attrs_define
class ToolSet:
    """
    Attributes:
        include (list[ToolSelector]): Selects the tools, in order. A tool that several selectors match has the position
            of the first match.
        description (str | Unset): What the set is for.
        exclude (list[ToolSelector] | Unset): Excludes the matching tools again.
        name (str | Unset): The name of the set.
        names (ToolNaming | Unset):
    """

    include: list[ToolSelector]
    description: str | Unset = UNSET
    exclude: list[ToolSelector] | Unset = UNSET
    name: str | Unset = UNSET
    names: ToolNaming | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tool_naming import ToolNaming  # noqa: PLC0415
        from ..models.tool_selector import ToolSelector  # noqa: PLC0415

        include = []
        for include_item_data in self.include:
            include_item = include_item_data.to_dict()
            include.append(include_item)

        description = self.description

        exclude: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.exclude, Unset):
            exclude = []
            for exclude_item_data in self.exclude:
                exclude_item = exclude_item_data.to_dict()
                exclude.append(exclude_item)

        name = self.name

        names: dict[str, Any] | Unset = UNSET
        if not isinstance(self.names, Unset):
            names = self.names.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "include": include,
            }
        )
        if description is not UNSET:
            field_dict["description"] = description
        if exclude is not UNSET:
            field_dict["exclude"] = exclude
        if name is not UNSET:
            field_dict["name"] = name
        if names is not UNSET:
            field_dict["names"] = names

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_naming import ToolNaming  # noqa: PLC0415
        from ..models.tool_selector import ToolSelector  # noqa: PLC0415

        d = dict(src_dict)
        include = []
        _include = d.pop("include")
        for include_item_data in _include:
            include_item = ToolSelector.from_dict(include_item_data)

            include.append(include_item)

        description = d.pop("description", UNSET)

        _exclude = d.pop("exclude", UNSET)
        exclude: list[ToolSelector] | Unset = UNSET
        if _exclude is not UNSET:
            exclude = []
            for exclude_item_data in _exclude:
                exclude_item = ToolSelector.from_dict(exclude_item_data)

                exclude.append(exclude_item)

        name = d.pop("name", UNSET)

        _names = d.pop("names", UNSET)
        names: ToolNaming | Unset
        if isinstance(_names, Unset):
            names = UNSET
        else:
            names = ToolNaming.from_dict(_names)

        tool_set = cls(
            include=include,
            description=description,
            exclude=exclude,
            name=name,
            names=names,
        )

        tool_set.additional_properties = d
        return tool_set

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
