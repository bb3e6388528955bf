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
    from ..models.allowance_pattern import AllowancePattern


T = TypeVar("T", bound="Allowance")


@_attrs_define
class Allowance:
    """
    Attributes:
        pattern (AllowancePattern):
        until (datetime.datetime): The time until which calls are allowed.
        max_uses (int | Unset): The maximum number of calls that are allowed; 0 or absent means no limit.
    """

    pattern: AllowancePattern
    until: datetime.datetime
    max_uses: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.allowance_pattern import AllowancePattern  # noqa: PLC0415

        pattern = self.pattern.to_dict()

        until = self.until.isoformat()

        max_uses = self.max_uses

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pattern": pattern,
                "until": until,
            }
        )
        if max_uses is not UNSET:
            field_dict["max_uses"] = max_uses

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.allowance_pattern import AllowancePattern  # noqa: PLC0415

        d = dict(src_dict)
        pattern = AllowancePattern.from_dict(d.pop("pattern"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        max_uses = d.pop("max_uses", UNSET)

        allowance = cls(
            pattern=pattern,
            until=until,
            max_uses=max_uses,
        )

        allowance.additional_properties = d
        return allowance

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
