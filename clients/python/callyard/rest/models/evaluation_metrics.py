from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_estimate import EvaluationEstimate


T = TypeVar("T", bound="EvaluationMetrics")


@_attrs_define
class EvaluationMetrics:
    """
    Attributes:
        accuracy (EvaluationEstimate):
        f1 (EvaluationEstimate):
        precision (EvaluationEstimate):
        recall (EvaluationEstimate):
    """

    accuracy: EvaluationEstimate
    f1: EvaluationEstimate
    precision: EvaluationEstimate
    recall: EvaluationEstimate
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        accuracy = self.accuracy.to_dict()

        f1 = self.f1.to_dict()

        precision = self.precision.to_dict()

        recall = self.recall.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accuracy": accuracy,
                "f1": f1,
                "precision": precision,
                "recall": recall,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        d = dict(src_dict)
        accuracy = EvaluationEstimate.from_dict(d.pop("accuracy"))

        f1 = EvaluationEstimate.from_dict(d.pop("f1"))

        precision = EvaluationEstimate.from_dict(d.pop("precision"))

        recall = EvaluationEstimate.from_dict(d.pop("recall"))

        evaluation_metrics = cls(
            accuracy=accuracy,
            f1=f1,
            precision=precision,
            recall=recall,
        )

        evaluation_metrics.additional_properties = d
        return evaluation_metrics

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
