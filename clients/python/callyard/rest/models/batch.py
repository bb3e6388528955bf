from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.batch_state import BatchState
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.batch_counts import BatchCounts
    from ..models.batch_labels import BatchLabels
    from ..models.line_refusal import LineRefusal


T = TypeVar("T", bound="Batch")


@_attrs_define
class Batch:
    """
    Attributes:
        calls (int): The number of lines read so far, including refused ones.
        counts (BatchCounts):
        created (datetime.datetime): When the batch was created.
        expires_at (datetime.datetime): When calls that were not sent to a worker expire.
        id (str): The id of the batch.
        state (BatchState): receiving: more calls can be added. running: calls run. canceling: it was canceled, and
            calls that were sent still run. The others are final.
        ended (datetime.datetime | Unset): When its last call ended; absent until then.
        labels (BatchLabels | Unset): The caller's own labels.
        missing_servers (list[str] | Unset): Servers that waiting calls need and no worker has announced, the first 20
            by name. Their calls wait 10 minutes for a worker, and then fail.
        payloads_deleted (bool | Unset): Whether the arguments and results of its calls have been deleted, because the
            retention of its tenant has ended.
        priority (int | Unset): The priority; each step of 5 doubles its share of the capacity, or halves it. Absent: 0.
        reason (str | Unset): The reason for the state, if it failed, expired or was canceled.
        refusals (list[LineRefusal] | Unset): The first 100 refused lines of this request; the results list all of them.
        refused (int | Unset): The number of lines of this request that are not valid calls; only in the answer to a
            request that sends calls.
        started (datetime.datetime | Unset): When its first call started; absent until then.
    """

    calls: int
    counts: BatchCounts
    created: datetime.datetime
    expires_at: datetime.datetime
    id: str
    state: BatchState
    ended: datetime.datetime | Unset = UNSET
    labels: BatchLabels | Unset = UNSET
    missing_servers: list[str] | Unset = UNSET
    payloads_deleted: bool | Unset = UNSET
    priority: int | Unset = UNSET
    reason: str | Unset = UNSET
    refusals: list[LineRefusal] | Unset = UNSET
    refused: int | Unset = UNSET
    started: datetime.datetime | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.batch_counts import BatchCounts  # noqa: PLC0415
        from ..models.batch_labels import BatchLabels  # noqa: PLC0415
        from ..models.line_refusal import LineRefusal  # noqa: PLC0415

        calls = self.calls

        counts = self.counts.to_dict()

        created = self.created.isoformat()

        expires_at = self.expires_at.isoformat()

        id = self.id

        state = self.state.value

        ended: str | Unset = UNSET
        if not isinstance(self.ended, Unset):
            ended = self.ended.isoformat()

        labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.labels, Unset):
            labels = self.labels.to_dict()

        missing_servers: list[str] | Unset = UNSET
        if not isinstance(self.missing_servers, Unset):
            missing_servers = self.missing_servers

        payloads_deleted = self.payloads_deleted

        priority = self.priority

        reason = self.reason

        refusals: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.refusals, Unset):
            refusals = []
            for refusals_item_data in self.refusals:
                refusals_item = refusals_item_data.to_dict()
                refusals.append(refusals_item)

        refused = self.refused

        started: str | Unset = UNSET
        if not isinstance(self.started, Unset):
            started = self.started.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "calls": calls,
                "counts": counts,
                "created": created,
                "expires_at": expires_at,
                "id": id,
                "state": state,
            }
        )
        if ended is not UNSET:
            field_dict["ended"] = ended
        if labels is not UNSET:
            field_dict["labels"] = labels
        if missing_servers is not UNSET:
            field_dict["missing_servers"] = missing_servers
        if payloads_deleted is not UNSET:
            field_dict["payloads_deleted"] = payloads_deleted
        if priority is not UNSET:
            field_dict["priority"] = priority
        if reason is not UNSET:
            field_dict["reason"] = reason
        if refusals is not UNSET:
            field_dict["refusals"] = refusals
        if refused is not UNSET:
            field_dict["refused"] = refused
        if started is not UNSET:
            field_dict["started"] = started

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.batch_counts import BatchCounts  # noqa: PLC0415
        from ..models.batch_labels import BatchLabels  # noqa: PLC0415
        from ..models.line_refusal import LineRefusal  # noqa: PLC0415

        d = dict(src_dict)
        calls = d.pop("calls")

        counts = BatchCounts.from_dict(d.pop("counts"))

        created = datetime.datetime.fromisoformat(d.pop("created"))

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        id = d.pop("id")

        state = BatchState(d.pop("state"))

        _ended = d.pop("ended", UNSET)
        ended: datetime.datetime | Unset
        if isinstance(_ended, Unset):
            ended = UNSET
        else:
            ended = datetime.datetime.fromisoformat(_ended)

        _labels = d.pop("labels", UNSET)
        labels: BatchLabels | Unset
        if isinstance(_labels, Unset):
            labels = UNSET
        else:
            labels = BatchLabels.from_dict(_labels)

        missing_servers = cast(list[str], d.pop("missing_servers", UNSET))

        payloads_deleted = d.pop("payloads_deleted", UNSET)

        priority = d.pop("priority", UNSET)

        reason = d.pop("reason", UNSET)

        _refusals = d.pop("refusals", UNSET)
        refusals: list[LineRefusal] | Unset = UNSET
        if _refusals is not UNSET:
            refusals = []
            for refusals_item_data in _refusals:
                refusals_item = LineRefusal.from_dict(refusals_item_data)

                refusals.append(refusals_item)

        refused = d.pop("refused", UNSET)

        _started = d.pop("started", UNSET)
        started: datetime.datetime | Unset
        if isinstance(_started, Unset):
            started = UNSET
        else:
            started = datetime.datetime.fromisoformat(_started)

        batch = cls(
            calls=calls,
            counts=counts,
            created=created,
            expires_at=expires_at,
            id=id,
            state=state,
            ended=ended,
            labels=labels,
            missing_servers=missing_servers,
            payloads_deleted=payloads_deleted,
            priority=priority,
            reason=reason,
            refusals=refusals,
            refused=refused,
            started=started,
        )

        batch.additional_properties = d
        return batch

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
