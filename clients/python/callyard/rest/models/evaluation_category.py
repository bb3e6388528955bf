from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_category_types import EvaluationCategoryTypes
    from ..models.evaluation_metrics import EvaluationMetrics


T = TypeVar("T", bound="EvaluationCategory")


@_attrs_define
class EvaluationCategory:
    """
    Attributes:
        metrics (EvaluationMetrics):
        name (str): The name of the category.
        samples (int): The number of samples in the category.
        types (EvaluationCategoryTypes): The number of answers of each type.
    """

    metrics: EvaluationMetrics
    name: str
    samples: int
    types: EvaluationCategoryTypes
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_category_types import EvaluationCategoryTypes  # noqa: PLC0415
        from ..models.evaluation_metrics import EvaluationMetrics  # noqa: PLC0415

        metrics = self.metrics.to_dict()

        name = self.name

        samples = self.samples

        types = self.types.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "metrics": metrics,
                "name": name,
                "samples": samples,
                "types": types,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_category_types import EvaluationCategoryTypes  # noqa: PLC0415
        from ..models.evaluation_metrics import EvaluationMetrics  # noqa: PLC0415

        d = dict(src_dict)
        metrics = EvaluationMetrics.from_dict(d.pop("metrics"))

        name = d.pop("name")

        samples = d.pop("samples")

        types = EvaluationCategoryTypes.from_dict(d.pop("types"))

        evaluation_category = cls(
            metrics=metrics,
            name=name,
            samples=samples,
            types=types,
        )

        evaluation_category.additional_properties = d
        return evaluation_category

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
