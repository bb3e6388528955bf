from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.tool_pin_state import ToolPinState
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.tool_pin_accepted_definition import ToolPinAcceptedDefinition
    from ..models.tool_pin_definition import ToolPinDefinition


T = TypeVar("T", bound="ToolPin")


@_attrs_define
class ToolPin:
    """
    Attributes:
        name (str): The name of the tool.
        state (ToolPinState): accepted: the definition is the accepted one. changed: the tool has another definition.
            new: no definition of the tool was accepted. gone: the server no longer lists the tool.
        accepted_at (datetime.datetime | Unset): When the definition was accepted; absent if none was.
        accepted_by (str | Unset): The principal that accepted the definition; absent if it was recorded at first use.
        accepted_definition (ToolPinAcceptedDefinition | Unset): The accepted definition; only if the state is changed.
        accepted_digest (str | Unset): The digest of the accepted definition.
        changed (list[str] | Unset): The members of the definition that differ, if the state is changed.
        definition (ToolPinDefinition | Unset): The current definition, exactly as the server sent it; only if the state
            is changed or new.
        digest (str | Unset): The digest of the current definition; send it to accept this definition.
    """

    name: str
    state: ToolPinState
    accepted_at: datetime.datetime | Unset = UNSET
    accepted_by: str | Unset = UNSET
    accepted_definition: ToolPinAcceptedDefinition | Unset = UNSET
    accepted_digest: str | Unset = UNSET
    changed: list[str] | Unset = UNSET
    definition: ToolPinDefinition | Unset = UNSET
    digest: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tool_pin_accepted_definition import ToolPinAcceptedDefinition  # noqa: PLC0415
        from ..models.tool_pin_definition import ToolPinDefinition  # noqa: PLC0415

        name = self.name

        state = self.state.value

        accepted_at: str | Unset = UNSET
        if not isinstance(self.accepted_at, Unset):
            accepted_at = self.accepted_at.isoformat()

        accepted_by = self.accepted_by

        accepted_definition: dict[str, Any] | Unset = UNSET
        if not isinstance(self.accepted_definition, Unset):
            accepted_definition = self.accepted_definition.to_dict()

        accepted_digest = self.accepted_digest

        changed: list[str] | Unset = UNSET
        if not isinstance(self.changed, Unset):
            changed = self.changed

        definition: dict[str, Any] | Unset = UNSET
        if not isinstance(self.definition, Unset):
            definition = self.definition.to_dict()

        digest = self.digest

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "state": state,
            }
        )
        if accepted_at is not UNSET:
            field_dict["accepted_at"] = accepted_at
        if accepted_by is not UNSET:
            field_dict["accepted_by"] = accepted_by
        if accepted_definition is not UNSET:
            field_dict["accepted_definition"] = accepted_definition
        if accepted_digest is not UNSET:
            field_dict["accepted_digest"] = accepted_digest
        if changed is not UNSET:
            field_dict["changed"] = changed
        if definition is not UNSET:
            field_dict["definition"] = definition
        if digest is not UNSET:
            field_dict["digest"] = digest

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_pin_accepted_definition import ToolPinAcceptedDefinition  # noqa: PLC0415
        from ..models.tool_pin_definition import ToolPinDefinition  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        state = ToolPinState(d.pop("state"))

        _accepted_at = d.pop("accepted_at", UNSET)
        accepted_at: datetime.datetime | Unset
        if isinstance(_accepted_at, Unset):
            accepted_at = UNSET
        else:
            accepted_at = datetime.datetime.fromisoformat(_accepted_at)

        accepted_by = d.pop("accepted_by", UNSET)

        _accepted_definition = d.pop("accepted_definition", UNSET)
        accepted_definition: ToolPinAcceptedDefinition | Unset
        if isinstance(_accepted_definition, Unset):
            accepted_definition = UNSET
        else:
            accepted_definition = ToolPinAcceptedDefinition.from_dict(_accepted_definition)

        accepted_digest = d.pop("accepted_digest", UNSET)

        changed = cast(list[str], d.pop("changed", UNSET))

        _definition = d.pop("definition", UNSET)
        definition: ToolPinDefinition | Unset
        if isinstance(_definition, Unset):
            definition = UNSET
        else:
            definition = ToolPinDefinition.from_dict(_definition)

        digest = d.pop("digest", UNSET)

        tool_pin = cls(
            name=name,
            state=state,
            accepted_at=accepted_at,
            accepted_by=accepted_by,
            accepted_definition=accepted_definition,
            accepted_digest=accepted_digest,
            changed=changed,
            definition=definition,
            digest=digest,
        )

        tool_pin.additional_properties = d
        return tool_pin

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
