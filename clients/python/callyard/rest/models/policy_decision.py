from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.policy_decision_arguments import PolicyDecisionArguments
from ..models.policy_decision_decision import PolicyDecisionDecision
from ..models.policy_decision_sandbox import PolicyDecisionSandbox
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.argument_fault import ArgumentFault
    from ..models.call_record_error import CallRecordError
    from ..models.policy_decision_approval import PolicyDecisionApproval


T = TypeVar("T", bound="PolicyDecision")


@_attrs_define
class PolicyDecision:
    """
    Attributes:
        arguments (PolicyDecisionArguments): Whether the arguments match the schema of the tool. unchecked: the call is
            refused before they are checked, such as for a disabled tool.
        decision (PolicyDecisionDecision): allowed: it would run at once, also in a container; held: it would wait for
            an approval; refused: it would not run.
        durable (bool): Whether the policy makes the call durable: it is stored before it runs.
        errors (list[ArgumentFault]): The faults of the arguments.
        reasons (list[str]): The reasons for the decision, the decisive one first.
        approval (PolicyDecisionApproval | Unset):
        error (CallRecordError | Unset):
        policy_version (str | Unset): The version of the policy; absent if the call is refused before the policy is
            evaluated. Then there is no rule, risk level, approval or sandbox, and reasons is empty.
        risk_level (int | Unset): The level of risk: 1 low, 2 medium, 3 high.
        rule (str | Unset): The rule that decides, if one does.
        sandbox (PolicyDecisionSandbox | Unset): The isolation in which the call would run, if it needs one.
    """

    arguments: PolicyDecisionArguments
    decision: PolicyDecisionDecision
    durable: bool
    errors: list[ArgumentFault]
    reasons: list[str]
    approval: PolicyDecisionApproval | Unset = UNSET
    error: CallRecordError | Unset = UNSET
    policy_version: str | Unset = UNSET
    risk_level: int | Unset = UNSET
    rule: str | Unset = UNSET
    sandbox: PolicyDecisionSandbox | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.argument_fault import ArgumentFault  # noqa: PLC0415
        from ..models.call_record_error import CallRecordError  # noqa: PLC0415
        from ..models.policy_decision_approval import PolicyDecisionApproval  # noqa: PLC0415

        arguments = self.arguments.value

        decision = self.decision.value

        durable = self.durable

        errors = []
        for errors_item_data in self.errors:
            errors_item = errors_item_data.to_dict()
            errors.append(errors_item)

        reasons = self.reasons

        approval: dict[str, Any] | Unset = UNSET
        if not isinstance(self.approval, Unset):
            approval = self.approval.to_dict()

        error: dict[str, Any] | Unset = UNSET
        if not isinstance(self.error, Unset):
            error = self.error.to_dict()

        policy_version = self.policy_version

        risk_level = self.risk_level

        rule = self.rule

        sandbox: str | Unset = UNSET
        if not isinstance(self.sandbox, Unset):
            sandbox = self.sandbox.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "arguments": arguments,
                "decision": decision,
                "durable": durable,
                "errors": errors,
                "reasons": reasons,
            }
        )
        if approval is not UNSET:
            field_dict["approval"] = approval
        if error is not UNSET:
            field_dict["error"] = error
        if policy_version is not UNSET:
            field_dict["policy_version"] = policy_version
        if risk_level is not UNSET:
            field_dict["risk_level"] = risk_level
        if rule is not UNSET:
            field_dict["rule"] = rule
        if sandbox is not UNSET:
            field_dict["sandbox"] = sandbox

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.argument_fault import ArgumentFault  # noqa: PLC0415
        from ..models.call_record_error import CallRecordError  # noqa: PLC0415
        from ..models.policy_decision_approval import PolicyDecisionApproval  # noqa: PLC0415

        d = dict(src_dict)
        arguments = PolicyDecisionArguments(d.pop("arguments"))

        decision = PolicyDecisionDecision(d.pop("decision"))

        durable = d.pop("durable")

        errors = []
        _errors = d.pop("errors")
        for errors_item_data in _errors:
            errors_item = ArgumentFault.from_dict(errors_item_data)

            errors.append(errors_item)

        reasons = cast(list[str], d.pop("reasons"))

        _approval = d.pop("approval", UNSET)
        approval: PolicyDecisionApproval | Unset
        if isinstance(_approval, Unset):
            approval = UNSET
        else:
            approval = PolicyDecisionApproval.from_dict(_approval)

        _error = d.pop("error", UNSET)
        error: CallRecordError | Unset
        if isinstance(_error, Unset):
            error = UNSET
        else:
            error = CallRecordError.from_dict(_error)

        policy_version = d.pop("policy_version", UNSET)

        risk_level = d.pop("risk_level", UNSET)

        rule = d.pop("rule", UNSET)

        _sandbox = d.pop("sandbox", UNSET)
        sandbox: PolicyDecisionSandbox | Unset
        if isinstance(_sandbox, Unset):
            sandbox = UNSET
        else:
            sandbox = PolicyDecisionSandbox(_sandbox)

        policy_decision = cls(
            arguments=arguments,
            decision=decision,
            durable=durable,
            errors=errors,
            reasons=reasons,
            approval=approval,
            error=error,
            policy_version=policy_version,
            risk_level=risk_level,
            rule=rule,
            sandbox=sandbox,
        )

        policy_decision.additional_properties = d
        return policy_decision

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
