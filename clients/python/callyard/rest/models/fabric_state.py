from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.fabric_state_format import FabricStateFormat
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.accepted_digest import AcceptedDigest
    from ..models.disabled_tools import DisabledTools
    from ..models.exported_key import ExportedKey
    from ..models.policy_text import PolicyText
    from ..models.tenant_set import TenantSet
    from ..models.tool_set import ToolSet


T = TypeVar("T", bound="FabricState")


@_attrs_define
class FabricState:
    """
    Attributes:
        format_ (FabricStateFormat): The format of the file, with its version.
        keys (list[ExportedKey] | Unset): The API keys without secrets. An import only compares them, and creates none.
        pins (list[AcceptedDigest] | Unset): The accepted definitions of tools. An import accepts those that the servers
            offer now; it does not revoke accepted ones.
        policy (PolicyText | Unset):
        sets (list[ToolSet] | Unset): The sets of the installation that were created over the API.
        switches (list[DisabledTools] | Unset): The disabled tools, and the patterns and sets that disable tools.
        tenant_sets (list[TenantSet] | Unset): The sets of tenants other than the default one. A file of an older
            version, without this member, changes none of them.
    """

    format_: FabricStateFormat
    keys: list[ExportedKey] | Unset = UNSET
    pins: list[AcceptedDigest] | Unset = UNSET
    policy: PolicyText | Unset = UNSET
    sets: list[ToolSet] | Unset = UNSET
    switches: list[DisabledTools] | Unset = UNSET
    tenant_sets: list[TenantSet] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.accepted_digest import AcceptedDigest  # noqa: PLC0415
        from ..models.disabled_tools import DisabledTools  # noqa: PLC0415
        from ..models.exported_key import ExportedKey  # noqa: PLC0415
        from ..models.policy_text import PolicyText  # noqa: PLC0415
        from ..models.tenant_set import TenantSet  # noqa: PLC0415
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        format_ = self.format_.value

        keys: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.keys, Unset):
            keys = []
            for keys_item_data in self.keys:
                keys_item = keys_item_data.to_dict()
                keys.append(keys_item)

        pins: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.pins, Unset):
            pins = []
            for pins_item_data in self.pins:
                pins_item = pins_item_data.to_dict()
                pins.append(pins_item)

        policy: dict[str, Any] | Unset = UNSET
        if not isinstance(self.policy, Unset):
            policy = self.policy.to_dict()

        sets: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.sets, Unset):
            sets = []
            for sets_item_data in self.sets:
                sets_item = sets_item_data.to_dict()
                sets.append(sets_item)

        switches: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.switches, Unset):
            switches = []
            for switches_item_data in self.switches:
                switches_item = switches_item_data.to_dict()
                switches.append(switches_item)

        tenant_sets: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.tenant_sets, Unset):
            tenant_sets = []
            for tenant_sets_item_data in self.tenant_sets:
                tenant_sets_item = tenant_sets_item_data.to_dict()
                tenant_sets.append(tenant_sets_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "format": format_,
            }
        )
        if keys is not UNSET:
            field_dict["keys"] = keys
        if pins is not UNSET:
            field_dict["pins"] = pins
        if policy is not UNSET:
            field_dict["policy"] = policy
        if sets is not UNSET:
            field_dict["sets"] = sets
        if switches is not UNSET:
            field_dict["switches"] = switches
        if tenant_sets is not UNSET:
            field_dict["tenant_sets"] = tenant_sets

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.accepted_digest import AcceptedDigest  # noqa: PLC0415
        from ..models.disabled_tools import DisabledTools  # noqa: PLC0415
        from ..models.exported_key import ExportedKey  # noqa: PLC0415
        from ..models.policy_text import PolicyText  # noqa: PLC0415
        from ..models.tenant_set import TenantSet  # noqa: PLC0415
        from ..models.tool_set import ToolSet  # noqa: PLC0415

        d = dict(src_dict)
        format_ = FabricStateFormat(d.pop("format"))

        _keys = d.pop("keys", UNSET)
        keys: list[ExportedKey] | Unset = UNSET
        if _keys is not UNSET:
            keys = []
            for keys_item_data in _keys:
                keys_item = ExportedKey.from_dict(keys_item_data)

                keys.append(keys_item)

        _pins = d.pop("pins", UNSET)
        pins: list[AcceptedDigest] | Unset = UNSET
        if _pins is not UNSET:
            pins = []
            for pins_item_data in _pins:
                pins_item = AcceptedDigest.from_dict(pins_item_data)

                pins.append(pins_item)

        _policy = d.pop("policy", UNSET)
        policy: PolicyText | Unset
        if isinstance(_policy, Unset):
            policy = UNSET
        else:
            policy = PolicyText.from_dict(_policy)

        _sets = d.pop("sets", UNSET)
        sets: list[ToolSet] | Unset = UNSET
        if _sets is not UNSET:
            sets = []
            for sets_item_data in _sets:
                sets_item = ToolSet.from_dict(sets_item_data)

                sets.append(sets_item)

        _switches = d.pop("switches", UNSET)
        switches: list[DisabledTools] | Unset = UNSET
        if _switches is not UNSET:
            switches = []
            for switches_item_data in _switches:
                switches_item = DisabledTools.from_dict(switches_item_data)

                switches.append(switches_item)

        _tenant_sets = d.pop("tenant_sets", UNSET)
        tenant_sets: list[TenantSet] | Unset = UNSET
        if _tenant_sets is not UNSET:
            tenant_sets = []
            for tenant_sets_item_data in _tenant_sets:
                tenant_sets_item = TenantSet.from_dict(tenant_sets_item_data)

                tenant_sets.append(tenant_sets_item)

        fabric_state = cls(
            format_=format_,
            keys=keys,
            pins=pins,
            policy=policy,
            sets=sets,
            switches=switches,
            tenant_sets=tenant_sets,
        )

        fabric_state.additional_properties = d
        return fabric_state

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
