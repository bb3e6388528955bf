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
    from ..models.front_door_load import FrontDoorLoad


T = TypeVar("T", bound="FrontDoorItem")


@_attrs_define
class FrontDoorItem:
    """
    Attributes:
        draining (bool): Whether the front door is draining: it finishes its calls and accepts no new ones.
        id (str): The id of the process, which is new after each start.
        load (FrontDoorLoad | Unset):
        region (str | Unset): The region of the front door; absent if none is configured.
        started (datetime.datetime | Unset): When the process started; absent if the front door runs an older version,
            which does not announce it.
        version (str | Unset): Absent if the front door runs an older version, which does not announce it.
    """

    draining: bool
    id: str
    load: FrontDoorLoad | Unset = UNSET
    region: str | Unset = UNSET
    started: datetime.datetime | Unset = UNSET
    version: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.front_door_load import FrontDoorLoad  # noqa: PLC0415

        draining = self.draining

        id = self.id

        load: dict[str, Any] | Unset = UNSET
        if not isinstance(self.load, Unset):
            load = self.load.to_dict()

        region = self.region

        started: str | Unset = UNSET
        if not isinstance(self.started, Unset):
            started = self.started.isoformat()

        version = self.version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "draining": draining,
                "id": id,
            }
        )
        if load is not UNSET:
            field_dict["load"] = load
        if region is not UNSET:
            field_dict["region"] = region
        if started is not UNSET:
            field_dict["started"] = started
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.front_door_load import FrontDoorLoad  # noqa: PLC0415

        d = dict(src_dict)
        draining = d.pop("draining")

        id = d.pop("id")

        _load = d.pop("load", UNSET)
        load: FrontDoorLoad | Unset
        if isinstance(_load, Unset):
            load = UNSET
        else:
            load = FrontDoorLoad.from_dict(_load)

        region = d.pop("region", UNSET)

        _started = d.pop("started", UNSET)
        started: datetime.datetime | Unset
        if isinstance(_started, Unset):
            started = UNSET
        else:
            started = datetime.datetime.fromisoformat(_started)

        version = d.pop("version", UNSET)

        front_door_item = cls(
            draining=draining,
            id=id,
            load=load,
            region=region,
            started=started,
            version=version,
        )

        front_door_item.additional_properties = d
        return front_door_item

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
