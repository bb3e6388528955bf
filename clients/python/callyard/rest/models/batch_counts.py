from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="BatchCounts")


@_attrs_define
class BatchCounts:
    """
    Attributes:
        canceled (int): Calls that were canceled before they ran.
        denied (int): Calls that the policy, a scope or a person denied.
        expired (int): Calls that were not approved or not sent to a worker in time.
        failed (int): Calls that were refused or failed.
        held (int): Waiting calls that require approval. GET /batches/{id}/held lists them.
        succeeded (int): Calls with a result, tool errors included.
        tool_errors (int): Succeeded calls whose tool result is an error.
        unknown (int): Calls that were sent and whose outcome cannot be determined.
        waiting (int): Calls that are queued, held or running.
    """

    canceled: int
    denied: int
    expired: int
    failed: int
    held: int
    succeeded: int
    tool_errors: int
    unknown: int
    waiting: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        canceled = self.canceled

        denied = self.denied

        expired = self.expired

        failed = self.failed

        held = self.held

        succeeded = self.succeeded

        tool_errors = self.tool_errors

        unknown = self.unknown

        waiting = self.waiting

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "canceled": canceled,
                "denied": denied,
                "expired": expired,
                "failed": failed,
                "held": held,
                "succeeded": succeeded,
                "tool_errors": tool_errors,
                "unknown": unknown,
                "waiting": waiting,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        canceled = d.pop("canceled")

        denied = d.pop("denied")

        expired = d.pop("expired")

        failed = d.pop("failed")

        held = d.pop("held")

        succeeded = d.pop("succeeded")

        tool_errors = d.pop("tool_errors")

        unknown = d.pop("unknown")

        waiting = d.pop("waiting")

        batch_counts = cls(
            canceled=canceled,
            denied=denied,
            expired=expired,
            failed=failed,
            held=held,
            succeeded=succeeded,
            tool_errors=tool_errors,
            unknown=unknown,
            waiting=waiting,
        )

        batch_counts.additional_properties = d
        return batch_counts

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
