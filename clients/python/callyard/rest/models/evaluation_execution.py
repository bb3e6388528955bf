from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.evaluation_estimate import EvaluationEstimate
    from ..models.evaluation_execution_masked_because import EvaluationExecutionMaskedBecause


T = TypeVar("T", bound="EvaluationExecution")


@_attrs_define
class EvaluationExecution:
    """
    Attributes:
        answers (int): The number of answers whose calls were run.
        calls (int): The number of calls in these answers.
        denied (int): Calls that the policy, a scope or a person denied.
        masked (int): Answers without a valid result; no share includes them.
        ok (int): Calls without an error.
        refused (int): Calls that were not run because the sample does not offer the tool.
        masked_because (EvaluationExecutionMaskedBecause | Unset): The number of masked answers by reason.
        results (EvaluationEstimate | Unset):
        run (EvaluationEstimate | Unset):
        state (EvaluationEstimate | Unset):
    """

    answers: int
    calls: int
    denied: int
    masked: int
    ok: int
    refused: int
    masked_because: EvaluationExecutionMaskedBecause | Unset = UNSET
    results: EvaluationEstimate | Unset = UNSET
    run: EvaluationEstimate | Unset = UNSET
    state: EvaluationEstimate | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415
        from ..models.evaluation_execution_masked_because import EvaluationExecutionMaskedBecause  # noqa: PLC0415

        answers = self.answers

        calls = self.calls

        denied = self.denied

        masked = self.masked

        ok = self.ok

        refused = self.refused

        masked_because: dict[str, Any] | Unset = UNSET
        if not isinstance(self.masked_because, Unset):
            masked_because = self.masked_because.to_dict()

        results: dict[str, Any] | Unset = UNSET
        if not isinstance(self.results, Unset):
            results = self.results.to_dict()

        run: dict[str, Any] | Unset = UNSET
        if not isinstance(self.run, Unset):
            run = self.run.to_dict()

        state: dict[str, Any] | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "answers": answers,
                "calls": calls,
                "denied": denied,
                "masked": masked,
                "ok": ok,
                "refused": refused,
            }
        )
        if masked_because is not UNSET:
            field_dict["masked_because"] = masked_because
        if results is not UNSET:
            field_dict["results"] = results
        if run is not UNSET:
            field_dict["run"] = run
        if state is not UNSET:
            field_dict["state"] = state

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_estimate import EvaluationEstimate  # noqa: PLC0415
        from ..models.evaluation_execution_masked_because import EvaluationExecutionMaskedBecause  # noqa: PLC0415

        d = dict(src_dict)
        answers = d.pop("answers")

        calls = d.pop("calls")

        denied = d.pop("denied")

        masked = d.pop("masked")

        ok = d.pop("ok")

        refused = d.pop("refused")

        _masked_because = d.pop("masked_because", UNSET)
        masked_because: EvaluationExecutionMaskedBecause | Unset
        if isinstance(_masked_because, Unset):
            masked_because = UNSET
        else:
            masked_because = EvaluationExecutionMaskedBecause.from_dict(_masked_because)

        _results = d.pop("results", UNSET)
        results: EvaluationEstimate | Unset
        if isinstance(_results, Unset):
            results = UNSET
        else:
            results = EvaluationEstimate.from_dict(_results)

        _run = d.pop("run", UNSET)
        run: EvaluationEstimate | Unset
        if isinstance(_run, Unset):
            run = UNSET
        else:
            run = EvaluationEstimate.from_dict(_run)

        _state = d.pop("state", UNSET)
        state: EvaluationEstimate | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = EvaluationEstimate.from_dict(_state)

        evaluation_execution = cls(
            answers=answers,
            calls=calls,
            denied=denied,
            masked=masked,
            ok=ok,
            refused=refused,
            masked_because=masked_because,
            results=results,
            run=run,
            state=state,
        )

        evaluation_execution.additional_properties = d
        return evaluation_execution

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
