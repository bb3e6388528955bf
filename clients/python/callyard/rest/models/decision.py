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
    from ..models.allowance import Allowance


T = TypeVar("T", bound="Decision")


@_attrs_define
class Decision:
    """
    Attributes:
        at (datetime.datetime): The time of the decision.
        by (str): The principal of the person or the caller that decided; for standing, of the person who gave the
            permission.
        kind (str): The kind of the decision: approve, deny, edit, extend or revoke.
        allow (Allowance | Unset):
        channel (str | Unset): How the decision was made. web, api, slack: by a person on the pages, with the API of the
            approver or in Slack. token: by the caller with its token. caller: by the caller without a token, for a call of
            a batch. standing: by a standing permission.
        groups (list[str] | Unset): The groups of the person at that time; absent if there were none.
        owner (str | Unset): The owner of the credential with which the person decided; absent if it has none.
        reason (str | Unset): The reason that the person gave; absent if there was none.
    """

    at: datetime.datetime
    by: str
    kind: str
    allow: Allowance | Unset = UNSET
    channel: str | Unset = UNSET
    groups: list[str] | Unset = UNSET
    owner: str | Unset = UNSET
    reason: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.allowance import Allowance  # noqa: PLC0415

        at = self.at.isoformat()

        by = self.by

        kind = self.kind

        allow: dict[str, Any] | Unset = UNSET
        if not isinstance(self.allow, Unset):
            allow = self.allow.to_dict()

        channel = self.channel

        groups: list[str] | Unset = UNSET
        if not isinstance(self.groups, Unset):
            groups = self.groups

        owner = self.owner

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "by": by,
                "kind": kind,
            }
        )
        if allow is not UNSET:
            field_dict["allow"] = allow
        if channel is not UNSET:
            field_dict["channel"] = channel
        if groups is not UNSET:
            field_dict["groups"] = groups
        if owner is not UNSET:
            field_dict["owner"] = owner
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.allowance import Allowance  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        by = d.pop("by")

        kind = d.pop("kind")

        _allow = d.pop("allow", UNSET)
        allow: Allowance | Unset
        if isinstance(_allow, Unset):
            allow = UNSET
        else:
            allow = Allowance.from_dict(_allow)

        channel = d.pop("channel", UNSET)

        groups = cast(list[str], d.pop("groups", UNSET))

        owner = d.pop("owner", UNSET)

        reason = d.pop("reason", UNSET)

        decision = cls(
            at=at,
            by=by,
            kind=kind,
            allow=allow,
            channel=channel,
            groups=groups,
            owner=owner,
            reason=reason,
        )

        decision.additional_properties = d
        return decision

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
