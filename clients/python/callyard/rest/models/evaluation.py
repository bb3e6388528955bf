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
    from ..models.evaluation_estimate import EvaluationEstimate


T = TypeVar("T", bound="Evaluation")


@_attrs_define
class Evaluation:
    """
    Attributes:
        at (datetime.datetime): When the report was written or, for a run without a report, when its files were written.
        id (str): The name of the run, which is that of its folder.
        scored (bool): Whether there is a report. If false, fault has the reason, and there are no scores.
        accuracy (EvaluationEstimate | Unset):
        answers (int | Unset): The number of scored answers.
        data (str | Unset): The name of the data set.
        f1 (EvaluationEstimate | Unset):
        fault (str | Unset): The reason that there is no report.
        reward (EvaluationEstimate | Unset):
        samples (int | Unset): The number of scored samples.
        trials (int | Unset): The maximum number of answers to one sample.
    """

    at: datetime.datetime
    id: str
    scored: bool
    accuracy: EvaluationEstimate | Unset = UNSET
    answers: int | Unset = UNSET
    data: str | Unset = UNSET
    f1: EvaluationEstimate | Unset = UNSET
    fault: str | Unset = UNSET
    reward: EvaluationEstimate | Unset = UNSET
    samples: int | Unset = UNSET
    trials: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        at = self.at.isoformat()

        id = self.id

        scored = self.scored

        accuracy: dict[str, Any] | Unset = UNSET
        if not isinstance(self.accuracy, Unset):
            accuracy = self.accuracy.to_dict()

        answers = self.answers

        data = self.data

        f1: dict[str, Any] | Unset = UNSET
        if not isinstance(self.f1, Unset):
            f1 = self.f1.to_dict()

        fault = self.fault

        reward: dict[str, Any] | Unset = UNSET
        if not isinstance(self.reward, Unset):
            reward = self.reward.to_dict()

        samples = self.samples

        trials = self.trials

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "id": id,
                "scored": scored,
            }
        )
        if accuracy is not UNSET:
            field_dict["accuracy"] = accuracy
        if answers is not UNSET:
            field_dict["answers"] = answers
        if data is not UNSET:
            field_dict["data"] = data
        if f1 is not UNSET:
            field_dict["f1"] = f1
        if fault is not UNSET:
            field_dict["fault"] = fault
        if reward is not UNSET:
            field_dict["reward"] = reward
        if samples is not UNSET:
            field_dict["samples"] = samples
        if trials is not UNSET:
            field_dict["trials"] = trials

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        id = d.pop("id")

        scored = d.pop("scored")

        _accuracy = d.pop("accuracy", UNSET)
        accuracy: EvaluationEstimate | Unset
        if isinstance(_accuracy, Unset):
            accuracy = UNSET
        else:
            accuracy = EvaluationEstimate.from_dict(_accuracy)

        answers = d.pop("answers", UNSET)

        data = d.pop("data", UNSET)

        _f1 = d.pop("f1", UNSET)
        f1: EvaluationEstimate | Unset
        if isinstance(_f1, Unset):
            f1 = UNSET
        else:
            f1 = EvaluationEstimate.from_dict(_f1)

        fault = d.pop("fault", UNSET)

        _reward = d.pop("reward", UNSET)
        reward: EvaluationEstimate | Unset
        if isinstance(_reward, Unset):
            reward = UNSET
        else:
            reward = EvaluationEstimate.from_dict(_reward)

        samples = d.pop("samples", UNSET)

        trials = d.pop("trials", UNSET)

        evaluation = cls(
            at=at,
            id=id,
            scored=scored,
            accuracy=accuracy,
            answers=answers,
            data=data,
            f1=f1,
            fault=fault,
            reward=reward,
            samples=samples,
            trials=trials,
        )

        evaluation.additional_properties = d
        return evaluation

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
