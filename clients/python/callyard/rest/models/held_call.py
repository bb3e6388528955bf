from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.held_call_by import HeldCallBy
from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="HeldCall")


@_attrs_define
class HeldCall:
    """
    Attributes:
        approval_id (str): The id of the approval.
        arguments_digest (str): SHA-256 of the arguments that would run.
        by (HeldCallBy): Who must approve: caller means you, with POST /confirmations.
        call_id (str): The id of the call.
        expires_at (datetime.datetime): When the approval expires.
        index (int): Its position in the batch, from 0.
        risk_level (int): The risk level of the call: 1 is low, 3 is high.
        server (str): The id of the server.
        tool (str): The name of the tool.
        custom_id (str | Unset): The caller's own id for the call, if it has one.
        reasons (list[str] | Unset): The reasons for which it is held.
    """

    approval_id: str
    arguments_digest: str
    by: HeldCallBy
    call_id: str
    expires_at: datetime.datetime
    index: int
    risk_level: int
    server: str
    tool: str
    custom_id: str | Unset = UNSET
    reasons: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        approval_id = self.approval_id

        arguments_digest = self.arguments_digest

        by = self.by.value

        call_id = self.call_id

        expires_at = self.expires_at.isoformat()

        index = self.index

        risk_level = self.risk_level

        server = self.server

        tool = self.tool

        custom_id = self.custom_id

        reasons: list[str] | Unset = UNSET
        if not isinstance(self.reasons, Unset):
            reasons = self.reasons

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "approval_id": approval_id,
                "arguments_digest": arguments_digest,
                "by": by,
                "call_id": call_id,
                "expires_at": expires_at,
                "index": index,
                "risk_level": risk_level,
                "server": server,
                "tool": tool,
            }
        )
        if custom_id is not UNSET:
            field_dict["custom_id"] = custom_id
        if reasons is not UNSET:
            field_dict["reasons"] = reasons

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        approval_id = d.pop("approval_id")

        arguments_digest = d.pop("arguments_digest")

        by = HeldCallBy(d.pop("by"))

        call_id = d.pop("call_id")

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        index = d.pop("index")

        risk_level = d.pop("risk_level")

        server = d.pop("server")

        tool = d.pop("tool")

        custom_id = d.pop("custom_id", UNSET)

        reasons = cast(list[str], d.pop("reasons", UNSET))

        held_call = cls(
            approval_id=approval_id,
            arguments_digest=arguments_digest,
            by=by,
            call_id=call_id,
            expires_at=expires_at,
            index=index,
            risk_level=risk_level,
            server=server,
            tool=tool,
            custom_id=custom_id,
            reasons=reasons,
        )

        held_call.additional_properties = d
        return held_call

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
