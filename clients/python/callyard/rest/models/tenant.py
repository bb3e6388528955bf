from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.tenant_in_flight import TenantInFlight
    from ..models.tenant_limits import TenantLimits
    from ..models.tenant_policy import TenantPolicy
    from ..models.tenant_receivers import TenantReceivers
    from ..models.tenant_servers import TenantServers
    from ..models.tenant_usage import TenantUsage


T = TypeVar("T", bound="Tenant")


@_attrs_define
class Tenant:
    """
    Attributes:
        held (int): The number of calls that wait for an approval now.
        id (str): The id of the tenant.
        keys (int): The number of API keys of the tenant that were created with POST /keys.
        limits (TenantLimits):
        policy (TenantPolicy):
        receivers (TenantReceivers):
        servers (TenantServers):
        sets (list[str]): The sets of tools that it sees now: its own sets, and the sets of the installation whose
            servers it sees.
        in_flight (TenantInFlight | Unset):
        own_sets (list[str] | Unset): The sets that the tenant owns; absent if it has none, and for the default tenant,
            whose sets belong to the installation.
        retention_seconds (int | Unset): The number of seconds for which arguments, results, errors and reasons of its
            calls are kept after the calls have ended, if that is shorter than the retention of the platform. Absent: the
            retention of the platform applies.
        usage (TenantUsage | Unset):
        waiting (int | Unset): The number of calls that wait for a slot of a server at this front door now. Absent if
            the configuration has no section tenants: all callers then share slots as one tenant.
    """

    held: int
    id: str
    keys: int
    limits: TenantLimits
    policy: TenantPolicy
    receivers: TenantReceivers
    servers: TenantServers
    sets: list[str]
    in_flight: TenantInFlight | Unset = UNSET
    own_sets: list[str] | Unset = UNSET
    retention_seconds: int | Unset = UNSET
    usage: TenantUsage | Unset = UNSET
    waiting: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tenant_in_flight import TenantInFlight  # noqa: PLC0415
        from ..models.tenant_limits import TenantLimits  # noqa: PLC0415
        from ..models.tenant_policy import TenantPolicy  # noqa: PLC0415
        from ..models.tenant_receivers import TenantReceivers  # noqa: PLC0415
        from ..models.tenant_servers import TenantServers  # noqa: PLC0415
        from ..models.tenant_usage import TenantUsage  # noqa: PLC0415

        held = self.held

        id = self.id

        keys = self.keys

        limits = self.limits.to_dict()

        policy = self.policy.to_dict()

        receivers = self.receivers.to_dict()

        servers = self.servers.to_dict()

        sets = self.sets

        in_flight: dict[str, Any] | Unset = UNSET
        if not isinstance(self.in_flight, Unset):
            in_flight = self.in_flight.to_dict()

        own_sets: list[str] | Unset = UNSET
        if not isinstance(self.own_sets, Unset):
            own_sets = self.own_sets

        retention_seconds = self.retention_seconds

        usage: dict[str, Any] | Unset = UNSET
        if not isinstance(self.usage, Unset):
            usage = self.usage.to_dict()

        waiting = self.waiting

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "held": held,
                "id": id,
                "keys": keys,
                "limits": limits,
                "policy": policy,
                "receivers": receivers,
                "servers": servers,
                "sets": sets,
            }
        )
        if in_flight is not UNSET:
            field_dict["in_flight"] = in_flight
        if own_sets is not UNSET:
            field_dict["own_sets"] = own_sets
        if retention_seconds is not UNSET:
            field_dict["retention_seconds"] = retention_seconds
        if usage is not UNSET:
            field_dict["usage"] = usage
        if waiting is not UNSET:
            field_dict["waiting"] = waiting

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tenant_in_flight import TenantInFlight  # noqa: PLC0415
        from ..models.tenant_limits import TenantLimits  # noqa: PLC0415
        from ..models.tenant_policy import TenantPolicy  # noqa: PLC0415
        from ..models.tenant_receivers import TenantReceivers  # noqa: PLC0415
        from ..models.tenant_servers import TenantServers  # noqa: PLC0415
        from ..models.tenant_usage import TenantUsage  # noqa: PLC0415

        d = dict(src_dict)
        held = d.pop("held")

        id = d.pop("id")

        keys = d.pop("keys")

        limits = TenantLimits.from_dict(d.pop("limits"))

        policy = TenantPolicy.from_dict(d.pop("policy"))

        receivers = TenantReceivers.from_dict(d.pop("receivers"))

        servers = TenantServers.from_dict(d.pop("servers"))

        sets = cast(list[str], d.pop("sets"))

        _in_flight = d.pop("in_flight", UNSET)
        in_flight: TenantInFlight | Unset
        if isinstance(_in_flight, Unset):
            in_flight = UNSET
        else:
            in_flight = TenantInFlight.from_dict(_in_flight)

        own_sets = cast(list[str], d.pop("own_sets", UNSET))

        retention_seconds = d.pop("retention_seconds", UNSET)

        _usage = d.pop("usage", UNSET)
        usage: TenantUsage | Unset
        if isinstance(_usage, Unset):
            usage = UNSET
        else:
            usage = TenantUsage.from_dict(_usage)

        waiting = d.pop("waiting", UNSET)

        tenant = cls(
            held=held,
            id=id,
            keys=keys,
            limits=limits,
            policy=policy,
            receivers=receivers,
            servers=servers,
            sets=sets,
            in_flight=in_flight,
            own_sets=own_sets,
            retention_seconds=retention_seconds,
            usage=usage,
            waiting=waiting,
        )

        tenant.additional_properties = d
        return tenant

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
