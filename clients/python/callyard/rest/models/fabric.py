from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="Fabric")


@_attrs_define
class Fabric:
    """
    Attributes:
        approvals (int): The number of pending approvals.
        batches (int): The number of batches that have not ended.
        disagreements (int): The number of parts of the configuration for which live processes use different versions.
            Each server is a part.
        workers (int): The number of live workers.
        oldest_approval (datetime.datetime | Unset): When the oldest pending approval was requested; absent if none is
            pending.
    """

    approvals: int
    batches: int
    disagreements: int
    workers: int
    oldest_approval: datetime.datetime | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        approvals = self.approvals

        batches = self.batches

        disagreements = self.disagreements

        workers = self.workers

        oldest_approval: str | Unset = UNSET
        if not isinstance(self.oldest_approval, Unset):
            oldest_approval = self.oldest_approval.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "approvals": approvals,
                "batches": batches,
                "disagreements": disagreements,
                "workers": workers,
            }
        )
        if oldest_approval is not UNSET:
            field_dict["oldest_approval"] = oldest_approval

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        approvals = d.pop("approvals")

        batches = d.pop("batches")

        disagreements = d.pop("disagreements")

        workers = d.pop("workers")

        _oldest_approval = d.pop("oldest_approval", UNSET)
        oldest_approval: datetime.datetime | Unset
        if isinstance(_oldest_approval, Unset):
            oldest_approval = UNSET
        else:
            oldest_approval = datetime.datetime.fromisoformat(_oldest_approval)

        fabric = cls(
            approvals=approvals,
            batches=batches,
            disagreements=disagreements,
            workers=workers,
            oldest_approval=oldest_approval,
        )

        fabric.additional_properties = d
        return fabric

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
