from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_check import EvaluationCheck
    from ..models.evaluation_estimate import EvaluationEstimate
    from ..models.evaluation_execution import EvaluationExecution
    from ..models.evaluation_level import EvaluationLevel
    from ..models.evaluation_pass import EvaluationPass
    from ..models.evaluation_report_scoring import EvaluationReportScoring
    from ..models.evaluation_report_settings import EvaluationReportSettings
    from ..models.evaluation_reward import EvaluationReward
    from ..models.evaluation_turn import EvaluationTurn


T = TypeVar("T", bound="EvaluationReport")


@_attrs_define
class EvaluationReport:
    """
    Attributes:
        answers (int): The number of scored answers.
        id (str): The name of the run, which is that of its folder.
        inputs (str): The digest of all inputs of the report.
        levels (list[EvaluationLevel]): The scores at each extraction level: strict, published and lenient.
        rewards (list[EvaluationReward]): The reward with all its terms, and each term alone.
        rules (list[str]): A short description of the scoring rules.
        samples (int): The number of scored samples.
        samples_digest (str): The digest of the samples.
        scoring (EvaluationReportScoring): The settings of the scores, with the constants of the reward.
        settings (EvaluationReportSettings): The settings of the statistics.
        trials (int): The maximum number of answers to one sample.
        unanswered (int): Samples without an answer that count as wrong.
        version (str): The version of the program that wrote it.
        accuracy_with_similar (EvaluationEstimate | Unset):
        check (EvaluationCheck | Unset):
        data (str | Unset): The name of the data set.
        executed (EvaluationExecution | Unset):
        pass_ (list[EvaluationPass] | Unset): The accuracy over several trials.
        skipped (list[str] | Unset): Samples without an answer that are not counted.
        turns (list[EvaluationTurn] | Unset): The turns of conversations whose calls are expected turn by turn.
    """

    answers: int
    id: str
    inputs: str
    levels: list[EvaluationLevel]
    rewards: list[EvaluationReward]
    rules: list[str]
    samples: int
    samples_digest: str
    scoring: EvaluationReportScoring
    settings: EvaluationReportSettings
    trials: int
    unanswered: int
    version: str
    accuracy_with_similar: EvaluationEstimate | Unset = UNSET
    check: EvaluationCheck | Unset = UNSET
    data: str | Unset = UNSET
    executed: EvaluationExecution | Unset = UNSET
    pass_: list[EvaluationPass] | Unset = UNSET
    skipped: list[str] | Unset = UNSET
    turns: list[EvaluationTurn] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_check import EvaluationCheck  # noqa: PLC0415
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415
        from ..models.evaluation_execution import EvaluationExecution  # noqa: PLC0415
        from ..models.evaluation_level import EvaluationLevel  # noqa: PLC0415
        from ..models.evaluation_pass import EvaluationPass  # noqa: PLC0415
        from ..models.evaluation_report_scoring import EvaluationReportScoring  # noqa: PLC0415
        from ..models.evaluation_report_settings import EvaluationReportSettings  # noqa: PLC0415
        from ..models.evaluation_reward import EvaluationReward  # noqa: PLC0415
        from ..models.evaluation_turn import EvaluationTurn  # noqa: PLC0415

        answers = self.answers

        id = self.id

        inputs = self.inputs

        levels = []
        for levels_item_data in self.levels:
            levels_item = levels_item_data.to_dict()
            levels.append(levels_item)

        rewards = []
        for rewards_item_data in self.rewards:
            rewards_item = rewards_item_data.to_dict()
            rewards.append(rewards_item)

        rules = self.rules

        samples = self.samples

        samples_digest = self.samples_digest

        scoring = self.scoring.to_dict()

        settings = self.settings.to_dict()

        trials = self.trials

        unanswered = self.unanswered

        version = self.version

        accuracy_with_similar: dict[str, Any] | Unset = UNSET
        if not isinstance(self.accuracy_with_similar, Unset):
            accuracy_with_similar = self.accuracy_with_similar.to_dict()

        check: dict[str, Any] | Unset = UNSET
        if not isinstance(self.check, Unset):
            check = self.check.to_dict()

        data = self.data

        executed: dict[str, Any] | Unset = UNSET
        if not isinstance(self.executed, Unset):
            executed = self.executed.to_dict()

        pass_: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.pass_, Unset):
            pass_ = []
            for pass_item_data in self.pass_:
                pass_item = pass_item_data.to_dict()
                pass_.append(pass_item)

        skipped: list[str] | Unset = UNSET
        if not isinstance(self.skipped, Unset):
            skipped = self.skipped

        turns: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.turns, Unset):
            turns = []
            for turns_item_data in self.turns:
                turns_item = turns_item_data.to_dict()
                turns.append(turns_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "answers": answers,
                "id": id,
                "inputs": inputs,
                "levels": levels,
                "rewards": rewards,
                "rules": rules,
                "samples": samples,
                "samples_digest": samples_digest,
                "scoring": scoring,
                "settings": settings,
                "trials": trials,
                "unanswered": unanswered,
                "version": version,
            }
        )
        if accuracy_with_similar is not UNSET:
            field_dict["accuracy_with_similar"] = accuracy_with_similar
        if check is not UNSET:
            field_dict["check"] = check
        if data is not UNSET:
            field_dict["data"] = data
        if executed is not UNSET:
            field_dict["executed"] = executed
        if pass_ is not UNSET:
            field_dict["pass"] = pass_
        if skipped is not UNSET:
            field_dict["skipped"] = skipped
        if turns is not UNSET:
            field_dict["turns"] = turns

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_check import EvaluationCheck  # noqa: PLC0415
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415
        from ..models.evaluation_execution import EvaluationExecution  # noqa: PLC0415
        from ..models.evaluation_level import EvaluationLevel  # noqa: PLC0415
        from ..models.evaluation_pass import EvaluationPass  # noqa: PLC0415
        from ..models.evaluation_report_scoring import EvaluationReportScoring  # noqa: PLC0415
        from ..models.evaluation_report_settings import EvaluationReportSettings  # noqa: PLC0415
        from ..models.evaluation_reward import EvaluationReward  # noqa: PLC0415
        from ..models.evaluation_turn import EvaluationTurn  # noqa: PLC0415

        d = dict(src_dict)
        answers = d.pop("answers")

        id = d.pop("id")

        inputs = d.pop("inputs")

        levels = []
        _levels = d.pop("levels")
        for levels_item_data in _levels:
            levels_item = EvaluationLevel.from_dict(levels_item_data)

            levels.append(levels_item)

        rewards = []
        _rewards = d.pop("rewards")
        for rewards_item_data in _rewards:
            rewards_item = EvaluationReward.from_dict(rewards_item_data)

            rewards.append(rewards_item)

        rules = cast(list[str], d.pop("rules"))

        samples = d.pop("samples")

        samples_digest = d.pop("samples_digest")

        scoring = EvaluationReportScoring.from_dict(d.pop("scoring"))

        settings = EvaluationReportSettings.from_dict(d.pop("settings"))

        trials = d.pop("trials")

        unanswered = d.pop("unanswered")

        version = d.pop("version")

        _accuracy_with_similar = d.pop("accuracy_with_similar", UNSET)
        accuracy_with_similar: EvaluationEstimate | Unset
        if isinstance(_accuracy_with_similar, Unset):
            accuracy_with_similar = UNSET
        else:
            accuracy_with_similar = EvaluationEstimate.from_dict(_accuracy_with_similar)

        _check = d.pop("check", UNSET)
        check: EvaluationCheck | Unset
        if isinstance(_check, Unset):
            check = UNSET
        else:
            check = EvaluationCheck.from_dict(_check)

        data = d.pop("data", UNSET)

        _executed = d.pop("executed", UNSET)
        executed: EvaluationExecution | Unset
        if isinstance(_executed, Unset):
            executed = UNSET
        else:
            executed = EvaluationExecution.from_dict(_executed)

        _pass_ = d.pop("pass", UNSET)
        pass_: list[EvaluationPass] | Unset = UNSET
        if _pass_ is not UNSET:
            pass_ = []
            for pass_item_data in _pass_:
                pass_item = EvaluationPass.from_dict(pass_item_data)

                pass_.append(pass_item)

        skipped = cast(list[str], d.pop("skipped", UNSET))

        _turns = d.pop("turns", UNSET)
        turns: list[EvaluationTurn] | Unset = UNSET
        if _turns is not UNSET:
            turns = []
            for turns_item_data in _turns:
                turns_item = EvaluationTurn.from_dict(turns_item_data)

                turns.append(turns_item)

        evaluation_report = cls(
            answers=answers,
            id=id,
            inputs=inputs,
            levels=levels,
            rewards=rewards,
            rules=rules,
            samples=samples,
            samples_digest=samples_digest,
            scoring=scoring,
            settings=settings,
            trials=trials,
            unanswered=unanswered,
            version=version,
            accuracy_with_similar=accuracy_with_similar,
            check=check,
            data=data,
            executed=executed,
            pass_=pass_,
            skipped=skipped,
            turns=turns,
        )

        evaluation_report.additional_properties = d
        return evaluation_report

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
