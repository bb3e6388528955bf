from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.preflight_tool_decision import PreflightToolDecision
from ..models.preflight_tool_risk import PreflightToolRisk
from ..models.preflight_tool_state import PreflightToolState
from ..types import UNSET, Unset


T = TypeVar("T", bound="PreflightTool")


@_attrs_define
class PreflightTool:
    """
    Attributes:
        pinned (bool): Whether its server is pinned, and the definition accepted.
        ready (bool): Whether a call can run: the tool is there, enabled, not denied and online, and its definition is
            the required one.
        server (str): The id of the server.
        state (PreflightToolState): ready; missing: there is no such server or tool; unknown: the tools of its server
            are not known yet; offline: no worker can run it; disabled: it is switched off; unaccepted: nobody has accepted
            its definition; changed: its definition is not the required one; denied: the policy denies your calls.
        tool (str): The name of the tool.
        decision (PreflightToolDecision | Unset): What the policy decides for your call without arguments.
        digest (str | Unset): The digest of its definition.
        reason (str | Unset): The reason that it is not ready.
        risk (PreflightToolRisk | Unset): The risk of a call without arguments.
    """

    pinned: bool
    ready: bool
    server: str
    state: PreflightToolState
    tool: str
    decision: PreflightToolDecision | Unset = UNSET
    digest: str | Unset = UNSET
    reason: str | Unset = UNSET
    risk: PreflightToolRisk | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pinned = self.pinned

        ready = self.ready

        server = self.server

        state = self.state.value

        tool = self.tool

        decision: str | Unset = UNSET
        if not isinstance(self.decision, Unset):
            decision = self.decision.value

        digest = self.digest

        reason = self.reason

        risk: str | Unset = UNSET
        if not isinstance(self.risk, Unset):
            risk = self.risk.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pinned": pinned,
                "ready": ready,
                "server": server,
                "state": state,
                "tool": tool,
            }
        )
        if decision is not UNSET:
            field_dict["decision"] = decision
        if digest is not UNSET:
            field_dict["digest"] = digest
        if reason is not UNSET:
            field_dict["reason"] = reason
        if risk is not UNSET:
            field_dict["risk"] = risk

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pinned = d.pop("pinned")

        ready = d.pop("ready")

        server = d.pop("server")

        state = PreflightToolState(d.pop("state"))

        tool = d.pop("tool")

        _decision = d.pop("decision", UNSET)
        decision: PreflightToolDecision | Unset
        if isinstance(_decision, Unset):
            decision = UNSET
        else:
            decision = PreflightToolDecision(_decision)

        digest = d.pop("digest", UNSET)

        reason = d.pop("reason", UNSET)

        _risk = d.pop("risk", UNSET)
        risk: PreflightToolRisk | Unset
        if isinstance(_risk, Unset):
            risk = UNSET
        else:
            risk = PreflightToolRisk(_risk)

        preflight_tool = cls(
            pinned=pinned,
            ready=ready,
            server=server,
            state=state,
            tool=tool,
            decision=decision,
            digest=digest,
            reason=reason,
            risk=risk,
        )

        preflight_tool.additional_properties = d
        return preflight_tool

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
