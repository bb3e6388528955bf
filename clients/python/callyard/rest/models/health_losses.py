from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="HealthLosses")


@_attrs_define
class HealthLosses:
    """
    Attributes:
        files (int): The number of damaged files in all losses.
        latest (datetime.datetime): The time at which a loss was last accepted. Earlier calls without a result ended as
            unknown.
        streams (list[str]): The streams whose messages may be lost.
    """

    files: int
    latest: datetime.datetime
    streams: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        files = self.files

        latest = self.latest.isoformat()

        streams = self.streams

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "files": files,
                "latest": latest,
                "streams": streams,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        files = d.pop("files")

        latest = datetime.datetime.fromisoformat(d.pop("latest"))

        streams = cast(list[str], d.pop("streams"))

        health_losses = cls(
            files=files,
            latest=latest,
            streams=streams,
        )

        health_losses.additional_properties = d
        return health_losses

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
