from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.policy_test_principal import PolicyTestPrincipal
    from ..models.policy_test_request_arguments import PolicyTestRequestArguments


T = TypeVar("T", bound="PolicyTestRequest")


@_attrs_define
class PolicyTestRequest:
    """
    Attributes:
        server (str): The id of the server.
        tool (str): The name of the tool.
        arguments (PolicyTestRequestArguments | Unset): The arguments. The default is an empty object.
        policy (str | Unset): A draft: the text of a policy file. It is used instead of the policy of the platform in
            force. It requires the scopes of POST /policy/dry-run.
        principal (PolicyTestPrincipal | Unset):
    """

    server: str
    tool: str
    arguments: PolicyTestRequestArguments | Unset = UNSET
    policy: str | Unset = UNSET
    principal: PolicyTestPrincipal | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.policy_test_principal import PolicyTestPrincipal  # noqa: PLC0415
        from ..models.policy_test_request_arguments import PolicyTestRequestArguments  # noqa: PLC0415

        server = self.server

        tool = self.tool

        arguments: dict[str, Any] | Unset = UNSET
        if not isinstance(self.arguments, Unset):
            arguments = self.arguments.to_dict()

        policy = self.policy

        principal: dict[str, Any] | Unset = UNSET
        if not isinstance(self.principal, Unset):
            principal = self.principal.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "server": server,
                "tool": tool,
            }
        )
        if arguments is not UNSET:
            field_dict["arguments"] = arguments
        if policy is not UNSET:
            field_dict["policy"] = policy
        if principal is not UNSET:
            field_dict["principal"] = principal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.policy_test_principal import PolicyTestPrincipal  # noqa: PLC0415
        from ..models.policy_test_request_arguments import PolicyTestRequestArguments  # noqa: PLC0415

        d = dict(src_dict)
        server = d.pop("server")

        tool = d.pop("tool")

        _arguments = d.pop("arguments", UNSET)
        arguments: PolicyTestRequestArguments | Unset
        if isinstance(_arguments, Unset):
            arguments = UNSET
        else:
            arguments = PolicyTestRequestArguments.from_dict(_arguments)

        policy = d.pop("policy", UNSET)

        _principal = d.pop("principal", UNSET)
        principal: PolicyTestPrincipal | Unset
        if isinstance(_principal, Unset):
            principal = UNSET
        else:
            principal = PolicyTestPrincipal.from_dict(_principal)

        policy_test_request = cls(
            server=server,
            tool=tool,
            arguments=arguments,
            policy=policy,
            principal=principal,
        )

        return policy_test_request
