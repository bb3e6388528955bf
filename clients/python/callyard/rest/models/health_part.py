from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.health_part_outcome import HealthPartOutcome
from ..models.health_part_part import HealthPartPart
from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="HealthPart")


@_attrs_define
class HealthPart:
    """
    Attributes:
        outcome (HealthPartOutcome): Whether the content that was read is in force.
        part (HealthPartPart): The part of the configuration.
        since (datetime.datetime): The time at which this version came into force.
        tried (datetime.datetime): The time at which the file was last read.
        version (str): The version of the content in force.
        error (str | Unset): Where to find the reason for a refusal.
    """

    outcome: HealthPartOutcome
    part: HealthPartPart
    since: datetime.datetime
    tried: datetime.datetime
    version: str
    error: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        outcome = self.outcome.value

        part = self.part.value

        since = self.since.isoformat()

        tried = self.tried.isoformat()

        version = self.version

        error = self.error

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "outcome": outcome,
                "part": part,
                "since": since,
                "tried": tried,
                "version": version,
            }
        )
        if error is not UNSET:
            field_dict["error"] = error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        outcome = HealthPartOutcome(d.pop("outcome"))

        part = HealthPartPart(d.pop("part"))

        since = datetime.datetime.fromisoformat(d.pop("since"))

        tried = datetime.datetime.fromisoformat(d.pop("tried"))

        version = d.pop("version")

        error = d.pop("error", UNSET)

        health_part = cls(
            outcome=outcome,
            part=part,
            since=since,
            tried=tried,
            version=version,
            error=error,
        )

        health_part.additional_properties = d
        return health_part

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
