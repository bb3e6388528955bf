from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.configuration_disagreement import ConfigurationDisagreement
    from ..models.configured_process import ConfiguredProcess


T = TypeVar("T", bound="ConfigurationStatus")


@_attrs_define
class ConfigurationStatus:
    """
    Attributes:
        disagreements (list[ConfigurationDisagreement]): Parts for which processes use different versions: the policy of
            all processes, the keys of front doors and of approvers, and each server of the workers that run it. Also
            workers that do not trust the key with which an approver or a front door signs approved calls: they refuse those
            calls. After an edit, a part is listed until all processes have read it.
        processes (list[ConfiguredProcess]): The live front doors, approvers and workers. The answering one is first.
    """

    disagreements: list[ConfigurationDisagreement]
    processes: list[ConfiguredProcess]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration_disagreement import ConfigurationDisagreement  # noqa: PLC0415
        from ..models.configured_process import ConfiguredProcess  # noqa: PLC0415

        disagreements = []
        for disagreements_item_data in self.disagreements:
            disagreements_item = disagreements_item_data.to_dict()
            disagreements.append(disagreements_item)

        processes = []
        for processes_item_data in self.processes:
            processes_item = processes_item_data.to_dict()
            processes.append(processes_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "disagreements": disagreements,
                "processes": processes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_disagreement import ConfigurationDisagreement  # noqa: PLC0415
        from ..models.configured_process import ConfiguredProcess  # noqa: PLC0415

        d = dict(src_dict)
        disagreements = []
        _disagreements = d.pop("disagreements")
        for disagreements_item_data in _disagreements:
            disagreements_item = ConfigurationDisagreement.from_dict(disagreements_item_data)

            disagreements.append(disagreements_item)

        processes = []
        _processes = d.pop("processes")
        for processes_item_data in _processes:
            processes_item = ConfiguredProcess.from_dict(processes_item_data)

            processes.append(processes_item)

        configuration_status = cls(
            disagreements=disagreements,
            processes=processes,
        )

        configuration_status.additional_properties = d
        return configuration_status

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
