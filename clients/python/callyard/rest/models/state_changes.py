from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.state_change import StateChange


T = TypeVar("T", bound="StateChanges")


@_attrs_define
class StateChanges:
    """
    Attributes:
        changes (list[StateChange]): The changes that the import made or, with dry_run, would make. Empty: the state
            equals the file.
        dry_run (bool): Whether nothing was changed.
        etag (str): The ETag of the state after the import or, with dry_run, of the current state, for If-Match.
        failed (int): The number of changes that failed.
    """

    changes: list[StateChange]
    dry_run: bool
    etag: str
    failed: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.state_change import StateChange  # noqa: PLC0415

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        dry_run = self.dry_run

        etag = self.etag

        failed = self.failed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "changes": changes,
                "dry_run": dry_run,
                "etag": etag,
                "failed": failed,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.state_change import StateChange  # noqa: PLC0415

        d = dict(src_dict)
        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = StateChange.from_dict(changes_item_data)

            changes.append(changes_item)

        dry_run = d.pop("dry_run")

        etag = d.pop("etag")

        failed = d.pop("failed")

        state_changes = cls(
            changes=changes,
            dry_run=dry_run,
            etag=etag,
            failed=failed,
        )

        state_changes.additional_properties = d
        return state_changes

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
