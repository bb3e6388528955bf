from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.usage_counts import UsageCounts
    from ..models.usage_row import UsageRow


T = TypeVar("T", bound="UsageReport")


@_attrs_define
class UsageReport:
    """
    Attributes:
        complete (bool): Whether all records that were stored at the time of the request are counted. If false, send the
            request again in a few seconds.
        from_ (datetime.datetime): The start of the first hour.
        rows (list[UsageRow]): Sorted by time, then by the number of calls, highest first.
        to (datetime.datetime): The end of the last hour.
        total (UsageCounts):
    """

    complete: bool
    from_: datetime.datetime
    rows: list[UsageRow]
    to: datetime.datetime
    total: UsageCounts
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.usage_counts import UsageCounts  # noqa: PLC0415
        from ..models.usage_row import UsageRow  # noqa: PLC0415

        complete = self.complete

        from_ = self.from_.isoformat()

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        to = self.to.isoformat()

        total = self.total.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "complete": complete,
                "from": from_,
                "rows": rows,
                "to": to,
                "total": total,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.usage_counts import UsageCounts  # noqa: PLC0415
        from ..models.usage_row import UsageRow  # noqa: PLC0415

        d = dict(src_dict)
        complete = d.pop("complete")

        from_ = datetime.datetime.fromisoformat(d.pop("from"))

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = UsageRow.from_dict(rows_item_data)

            rows.append(rows_item)

        to = datetime.datetime.fromisoformat(d.pop("to"))

        total = UsageCounts.from_dict(d.pop("total"))

        usage_report = cls(
            complete=complete,
            from_=from_,
            rows=rows,
            to=to,
            total=total,
        )

        usage_report.additional_properties = d
        return usage_report

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
