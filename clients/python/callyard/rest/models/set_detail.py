from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.set_detail_origin import SetDetailOrigin
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.set_clash import SetClash
    from ..models.set_tool import SetTool
    from ..models.tool_set import ToolSet


T = TypeVar("T", bound="SetDetail")


@_attrs_define
class SetDetail:
    """
    Attributes:
        definition (ToolSet):
        name (str): The name of the set.
        origin (SetDetailOrigin): api: created with PUT /sets/{name}. configuration: an entry of front_door.sets, which
            cannot be changed here.
        tools (list[SetTool]): The tools of the set now, in its order.
        at (datetime.datetime | Unset): When it was changed last.
        by (str | Unset): The principal that changed it last.
        etag (str | Unset): The state of the set, for If-Match; absent for a set of the configuration.
        left_out (list[SetClash] | Unset): Names that several tools would have, each with the tools that are left out
            for that reason.
        tenant (str | Unset): The tenant that owns the set; default for one of the installation, which other tenants see
            but do not change.
    """

    definition: ToolSet
    name: str
    origin: SetDetailOrigin
    tools: list[SetTool]
    at: datetime.datetime | Unset = UNSET
    by: str | Unset = UNSET
    etag: str | Unset = UNSET
    left_out: list[SetClash] | Unset = UNSET
    tenant: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.set_clash import SetClash  # noqa: PLC0415
        from ..models.set_tool import SetTool  # noqa: PLC0415
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        definition = self.definition.to_dict()

        name = self.name

        origin = self.origin.value

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        at: str | Unset = UNSET
        if not isinstance(self.at, Unset):
            at = self.at.isoformat()

        by = self.by

        etag = self.etag

        left_out: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.left_out, Unset):
            left_out = []
            for left_out_item_data in self.left_out:
                left_out_item = left_out_item_data.to_dict()
                left_out.append(left_out_item)

        tenant = self.tenant

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "definition": definition,
                "name": name,
                "origin": origin,
                "tools": tools,
            }
        )
        if at is not UNSET:
            field_dict["at"] = at
        if by is not UNSET:
            field_dict["by"] = by
        if etag is not UNSET:
            field_dict["etag"] = etag
        if left_out is not UNSET:
            field_dict["left_out"] = left_out
        if tenant is not UNSET:
            field_dict["tenant"] = tenant

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.set_clash import SetClash  # noqa: PLC0415
        from ..models.set_tool import SetTool  # noqa: PLC0415
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        d = dict(src_dict)
        definition = ToolSet.from_dict(d.pop("definition"))

        name = d.pop("name")

        origin = SetDetailOrigin(d.pop("origin"))

        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = SetTool.from_dict(tools_item_data)

            tools.append(tools_item)

        _at = d.pop("at", UNSET)
        at: datetime.datetime | Unset
        if isinstance(_at, Unset):
            at = UNSET
        else:
            at = datetime.datetime.fromisoformat(_at)

        by = d.pop("by", UNSET)

        etag = d.pop("etag", UNSET)

        _left_out = d.pop("left_out", UNSET)
        left_out: list[SetClash] | Unset = UNSET
        if _left_out is not UNSET:
            left_out = []
            for left_out_item_data in _left_out:
                left_out_item = SetClash.from_dict(left_out_item_data)

                left_out.append(left_out_item)

        tenant = d.pop("tenant", UNSET)

        set_detail = cls(
            definition=definition,
            name=name,
            origin=origin,
            tools=tools,
            at=at,
            by=by,
            etag=etag,
            left_out=left_out,
            tenant=tenant,
        )

        set_detail.additional_properties = d
        return set_detail

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
