from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_estimate import EvaluationEstimate
    from ..models.evaluation_turn_types import EvaluationTurnTypes


T = TypeVar("T", bound="EvaluationTurn")


@_attrs_define
class EvaluationTurn:
    """
    Attributes:
        accuracy (EvaluationEstimate):
        samples (int): The number of conversations with this turn.
        turn (int): The number of the turn, from 1.
        types (EvaluationTurnTypes): The number of answers of each type.
    """

    accuracy: EvaluationEstimate
    samples: int
    turn: int
    types: EvaluationTurnTypes
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415
        from ..models.evaluation_turn_types import EvaluationTurnTypes  # noqa: PLC0415

        accuracy = self.accuracy.to_dict()

        samples = self.samples

        turn = self.turn

        types = self.types.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accuracy": accuracy,
                "samples": samples,
                "turn": turn,
                "types": types,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415
        from ..models.evaluation_turn_types import EvaluationTurnTypes  # noqa: PLC0415

        d = dict(src_dict)
        accuracy = EvaluationEstimate.from_dict(d.pop("accuracy"))

        samples = d.pop("samples")

        turn = d.pop("turn")

        types = EvaluationTurnTypes.from_dict(d.pop("types"))

        evaluation_turn = cls(
            accuracy=accuracy,
            samples=samples,
            turn=turn,
            types=types,
        )

        evaluation_turn.additional_properties = d
        return evaluation_turn

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
