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
    from ..models.audit_fault import AuditFault


T = TypeVar("T", bound="AuditVerification")


@_attrs_define
class AuditVerification:
    """
    Attributes:
        began_at (datetime.datetime): When verification began. It begins again with the first record every hour.
        checked_at (datetime.datetime): The time of the request that verified the last records.
        complete (bool): Whether all records that were stored at the time of the request are verified. If false, send
            the request again: it continues.
        fault_count (int): The number of all faults.
        heads_compared (bool): Whether the ends of the chains were compared with their recorded heads, which detects
            records that are missing at the end. It needs the NATS permissions of this version.
        intact (bool): Whether no fault was found so far.
        records (int): The number of verified records.
        writers (int): The number of chains.
        faults (list[AuditFault] | Unset): The first 1000 faults.
        trimmed (list[str] | Unset): Writers whose first records were removed by age.
    """

    began_at: datetime.datetime
    checked_at: datetime.datetime
    complete: bool
    fault_count: int
    heads_compared: bool
    intact: bool
    records: int
    writers: int
    faults: list[AuditFault] | Unset = UNSET
    trimmed: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.audit_fault import AuditFault  # noqa: PLC0415

        began_at = self.began_at.isoformat()

        checked_at = self.checked_at.isoformat()

        complete = self.complete

        fault_count = self.fault_count

        heads_compared = self.heads_compared

        intact = self.intact

        records = self.records

        writers = self.writers

        faults: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.faults, Unset):
            faults = []
            for faults_item_data in self.faults:
                faults_item = faults_item_data.to_dict()
                faults.append(faults_item)

        trimmed: list[str] | Unset = UNSET
        if not isinstance(self.trimmed, Unset):
            trimmed = self.trimmed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "began_at": began_at,
                "checked_at": checked_at,
                "complete": complete,
                "fault_count": fault_count,
                "heads_compared": heads_compared,
                "intact": intact,
                "records": records,
                "writers": writers,
            }
        )
        if faults is not UNSET:
            field_dict["faults"] = faults
        if trimmed is not UNSET:
            field_dict["trimmed"] = trimmed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.audit_fault import AuditFault  # noqa: PLC0415

        d = dict(src_dict)
        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        checked_at = datetime.datetime.fromisoformat(d.pop("checked_at"))

        complete = d.pop("complete")

        fault_count = d.pop("fault_count")

        heads_compared = d.pop("heads_compared")

        intact = d.pop("intact")

        records = d.pop("records")

        writers = d.pop("writers")

        _faults = d.pop("faults", UNSET)
        faults: list[AuditFault] | Unset = UNSET
        if _faults is not UNSET:
            faults = []
            for faults_item_data in _faults:
                faults_item = AuditFault.from_dict(faults_item_data)

                faults.append(faults_item)

        trimmed = cast(list[str], d.pop("trimmed", UNSET))

        audit_verification = cls(
            began_at=began_at,
            checked_at=checked_at,
            complete=complete,
            fault_count=fault_count,
            heads_compared=heads_compared,
            intact=intact,
            records=records,
            writers=writers,
            faults=faults,
            trimmed=trimmed,
        )

        audit_verification.additional_properties = d
        return audit_verification

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
