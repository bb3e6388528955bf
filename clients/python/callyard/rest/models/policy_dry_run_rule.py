from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="PolicyDryRunRule")


@_attrs_define
class PolicyDryRunRule:
    """
    Attributes:
        allowed (int): The number of calls that this rule allows.
        changed (int): The number of calls that this rule decides differently than recorded.
        held (int): The number of calls that this rule holds for approval.
        refused (int): The number of calls that this rule refuses.
        rule (str): The name of the rule; empty for the calls for which no rule decides.
        unknown (int): The number of calls for which it cannot be determined whether this rule decides.
    """

    allowed: int
    changed: int
    held: int
    refused: int
    rule: str
    unknown: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allowed = self.allowed

        changed = self.changed

        held = self.held

        refused = self.refused

        rule = self.rule

        unknown = self.unknown

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allowed": allowed,
                "changed": changed,
                "held": held,
                "refused": refused,
                "rule": rule,
                "unknown": unknown,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        allowed = d.pop("allowed")

        changed = d.pop("changed")

        held = d.pop("held")

        refused = d.pop("refused")

        rule = d.pop("rule")

        unknown = d.pop("unknown")

        policy_dry_run_rule = cls(
            allowed=allowed,
            changed=changed,
            held=held,
            refused=refused,
            rule=rule,
            unknown=unknown,
        )

        policy_dry_run_rule.additional_properties = d
        return policy_dry_run_rule

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
