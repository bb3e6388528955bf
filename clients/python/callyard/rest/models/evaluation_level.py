from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.evaluation_level_level import EvaluationLevelLevel
from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_category import EvaluationCategory
    from ..models.evaluation_level_types import EvaluationLevelTypes
    from ..models.evaluation_metrics import EvaluationMetrics


T = TypeVar("T", bound="EvaluationLevel")


@_attrs_define
class EvaluationLevel:
    """
    Attributes:
        categories (list[EvaluationCategory]): The scores of each category of samples.
        level (EvaluationLevelLevel): The extraction level: the calls that count, from only well-formed ones to all that
            are found in the text.
        macro (EvaluationMetrics):
        micro (EvaluationMetrics):
        types (EvaluationLevelTypes): The number of answers of each type.
    """

    categories: list[EvaluationCategory]
    level: EvaluationLevelLevel
    macro: EvaluationMetrics
    micro: EvaluationMetrics
    types: EvaluationLevelTypes
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_category import EvaluationCategory  # noqa: PLC0415
        from ..models.evaluation_level_types import EvaluationLevelTypes  # noqa: PLC0415
        from ..models.evaluation_metrics import EvaluationMetrics  # noqa: PLC0415

        categories = []
        for categories_item_data in self.categories:
            categories_item = categories_item_data.to_dict()
            categories.append(categories_item)

        level = self.level.value

        macro = self.macro.to_dict()

        micro = self.micro.to_dict()

        types = self.types.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "categories": categories,
                "level": level,
                "macro": macro,
                "micro": micro,
                "types": types,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_category import EvaluationCategory  # noqa: PLC0415
        from ..models.evaluation_level_types import EvaluationLevelTypes  # noqa: PLC0415
        from ..models.evaluation_metrics import EvaluationMetrics  # noqa: PLC0415

        d = dict(src_dict)
        categories = []
        _categories = d.pop("categories")
        for categories_item_data in _categories:
            categories_item = EvaluationCategory.from_dict(categories_item_data)

            categories.append(categories_item)

        level = EvaluationLevelLevel(d.pop("level"))

        macro = EvaluationMetrics.from_dict(d.pop("macro"))

        micro = EvaluationMetrics.from_dict(d.pop("micro"))

        types = EvaluationLevelTypes.from_dict(d.pop("types"))

        evaluation_level = cls(
            categories=categories,
            level=level,
            macro=macro,
            micro=micro,
            types=types,
        )

        evaluation_level.additional_properties = d
        return evaluation_level

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
