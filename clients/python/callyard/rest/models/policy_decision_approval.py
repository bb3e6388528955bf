from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.policy_decision_approval_by import PolicyDecisionApprovalBy
from typing import cast


T = TypeVar("T", bound="PolicyDecisionApproval")


@_attrs_define
class PolicyDecisionApproval:
    """
    Attributes:
        by (PolicyDecisionApprovalBy): caller: the caller confirms its own call; groups: members of groups approve it.
        expires_ms (int): The number of milliseconds after which the call expires.
        groups (list[str]): The groups whose members may approve it.
        needed (int): The number of different people who must approve it.
    """

    by: PolicyDecisionApprovalBy
    expires_ms: int
    groups: list[str]
    needed: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        by = self.by.value

        expires_ms = self.expires_ms

        groups = self.groups

        needed = self.needed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "by": by,
                "expires_ms": expires_ms,
                "groups": groups,
                "needed": needed,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        by = PolicyDecisionApprovalBy(d.pop("by"))

        expires_ms = d.pop("expires_ms")

        groups = cast(list[str], d.pop("groups"))

        needed = d.pop("needed")

        policy_decision_approval = cls(
            by=by,
            expires_ms=expires_ms,
            groups=groups,
            needed=needed,
        )

        policy_decision_approval.additional_properties = d
        return policy_decision_approval

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
