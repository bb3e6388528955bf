from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.problem_fault import ProblemFault
    from ..models.problem_rpc_error import ProblemRPCError


T = TypeVar("T", bound="Problem")


@_attrs_define
class Problem:
    """
    Attributes:
        detail (str): The fault and the fix. It never contains an argument.
        error (str): The same text as detail, for clients that read this member.
        retryable (bool): Whether the same request can be sent again without a second side effect.
        status (int): The HTTP status.
        title (str): The kind of problem as a short phrase.
        type_ (str): The kind of problem. It is stable, and its path serves an explanation.
        call_id (str | Unset): The call that failed, if it had an id.
        cancel_requested (bool | Unset): Whether the call was asked to stop while it ran. It may have done part of its
            work.
        connect_url (str | Unset): Where the person behind the call connects to the server, if it requires a credential
            of that person.
        errors (list[ProblemFault] | Unset): Each fault of the arguments, the body or a parameter; absent if there is
            none.
        rpc (ProblemRPCError | Unset):
    """

    detail: str
    error: str
    retryable: bool
    status: int
    title: str
    type_: str
    call_id: str | Unset = UNSET
    cancel_requested: bool | Unset = UNSET
    connect_url: str | Unset = UNSET
    errors: list[ProblemFault] | Unset = UNSET
    rpc: ProblemRPCError | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.problem_fault import ProblemFault  # noqa: PLC0415
        from ..models.problem_rpc_error import ProblemRPCError  # noqa: PLC0415

        detail = self.detail

        error = self.error

        retryable = self.retryable

        status = self.status

        title = self.title

        type_ = self.type_

        call_id = self.call_id

        cancel_requested = self.cancel_requested

        connect_url = self.connect_url

        errors: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.errors, Unset):
            errors = []
            for errors_item_data in self.errors:
                errors_item = errors_item_data.to_dict()
                errors.append(errors_item)

        rpc: dict[str, Any] | Unset = UNSET
        if not isinstance(self.rpc, Unset):
            rpc = self.rpc.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "detail": detail,
                "error": error,
                "retryable": retryable,
                "status": status,
                "title": title,
                "type": type_,
            }
        )
        if call_id is not UNSET:
            field_dict["call_id"] = call_id
        if cancel_requested is not UNSET:
            field_dict["cancel_requested"] = cancel_requested
        if connect_url is not UNSET:
            field_dict["connect_url"] = connect_url
        if errors is not UNSET:
            field_dict["errors"] = errors
        if rpc is not UNSET:
            field_dict["rpc"] = rpc

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.problem_fault import ProblemFault  # noqa: PLC0415
        from ..models.problem_rpc_error import ProblemRPCError  # noqa: PLC0415

        d = dict(src_dict)
        detail = d.pop("detail")

        error = d.pop("error")

        retryable = d.pop("retryable")

        status = d.pop("status")

        title = d.pop("title")

        type_ = d.pop("type")

        call_id = d.pop("call_id", UNSET)

        cancel_requested = d.pop("cancel_requested", UNSET)

        connect_url = d.pop("connect_url", UNSET)

        _errors = d.pop("errors", UNSET)
        errors: list[ProblemFault] | Unset = UNSET
        if _errors is not UNSET:
            errors = []
            for errors_item_data in _errors:
                errors_item = ProblemFault.from_dict(errors_item_data)

                errors.append(errors_item)

        _rpc = d.pop("rpc", UNSET)
        rpc: ProblemRPCError | Unset
        if isinstance(_rpc, Unset):
            rpc = UNSET
        else:
            rpc = ProblemRPCError.from_dict(_rpc)

        problem = cls(
            detail=detail,
            error=error,
            retryable=retryable,
            status=status,
            title=title,
            type_=type_,
            call_id=call_id,
            cancel_requested=cancel_requested,
            connect_url=connect_url,
            errors=errors,
            rpc=rpc,
        )

        problem.additional_properties = d
        return problem

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
