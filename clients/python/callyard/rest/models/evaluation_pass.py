from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_estimate import EvaluationEstimate


T = TypeVar("T", bound="EvaluationPass")


@_attrs_define
class EvaluationPass:
    """
    Attributes:
        k (int): The number of trials.
        pass_all_k (EvaluationEstimate):
        pass_at_k (EvaluationEstimate):
    """

    k: int
    pass_all_k: EvaluationEstimate
    pass_at_k: EvaluationEstimate
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        k = self.k

        pass_all_k = self.pass_all_k.to_dict()

        pass_at_k = self.pass_at_k.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "k": k,
                "pass_all_k": pass_all_k,
                "pass_at_k": pass_at_k,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        d = dict(src_dict)
        k = d.pop("k")

        pass_all_k = EvaluationEstimate.from_dict(d.pop("pass_all_k"))

        pass_at_k = EvaluationEstimate.from_dict(d.pop("pass_at_k"))

        evaluation_pass = cls(
            k=k,
            pass_all_k=pass_all_k,
            pass_at_k=pass_at_k,
        )

        evaluation_pass.additional_properties = d
        return evaluation_pass

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
