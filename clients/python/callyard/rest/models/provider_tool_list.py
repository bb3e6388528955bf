from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.provider_tool_list_format import ProviderToolListFormat
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.provider_loosening import ProviderLoosening
    from ..models.provider_tool_list_tools_item import ProviderToolListToolsItem
    from ..models.provider_tool_name import ProviderToolName


T = TypeVar("T", bound="ProviderToolList")


@_attrs_define
class ProviderToolList:
    """
    Attributes:
        count (int): The number of tools.
        format_ (ProviderToolListFormat): The format of the tools.
        loosened (list[ProviderLoosening]): The parts of the tools' schemas that the provider's schemas cannot express;
            the descriptions state them for the model.
        names (list[ProviderToolName]): The server and tool of each name.
        omitted (int): The number of tools that max_tools, budget_tokens or query excluded.
        tokens (int): The estimated number of tokens that they use.
        tools (list[ProviderToolListToolsItem]): The value for the member tools of a request to the provider.
        notes (list[str] | Unset): Remarks, such as: more tools than the provider accepts.
        unknown (list[str] | Unset): Servers whose tools are currently unknown and therefore missing.
    """

    count: int
    format_: ProviderToolListFormat
    loosened: list[ProviderLoosening]
    names: list[ProviderToolName]
    omitted: int
    tokens: int
    tools: list[ProviderToolListToolsItem]
    notes: list[str] | Unset = UNSET
    unknown: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.provider_loosening import ProviderLoosening  # noqa: PLC0415
        from ..models.provider_tool_list_tools_item import ProviderToolListToolsItem  # noqa: PLC0415
        from ..models.provider_tool_name import ProviderToolName  # noqa: PLC0415

        count = self.count

        format_ = self.format_.value

        loosened = []
        for loosened_item_data in self.loosened:
            loosened_item = loosened_item_data.to_dict()
            loosened.append(loosened_item)

        names = []
        for names_item_data in self.names:
            names_item = names_item_data.to_dict()
            names.append(names_item)

        omitted = self.omitted

        tokens = self.tokens

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        notes: list[str] | Unset = UNSET
        if not isinstance(self.notes, Unset):
            notes = self.notes

        unknown: list[str] | Unset = UNSET
        if not isinstance(self.unknown, Unset):
            unknown = self.unknown

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "format": format_,
                "loosened": loosened,
                "names": names,
                "omitted": omitted,
                "tokens": tokens,
                "tools": tools,
            }
        )
        if notes is not UNSET:
            field_dict["notes"] = notes
        if unknown is not UNSET:
            field_dict["unknown"] = unknown

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.provider_loosening import ProviderLoosening  # noqa: PLC0415
        from ..models.provider_tool_list_tools_item import ProviderToolListToolsItem  # noqa: PLC0415
        from ..models.provider_tool_name import ProviderToolName  # noqa: PLC0415

        d = dict(src_dict)
        count = d.pop("count")

        format_ = ProviderToolListFormat(d.pop("format"))

        loosened = []
        _loosened = d.pop("loosened")
        for loosened_item_data in _loosened:
            loosened_item = ProviderLoosening.from_dict(loosened_item_data)

            loosened.append(loosened_item)

        names = []
        _names = d.pop("names")
        for names_item_data in _names:
            names_item = ProviderToolName.from_dict(names_item_data)

            names.append(names_item)

        omitted = d.pop("omitted")

        tokens = d.pop("tokens")

        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = ProviderToolListToolsItem.from_dict(tools_item_data)

            tools.append(tools_item)

        notes = cast(list[str], d.pop("notes", UNSET))

        unknown = cast(list[str], d.pop("unknown", UNSET))

        provider_tool_list = cls(
            count=count,
            format_=format_,
            loosened=loosened,
            names=names,
            omitted=omitted,
            tokens=tokens,
            tools=tools,
            notes=notes,
            unknown=unknown,
        )

        provider_tool_list.additional_properties = d
        return provider_tool_list

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
