from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.policy_dry_run_change_now import PolicyDryRunChangeNow
from ..models.policy_dry_run_change_was import PolicyDryRunChangeWas
from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="PolicyDryRunChange")


@_attrs_define
class PolicyDryRunChange:
    """
    Attributes:
        created (datetime.datetime): The time at which the call was admitted.
        id (str): The id of the call.
        now (PolicyDryRunChangeNow): The decision of the draft.
        principal (str): The principal that made the call.
        server (str): The id of the server.
        tool (str): The name of the tool.
        was (PolicyDryRunChangeWas): The recorded decision.
        now_rule (str | Unset): The rule of the draft that decides, if one does.
        was_rule (str | Unset): The rule that decided, if one did and its name was recorded.
    """

    created: datetime.datetime
    id: str
    now: PolicyDryRunChangeNow
    principal: str
    server: str
    tool: str
    was: PolicyDryRunChangeWas
    now_rule: str | Unset = UNSET
    was_rule: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        created = self.created.isoformat()

        id = self.id

        now = self.now.value

        principal = self.principal

        server = self.server

        tool = self.tool

        was = self.was.value

        now_rule = self.now_rule

        was_rule = self.was_rule

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "created": created,
                "id": id,
                "now": now,
                "principal": principal,
                "server": server,
                "tool": tool,
                "was": was,
            }
        )
        if now_rule is not UNSET:
            field_dict["now_rule"] = now_rule
        if was_rule is not UNSET:
            field_dict["was_rule"] = was_rule

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        created = datetime.datetime.fromisoformat(d.pop("created"))

        id = d.pop("id")

        now = PolicyDryRunChangeNow(d.pop("now"))

        principal = d.pop("principal")

        server = d.pop("server")

        tool = d.pop("tool")

        was = PolicyDryRunChangeWas(d.pop("was"))

        now_rule = d.pop("now_rule", UNSET)

        was_rule = d.pop("was_rule", UNSET)

        policy_dry_run_change = cls(
            created=created,
            id=id,
            now=now,
            principal=principal,
            server=server,
            tool=tool,
            was=was,
            now_rule=now_rule,
            was_rule=was_rule,
        )

        policy_dry_run_change.additional_properties = d
        return policy_dry_run_change

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
