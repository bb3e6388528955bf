from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_check_categories import EvaluationCheckCategories
    from ..models.evaluation_check_errors import EvaluationCheckErrors
    from ..models.evaluation_estimate import EvaluationEstimate


T = TypeVar("T", bound="EvaluationCheck")


@_attrs_define
class EvaluationCheck:
    """
    Attributes:
        categories (EvaluationCheckCategories): The share of accepted answers, by category.
        errors (EvaluationCheckErrors): The number of rejected answers, by their first fault.
        valid (EvaluationEstimate):
    """

    categories: EvaluationCheckCategories
    errors: EvaluationCheckErrors
    valid: EvaluationEstimate
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_check_categories import EvaluationCheckCategories  # noqa: PLC0415
        from ..models.evaluation_check_errors import EvaluationCheckErrors  # noqa: PLC0415
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        categories = self.categories.to_dict()

        errors = self.errors.to_dict()

        valid = self.valid.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "categories": categories,
                "errors": errors,
                "valid": valid,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_check_categories import EvaluationCheckCategories  # noqa: PLC0415
        from ..models.evaluation_check_errors import EvaluationCheckErrors  # noqa: PLC0415
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        d = dict(src_dict)
        categories = EvaluationCheckCategories.from_dict(d.pop("categories"))

        errors = EvaluationCheckErrors.from_dict(d.pop("errors"))

        valid = EvaluationEstimate.from_dict(d.pop("valid"))

        evaluation_check = cls(
            categories=categories,
            errors=errors,
            valid=valid,
        )

        evaluation_check.additional_properties = d
        return evaluation_check

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
