from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="UsageCounts")


@_attrs_define
class UsageCounts:
    """
    Attributes:
        bytes_in (int): The bytes of the arguments.
        bytes_out (int): The bytes of the results.
        calls (int): All calls: the sum of succeeded, failed, denied, expired, canceled, unknown and unfinished.
        canceled (int): Calls that were canceled before they ran.
        denied (int): Calls that the policy, a scope or a person denied.
        expired (int): Calls that were not approved or not sent to a worker in time.
        failed (int): Calls that were refused or failed.
        held (int): The calls that waited for an approval, or ran with one.
        succeeded (int): Calls with a result, tool errors included.
        took_ms (float): The sum of the times that the MCP servers took, in milliseconds, measured by the workers.
        tool_errors (int): The succeeded calls whose result is an error of the tool.
        unfinished (int): Calls that are held, waiting or running.
        unknown (int): Calls that were sent and whose outcome cannot be determined.
    """

    bytes_in: int
    bytes_out: int
    calls: int
    canceled: int
    denied: int
    expired: int
    failed: int
    held: int
    succeeded: int
    took_ms: float
    tool_errors: int
    unfinished: int
    unknown: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        bytes_in = self.bytes_in

        bytes_out = self.bytes_out

        calls = self.calls

        canceled = self.canceled

        denied = self.denied

        expired = self.expired

        failed = self.failed

        held = self.held

        succeeded = self.succeeded

        took_ms = self.took_ms

        tool_errors = self.tool_errors

        unfinished = self.unfinished

        unknown = self.unknown

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bytes_in": bytes_in,
                "bytes_out": bytes_out,
                "calls": calls,
                "canceled": canceled,
                "denied": denied,
                "expired": expired,
                "failed": failed,
                "held": held,
                "succeeded": succeeded,
                "took_ms": took_ms,
                "tool_errors": tool_errors,
                "unfinished": unfinished,
                "unknown": unknown,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        bytes_in = d.pop("bytes_in")

        bytes_out = d.pop("bytes_out")

        calls = d.pop("calls")

        canceled = d.pop("canceled")

        denied = d.pop("denied")

        expired = d.pop("expired")

        failed = d.pop("failed")

        held = d.pop("held")

        succeeded = d.pop("succeeded")

        took_ms = d.pop("took_ms")

        tool_errors = d.pop("tool_errors")

        unfinished = d.pop("unfinished")

        unknown = d.pop("unknown")

        usage_counts = cls(
            bytes_in=bytes_in,
            bytes_out=bytes_out,
            calls=calls,
            canceled=canceled,
            denied=denied,
            expired=expired,
            failed=failed,
            held=held,
            succeeded=succeeded,
            took_ms=took_ms,
            tool_errors=tool_errors,
            unfinished=unfinished,
            unknown=unknown,
        )

        usage_counts.additional_properties = d
        return usage_counts

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
