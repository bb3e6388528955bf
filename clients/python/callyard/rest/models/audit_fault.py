from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.audit_fault_kind import AuditFaultKind
from ..types import UNSET, Unset


T = TypeVar("T", bound="AuditFault")


@_attrs_define
class AuditFault:
    """
    Attributes:
        kind (AuditFaultKind): changed: a record differs from what was written. gap: records are missing in the middle
            or at the start. cut: records are missing at the end. added: records were inserted.
        what (str): The fault, in words.
        writer (str): The process whose chain has the fault.
        seq (int | Unset): The position of the record in its chain; absent if it cannot be read.
        sequence (int | Unset): The sequence number of the message in the stream; absent if the fault is not in a
            message.
    """

    kind: AuditFaultKind
    what: str
    writer: str
    seq: int | Unset = UNSET
    sequence: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind.value

        what = self.what

        writer = self.writer

        seq = self.seq

        sequence = self.sequence

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "what": what,
                "writer": writer,
            }
        )
        if seq is not UNSET:
            field_dict["seq"] = seq
        if sequence is not UNSET:
            field_dict["sequence"] = sequence

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = AuditFaultKind(d.pop("kind"))

        what = d.pop("what")

        writer = d.pop("writer")

        seq = d.pop("seq", UNSET)

        sequence = d.pop("sequence", UNSET)

        audit_fault = cls(
            kind=kind,
            what=what,
            writer=writer,
            seq=seq,
            sequence=sequence,
        )

        audit_fault.additional_properties = d
        return audit_fault

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
