from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.set_item_origin import SetItemOrigin
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.tool_set import ToolSet


T = TypeVar("T", bound="SetItem")


@_attrs_define
class SetItem:
    """
    Attributes:
        definition (ToolSet):
        name (str): The name of the set.
        origin (SetItemOrigin): api: created with PUT /sets/{name}. configuration: an entry of front_door.sets, which
            cannot be changed here.
        at (datetime.datetime | Unset): When it was changed last.
        by (str | Unset): The principal that changed it last.
        etag (str | Unset): The state of the set, for If-Match; absent for a set of the configuration.
        tenant (str | Unset): The tenant that owns the set; default for one of the installation, which other tenants see
            but do not change.
    """

    definition: ToolSet
    name: str
    origin: SetItemOrigin
    at: datetime.datetime | Unset = UNSET
    by: str | Unset = UNSET
    etag: str | Unset = UNSET
    tenant: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        definition = self.definition.to_dict()

        name = self.name

        origin = self.origin.value

        at: str | Unset = UNSET
        if not isinstance(self.at, Unset):
            at = self.at.isoformat()

        by = self.by

        etag = self.etag

        tenant = self.tenant

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "definition": definition,
                "name": name,
                "origin": origin,
            }
        )
        if at is not UNSET:
            field_dict["at"] = at
        if by is not UNSET:
            field_dict["by"] = by
        if etag is not UNSET:
            field_dict["etag"] = etag
        if tenant is not UNSET:
            field_dict["tenant"] = tenant

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        d = dict(src_dict)
        definition = ToolSet.from_dict(d.pop("definition"))

        name = d.pop("name")

        origin = SetItemOrigin(d.pop("origin"))

        _at = d.pop("at", UNSET)
        at: datetime.datetime | Unset
        if isinstance(_at, Unset):
            at = UNSET
        else:
            at = datetime.datetime.fromisoformat(_at)

        by = d.pop("by", UNSET)

        etag = d.pop("etag", UNSET)

        tenant = d.pop("tenant", UNSET)

        set_item = cls(
            definition=definition,
            name=name,
            origin=origin,
            at=at,
            by=by,
            etag=etag,
            tenant=tenant,
        )

        set_item.additional_properties = d
        return set_item

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
