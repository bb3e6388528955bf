from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.policy_dry_run_change import PolicyDryRunChange
    from ..models.policy_dry_run_rule import PolicyDryRunRule
    from ..models.policy_dry_run_unknown import PolicyDryRunUnknown


T = TypeVar("T", bound="PolicyDryRun")


@_attrs_define
class PolicyDryRun:
    """
    Attributes:
        calls (int): The number of recorded tool calls with a decision of the policy. The draft was applied to each of
            them.
        changed (int): The number of calls that the draft decides differently.
        changes (list[PolicyDryRunChange]): Calls that the draft decides differently, newest first.
        not_judged (int): The number of calls that were refused before the policy was evaluated, such as for invalid
            arguments. They are not counted in calls.
        policy_version (str): The version of the draft.
        rules (list[PolicyDryRunRule]): The rules of the draft in their order. The last element, without a name, counts
            the calls for which no rule decides.
        since (datetime.datetime): The start of the period of the examined calls.
        unknown (PolicyDryRunUnknown):
        until (datetime.datetime): The end of the period of the examined calls.
        truncated (bool | Unset): Whether there are more calls than one dry run examines; the oldest are left out.
    """

    calls: int
    changed: int
    changes: list[PolicyDryRunChange]
    not_judged: int
    policy_version: str
    rules: list[PolicyDryRunRule]
    since: datetime.datetime
    unknown: PolicyDryRunUnknown
    until: datetime.datetime
    truncated: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.policy_dry_run_change import PolicyDryRunChange  # noqa: PLC0415
        from ..models.policy_dry_run_rule import PolicyDryRunRule  # noqa: PLC0415
        from ..models.policy_dry_run_unknown import PolicyDryRunUnknown  # noqa: PLC0415

        calls = self.calls

        changed = self.changed

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        not_judged = self.not_judged

        policy_version = self.policy_version

        rules = []
        for rules_item_data in self.rules:
            rules_item = rules_item_data.to_dict()
            rules.append(rules_item)

        since = self.since.isoformat()

        unknown = self.unknown.to_dict()

        until = self.until.isoformat()

        truncated = self.truncated

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "calls": calls,
                "changed": changed,
                "changes": changes,
                "not_judged": not_judged,
                "policy_version": policy_version,
                "rules": rules,
                "since": since,
                "unknown": unknown,
                "until": until,
            }
        )
        if truncated is not UNSET:
            field_dict["truncated"] = truncated

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.policy_dry_run_change import PolicyDryRunChange  # noqa: PLC0415
        from ..models.policy_dry_run_rule import PolicyDryRunRule  # noqa: PLC0415
        from ..models.policy_dry_run_unknown import PolicyDryRunUnknown  # noqa: PLC0415

        d = dict(src_dict)
        calls = d.pop("calls")

        changed = d.pop("changed")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = PolicyDryRunChange.from_dict(changes_item_data)

            changes.append(changes_item)

        not_judged = d.pop("not_judged")

        policy_version = d.pop("policy_version")

        rules = []
        _rules = d.pop("rules")
        for rules_item_data in _rules:
            rules_item = PolicyDryRunRule.from_dict(rules_item_data)

            rules.append(rules_item)

        since = datetime.datetime.fromisoformat(d.pop("since"))

        unknown = PolicyDryRunUnknown.from_dict(d.pop("unknown"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        truncated = d.pop("truncated", UNSET)

        policy_dry_run = cls(
            calls=calls,
            changed=changed,
            changes=changes,
            not_judged=not_judged,
            policy_version=policy_version,
            rules=rules,
            since=since,
            unknown=unknown,
            until=until,
            truncated=truncated,
        )

        policy_dry_run.additional_properties = d
        return policy_dry_run

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
