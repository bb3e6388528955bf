from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="PolicyDryRunRequest")


@_attrs_define
class PolicyDryRunRequest:
    """
    Attributes:
        policy (str): The draft: the text of a policy file.
        limit (int | Unset): The maximum number of changed calls to list; the default is 100. All are counted.
        since (datetime.datetime | Unset): Only calls admitted at or after this time; the default is 7 days ago.
        until (datetime.datetime | Unset): Only calls admitted before this time; the default is now.
    """

    policy: str
    limit: int | Unset = UNSET
    since: datetime.datetime | Unset = UNSET
    until: datetime.datetime | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        policy = self.policy

        limit = self.limit

        since: str | Unset = UNSET
        if not isinstance(self.since, Unset):
            since = self.since.isoformat()

        until: str | Unset = UNSET
        if not isinstance(self.until, Unset):
            until = self.until.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "policy": policy,
            }
        )
        if limit is not UNSET:
            field_dict["limit"] = limit
        if since is not UNSET:
            field_dict["since"] = since
        if until is not UNSET:
            field_dict["until"] = until

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        policy = d.pop("policy")

        limit = d.pop("limit", UNSET)

        _since = d.pop("since", UNSET)
        since: datetime.datetime | Unset
        if isinstance(_since, Unset):
            since = UNSET
        else:
            since = datetime.datetime.fromisoformat(_since)

        _until = d.pop("until", UNSET)
        until: datetime.datetime | Unset
        if isinstance(_until, Unset):
            until = UNSET
        else:
            until = datetime.datetime.fromisoformat(_until)

        policy_dry_run_request = cls(
            policy=policy,
            limit=limit,
            since=since,
            until=until,
        )

        return policy_dry_run_request
