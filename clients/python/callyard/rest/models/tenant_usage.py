from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="TenantUsage")


@_attrs_define
class TenantUsage:
    """
    Attributes:
        calls (int): All calls of the period.
        complete (bool): Whether all records that were stored at the time of the request are counted.
        denied (int): Calls that the policy, a scope or a person denied.
        expired (int): Calls that were not approved or not sent to a worker in time.
        failed (int): Calls that were refused or failed.
        from_ (datetime.datetime): The start of the first hour.
        held (int): Calls that waited for an approval, or ran with one.
        to (datetime.datetime): The end of the last hour.
        tool_errors (int): Calls whose result is an error of the tool.
        unfinished (int): Calls that are held, waiting or running.
        unknown (int): Calls whose outcome is not known.
    """

    calls: int
    complete: bool
    denied: int
    expired: int
    failed: int
    from_: datetime.datetime
    held: int
    to: datetime.datetime
    tool_errors: int
    unfinished: int
    unknown: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        calls = self.calls

        complete = self.complete

        denied = self.denied

        expired = self.expired

        failed = self.failed

        from_ = self.from_.isoformat()

        held = self.held

        to = self.to.isoformat()

        tool_errors = self.tool_errors

        unfinished = self.unfinished

        unknown = self.unknown

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "calls": calls,
                "complete": complete,
                "denied": denied,
                "expired": expired,
                "failed": failed,
                "from": from_,
                "held": held,
                "to": to,
                "tool_errors": tool_errors,
                "unfinished": unfinished,
                "unknown": unknown,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        calls = d.pop("calls")

        complete = d.pop("complete")

        denied = d.pop("denied")

        expired = d.pop("expired")

        failed = d.pop("failed")

        from_ = datetime.datetime.fromisoformat(d.pop("from"))

        held = d.pop("held")

        to = datetime.datetime.fromisoformat(d.pop("to"))

        tool_errors = d.pop("tool_errors")

        unfinished = d.pop("unfinished")

        unknown = d.pop("unknown")

        tenant_usage = cls(
            calls=calls,
            complete=complete,
            denied=denied,
            expired=expired,
            failed=failed,
            from_=from_,
            held=held,
            to=to,
            tool_errors=tool_errors,
            unfinished=unfinished,
            unknown=unknown,
        )

        tenant_usage.additional_properties = d
        return tenant_usage

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
