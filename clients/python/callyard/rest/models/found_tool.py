from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.found_tool_decision import FoundToolDecision
from ..models.found_tool_risk import FoundToolRisk
from ..types import UNSET, Unset


T = TypeVar("T", bound="FoundTool")


@_attrs_define
class FoundTool:
    """
    Attributes:
        decision (FoundToolDecision): What the policy decides for your call without arguments: it runs, is held for
            approval, runs in a sandbox, or is denied. The arguments of a call can change it.
        risk (FoundToolRisk): The risk of a call without arguments; the arguments of a call can change it.
        score (float): The relevance, comparable only within this answer.
        server (str): The id of the server.
        signature (str): How it is called, in one line: required parameters first, optional ones with a question mark.
        tool (str): The name of the tool.
        name_in_set (str | Unset): Its name in the set that was searched.
        summary (str | Unset): The beginning of its description, as its server sent it.
    """

    decision: FoundToolDecision
    risk: FoundToolRisk
    score: float
    server: str
    signature: str
    tool: str
    name_in_set: str | Unset = UNSET
    summary: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        decision = self.decision.value

        risk = self.risk.value

        score = self.score

        server = self.server

        signature = self.signature

        tool = self.tool

        name_in_set = self.name_in_set

        summary = self.summary

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "decision": decision,
                "risk": risk,
                "score": score,
                "server": server,
                "signature": signature,
                "tool": tool,
            }
        )
        if name_in_set is not UNSET:
            field_dict["name_in_set"] = name_in_set
        if summary is not UNSET:
            field_dict["summary"] = summary

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        decision = FoundToolDecision(d.pop("decision"))

        risk = FoundToolRisk(d.pop("risk"))

        score = d.pop("score")

        server = d.pop("server")

        signature = d.pop("signature")

        tool = d.pop("tool")

        name_in_set = d.pop("name_in_set", UNSET)

        summary = d.pop("summary", UNSET)

        found_tool = cls(
            decision=decision,
            risk=risk,
            score=score,
            server=server,
            signature=signature,
            tool=tool,
            name_in_set=name_in_set,
            summary=summary,
        )

        found_tool.additional_properties = d
        return found_tool

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
