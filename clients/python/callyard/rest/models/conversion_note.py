from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.conversion_note_kind import ConversionNoteKind


T = TypeVar("T", bound="ConversionNote")


@_attrs_define
class ConversionNote:
    """
    Attributes:
        kind (ConversionNoteKind): skipped: a tool or call is missing from the answer. dropped: a part has no
            counterpart in the other format. changed: a name, id, schema or description differs.
        message (str): The difference, in words.
        pointer (str): A JSON pointer (RFC 6901) into the request.
    """

    kind: ConversionNoteKind
    message: str
    pointer: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind.value

        message = self.message

        pointer = self.pointer

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "message": message,
                "pointer": pointer,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = ConversionNoteKind(d.pop("kind"))

        message = d.pop("message")

        pointer = d.pop("pointer")

        conversion_note = cls(
            kind=kind,
            message=message,
            pointer=pointer,
        )

        conversion_note.additional_properties = d
        return conversion_note

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
