from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.batch_call import BatchCall
    from ..models.batch_request_labels import BatchRequestLabels


T = TypeVar("T", bound="BatchRequest")


@_attrs_define
class BatchRequest:
    """A batch in one document.

    Attributes:
        callback_url (str | Unset): The URL that is notified when the batch ends.
        calls (list[BatchCall] | Unset): The calls; optional if open is true.
        expires_in (int | Unset): The number of seconds within which calls must be sent to a worker; the default is
            86400 (24 hours).
        labels (BatchRequestLabels | Unset): The caller's own labels; a name has at most 64 bytes.
        open_ (bool | Unset): More calls follow with POST /batches/{id}/calls.
        priority (int | Unset): Each step of 5 doubles the batch's share of the capacity, or halves it.
        stream (bool | Unset): Stream the results in the answer as the calls end.
    """

    callback_url: str | Unset = UNSET
    calls: list[BatchCall] | Unset = UNSET
    expires_in: int | Unset = UNSET
    labels: BatchRequestLabels | Unset = UNSET
    open_: bool | Unset = UNSET
    priority: int | Unset = UNSET
    stream: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.batch_call import BatchCall  # noqa: PLC0415
        from ..models.batch_request_labels import BatchRequestLabels  # noqa: PLC0415

        callback_url = self.callback_url

        calls: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.calls, Unset):
            calls = []
            for calls_item_data in self.calls:
                calls_item = calls_item_data.to_dict()
                calls.append(calls_item)

        expires_in = self.expires_in

        labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.labels, Unset):
            labels = self.labels.to_dict()

        open_ = self.open_

        priority = self.priority

        stream = self.stream

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if callback_url is not UNSET:
            field_dict["callback_url"] = callback_url
        if calls is not UNSET:
            field_dict["calls"] = calls
        if expires_in is not UNSET:
            field_dict["expires_in"] = expires_in
        if labels is not UNSET:
            field_dict["labels"] = labels
        if open_ is not UNSET:
            field_dict["open"] = open_
        if priority is not UNSET:
            field_dict["priority"] = priority
        if stream is not UNSET:
            field_dict["stream"] = stream

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.batch_call import BatchCall  # noqa: PLC0415
        from ..models.batch_request_labels import BatchRequestLabels  # noqa: PLC0415

        d = dict(src_dict)
        callback_url = d.pop("callback_url", UNSET)

        _calls = d.pop("calls", UNSET)
        calls: list[BatchCall] | Unset = UNSET
        if _calls is not UNSET:
            calls = []
            for calls_item_data in _calls:
                calls_item = BatchCall.from_dict(calls_item_data)

                calls.append(calls_item)

        expires_in = d.pop("expires_in", UNSET)

        _labels = d.pop("labels", UNSET)
        labels: BatchRequestLabels | Unset
        if isinstance(_labels, Unset):
            labels = UNSET
        else:
            labels = BatchRequestLabels.from_dict(_labels)

        open_ = d.pop("open", UNSET)

        priority = d.pop("priority", UNSET)

        stream = d.pop("stream", UNSET)

        batch_request = cls(
            callback_url=callback_url,
            calls=calls,
            expires_in=expires_in,
            labels=labels,
            open_=open_,
            priority=priority,
            stream=stream,
        )

        return batch_request
