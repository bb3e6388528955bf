from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.state_change_action import StateChangeAction
from ..models.state_change_part import StateChangePart
from ..types import UNSET, Unset


T = TypeVar("T", bound="StateChange")


@_attrs_define
class StateChange:
    """
    Attributes:
        action (StateChangeAction): add, change, remove: the change that an import makes. differs: the part is only
            compared. skip: the change is impossible, for the reason in note.
        done (bool): Whether the import made the change.
        name (str): The set, tool or key; a set of a tenant as TENANT/SET.
        part (StateChangePart): The part of the state.
        error (str | Unset): The reason that the import could not make the change.
        note (str | Unset): The reason for the action, if it is skip, or a remark.
    """

    action: StateChangeAction
    done: bool
    name: str
    part: StateChangePart
    error: str | Unset = UNSET
    note: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        action = self.action.value

        done = self.done

        name = self.name

        part = self.part.value

        error = self.error

        note = self.note

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "action": action,
                "done": done,
                "name": name,
                "part": part,
            }
        )
        if error is not UNSET:
            field_dict["error"] = error
        if note is not UNSET:
            field_dict["note"] = note

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        action = StateChangeAction(d.pop("action"))

        done = d.pop("done")

        name = d.pop("name")

        part = StateChangePart(d.pop("part"))

        error = d.pop("error", UNSET)

        note = d.pop("note", UNSET)

        state_change = cls(
            action=action,
            done=done,
            name=name,
            part=part,
            error=error,
            note=note,
        )

        state_change.additional_properties = d
        return state_change

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
