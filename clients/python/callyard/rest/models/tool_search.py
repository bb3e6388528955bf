from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.tool_search_ranking import ToolSearchRanking
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.found_tool import FoundTool


T = TypeVar("T", bound="ToolSearch")


@_attrs_define
class ToolSearch:
    """
    Attributes:
        ranking (ToolSearchRanking): How the tools were ranked. bm25f: by words. hybrid: by words and embeddings.
        searched (int): The number of tools that were searched: those that can be called.
        tools (list[FoundTool]): The matching tools, best match first; empty if no tool matches.
        unmatched (list[str]): The words of the query that no tool contains. If tools is empty, replace them by other
            words.
        ranking_note (str | Unset): The reason that the configured embeddings were not used.
        unknown (list[str] | Unset): Servers whose tools are currently unknown and were not searched.
    """

    ranking: ToolSearchRanking
    searched: int
    tools: list[FoundTool]
    unmatched: list[str]
    ranking_note: str | Unset = UNSET
    unknown: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.found_tool import FoundTool  # noqa: PLC0415

        ranking = self.ranking.value

        searched = self.searched

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        unmatched = self.unmatched

        ranking_note = self.ranking_note

        unknown: list[str] | Unset = UNSET
        if not isinstance(self.unknown, Unset):
            unknown = self.unknown

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "ranking": ranking,
                "searched": searched,
                "tools": tools,
                "unmatched": unmatched,
            }
        )
        if ranking_note is not UNSET:
            field_dict["ranking_note"] = ranking_note
        if unknown is not UNSET:
            field_dict["unknown"] = unknown

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.found_tool import FoundTool  # noqa: PLC0415

        d = dict(src_dict)
        ranking = ToolSearchRanking(d.pop("ranking"))

        searched = d.pop("searched")

        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = FoundTool.from_dict(tools_item_data)

            tools.append(tools_item)

        unmatched = cast(list[str], d.pop("unmatched"))

        ranking_note = d.pop("ranking_note", UNSET)

        unknown = cast(list[str], d.pop("unknown", UNSET))

        tool_search = cls(
            ranking=ranking,
            searched=searched,
            tools=tools,
            unmatched=unmatched,
            ranking_note=ranking_note,
            unknown=unknown,
        )

        tool_search.additional_properties = d
        return tool_search

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
