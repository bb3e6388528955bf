from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="AcceptTool")


@_attrs_define
class AcceptTool:
    """
    Attributes:
        digest (str): The digest of the definition that was reviewed.
        name (str): The tool.
    """

    digest: str
    name: str

    def to_dict(self) -> dict[str, Any]:
        digest = self.digest

        name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "digest": digest,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        digest = d.pop("digest")

        name = d.pop("name")

        accept_tool = cls(
            digest=digest,
            name=name,
        )

        return accept_tool
