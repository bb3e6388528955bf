from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.confirmation_request_outcome import ConfirmationRequestOutcome
from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="ConfirmationRequest")


@_attrs_define
class ConfirmationRequest:
    """
    Attributes:
        approval_id (str): The id of the approval, for approvers.
        call_id (str): The id of the call; GET /calls/{id} returns its state and then its result.
        expires_at (datetime.datetime): When the approval expires. The call then ends as expired and never runs.
        method (str): The MCP method of the request; tools/call for a tool call.
        outcome (ConfirmationRequestOutcome): Always held: the call has not run.
        requires_confirmation (bool): Always true.
        risk_description (str): The risk level in words.
        risk_level (int): The risk level of the call: 1 is low, 3 is high.
        server_id (str): The id of the server.
        tool_name (str): The name of the tool.
        approval_url (str | Unset): The page on which approvers decide; absent if the front door does not know the
            address of the approver.
        confirmation_id (str | Unset): The single-use token; absent if somebody else must approve.
        reasons (list[str] | Unset): The reasons for which it is held.
    """

    approval_id: str
    call_id: str
    expires_at: datetime.datetime
    method: str
    outcome: ConfirmationRequestOutcome
    requires_confirmation: bool
    risk_description: str
    risk_level: int
    server_id: str
    tool_name: str
    approval_url: str | Unset = UNSET
    confirmation_id: str | Unset = UNSET
    reasons: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        approval_id = self.approval_id

        call_id = self.call_id

        expires_at = self.expires_at.isoformat()

        method = self.method

        outcome = self.outcome.value

        requires_confirmation = self.requires_confirmation

        risk_description = self.risk_description

        risk_level = self.risk_level

        server_id = self.server_id

        tool_name = self.tool_name

        approval_url = self.approval_url

        confirmation_id = self.confirmation_id

        reasons: list[str] | Unset = UNSET
        if not isinstance(self.reasons, Unset):
            reasons = self.reasons

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "approval_id": approval_id,
                "call_id": call_id,
                "expires_at": expires_at,
                "method": method,
                "outcome": outcome,
                "requires_confirmation": requires_confirmation,
                "risk_description": risk_description,
                "risk_level": risk_level,
                "server_id": server_id,
                "tool_name": tool_name,
            }
        )
        if approval_url is not UNSET:
            field_dict["approval_url"] = approval_url
        if confirmation_id is not UNSET:
            field_dict["confirmation_id"] = confirmation_id
        if reasons is not UNSET:
            field_dict["reasons"] = reasons

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        approval_id = d.pop("approval_id")

        call_id = d.pop("call_id")

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        method = d.pop("method")

        outcome = ConfirmationRequestOutcome(d.pop("outcome"))

        requires_confirmation = d.pop("requires_confirmation")

        risk_description = d.pop("risk_description")

        risk_level = d.pop("risk_level")

        server_id = d.pop("server_id")

        tool_name = d.pop("tool_name")

        approval_url = d.pop("approval_url", UNSET)

        confirmation_id = d.pop("confirmation_id", UNSET)

        reasons = cast(list[str], d.pop("reasons", UNSET))

        confirmation_request = cls(
            approval_id=approval_id,
            call_id=call_id,
            expires_at=expires_at,
            method=method,
            outcome=outcome,
            requires_confirmation=requires_confirmation,
            risk_description=risk_description,
            risk_level=risk_level,
            server_id=server_id,
            tool_name=tool_name,
            approval_url=approval_url,
            confirmation_id=confirmation_id,
            reasons=reasons,
        )

        confirmation_request.additional_properties = d
        return confirmation_request

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
