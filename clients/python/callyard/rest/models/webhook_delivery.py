from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.webhook_delivery_state import WebhookDeliveryState
from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="WebhookDelivery")


@_attrs_define
class WebhookDelivery:
    """
    Attributes:
        attempts (int): The number of attempts that were started.
        created_at (datetime.datetime): When it was accepted.
        id (str): The header webhook-id of its requests.
        receiver (str): The host and port of the receiver.
        size (int): The size of the body, in bytes.
        state (WebhookDeliveryState): waiting: attempts continue. dead: it was given up.
        type_ (str): The type of the event.
        url (str): The URL of the receiver. It can contain a secret.
        ended_at (datetime.datetime | Unset): When it was given up.
        last_error (str | Unset): Why the last attempt failed.
        next_attempt_at (datetime.datetime | Unset): When the next attempt is due; absent if it was given up.
        reason (str | Unset): Why it was given up.
        tenant (str | Unset): The tenant of the call or batch; absent for the default tenant.
    """

    attempts: int
    created_at: datetime.datetime
    id: str
    receiver: str
    size: int
    state: WebhookDeliveryState
    type_: str
    url: str
    ended_at: datetime.datetime | Unset = UNSET
    last_error: str | Unset = UNSET
    next_attempt_at: datetime.datetime | Unset = UNSET
    reason: str | Unset = UNSET
    tenant: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        attempts = self.attempts

        created_at = self.created_at.isoformat()

        id = self.id

        receiver = self.receiver

        size = self.size

        state = self.state.value

        type_ = self.type_

        url = self.url

        ended_at: str | Unset = UNSET
        if not isinstance(self.ended_at, Unset):
            ended_at = self.ended_at.isoformat()

        last_error = self.last_error

        next_attempt_at: str | Unset = UNSET
        if not isinstance(self.next_attempt_at, Unset):
            next_attempt_at = self.next_attempt_at.isoformat()

        reason = self.reason

        tenant = self.tenant

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "attempts": attempts,
                "created_at": created_at,
                "id": id,
                "receiver": receiver,
                "size": size,
                "state": state,
                "type": type_,
                "url": url,
            }
        )
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if last_error is not UNSET:
            field_dict["last_error"] = last_error
        if next_attempt_at is not UNSET:
            field_dict["next_attempt_at"] = next_attempt_at
        if reason is not UNSET:
            field_dict["reason"] = reason
        if tenant is not UNSET:
            field_dict["tenant"] = tenant

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        attempts = d.pop("attempts")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        id = d.pop("id")

        receiver = d.pop("receiver")

        size = d.pop("size")

        state = WebhookDeliveryState(d.pop("state"))

        type_ = d.pop("type")

        url = d.pop("url")

        _ended_at = d.pop("ended_at", UNSET)
        ended_at: datetime.datetime | Unset
        if isinstance(_ended_at, Unset):
            ended_at = UNSET
        else:
            ended_at = datetime.datetime.fromisoformat(_ended_at)

        last_error = d.pop("last_error", UNSET)

        _next_attempt_at = d.pop("next_attempt_at", UNSET)
        next_attempt_at: datetime.datetime | Unset
        if isinstance(_next_attempt_at, Unset):
            next_attempt_at = UNSET
        else:
            next_attempt_at = datetime.datetime.fromisoformat(_next_attempt_at)

        reason = d.pop("reason", UNSET)

        tenant = d.pop("tenant", UNSET)

        webhook_delivery = cls(
            attempts=attempts,
            created_at=created_at,
            id=id,
            receiver=receiver,
            size=size,
            state=state,
            type_=type_,
            url=url,
            ended_at=ended_at,
            last_error=last_error,
            next_attempt_at=next_attempt_at,
            reason=reason,
            tenant=tenant,
        )

        webhook_delivery.additional_properties = d
        return webhook_delivery

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
