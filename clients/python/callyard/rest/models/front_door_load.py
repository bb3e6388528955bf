from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.front_door_time import FrontDoorTime


T = TypeVar("T", bound="FrontDoorLoad")


@_attrs_define
class FrontDoorLoad:
    """
    Attributes:
        ended (int): The calls that ended since the front door started, as callyard_calls_total counts them.
        failed (int): The ended calls without a result: failed, denied or canceled.
        in_flight (int): The calls that were admitted and have not ended, including those that wait for a slot. Held
            calls are not among them.
        times (list[FrontDoorTime]): The number of ended calls by duration, from admission to end, in ascending order.
        tool_errors (int): The ended calls whose result reports an error.
        waiting (int): The calls in flight that wait for a slot.
    """

    ended: int
    failed: int
    in_flight: int
    times: list[FrontDoorTime]
    tool_errors: int
    waiting: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.front_door_time import FrontDoorTime  # noqa: PLC0415

        ended = self.ended

        failed = self.failed

        in_flight = self.in_flight

        times = []
        for times_item_data in self.times:
            times_item = times_item_data.to_dict()
            times.append(times_item)

        tool_errors = self.tool_errors

        waiting = self.waiting

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "ended": ended,
                "failed": failed,
                "in_flight": in_flight,
                "times": times,
                "tool_errors": tool_errors,
                "waiting": waiting,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.front_door_time import FrontDoorTime  # noqa: PLC0415

        d = dict(src_dict)
        ended = d.pop("ended")

        failed = d.pop("failed")

        in_flight = d.pop("in_flight")

        times = []
        _times = d.pop("times")
        for times_item_data in _times:
            times_item = FrontDoorTime.from_dict(times_item_data)

            times.append(times_item)

        tool_errors = d.pop("tool_errors")

        waiting = d.pop("waiting")

        front_door_load = cls(
            ended=ended,
            failed=failed,
            in_flight=in_flight,
            times=times,
            tool_errors=tool_errors,
            waiting=waiting,
        )

        front_door_load.additional_properties = d
        return front_door_load

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
