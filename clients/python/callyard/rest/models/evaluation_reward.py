from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_estimate import EvaluationEstimate


T = TypeVar("T", bound="EvaluationReward")


@_attrs_define
class EvaluationReward:
    """
    Attributes:
        mean (EvaluationEstimate):
        name (str): The name of the term, or full for the reward with all its terms.
    """

    mean: EvaluationEstimate
    name: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        mean = self.mean.to_dict()

        name = self.name

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "mean": mean,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        d = dict(src_dict)
        mean = EvaluationEstimate.from_dict(d.pop("mean"))

        name = d.pop("name")

        evaluation_reward = cls(
            mean=mean,
            name=name,
        )

        evaluation_reward.additional_properties = d
        return evaluation_reward

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
