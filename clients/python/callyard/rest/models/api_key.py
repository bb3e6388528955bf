from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.api_key_origin import APIKeyOrigin
from ..models.api_key_role import APIKeyRole
from ..types import UNSET, Unset
from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.api_key_limits import APIKeyLimits
    from ..models.former_secret import FormerSecret


T = TypeVar("T", bound="APIKey")


@_attrs_define
class APIKey:
    """
    Attributes:
        id (str): The id, which stays when the key is rotated.
        name (str): The name of the principal; no other key has it.
        origin (APIKeyOrigin): api: created with POST /keys. configuration: an entry of front_door.keys, which cannot be
            changed here, and may do everything if it has no role.
        scopes (list[str]): What the key is allowed to do: tools:read, tools:list, tools:call, tools:call:SERVER,
            tools:call:@SET, calls:read, calls:read:all, approve, admin, admin:tenant.
        changed_at (datetime.datetime | Unset): When the key was changed last; absent if it never was.
        changed_by (str | Unset): The principal that changed it last.
        created_at (datetime.datetime | Unset): When the key was created; absent for a key of the configuration.
        created_by (str | Unset): The principal that created it.
        etag (str | Unset): The state of the key, for If-Match; absent for a key of the configuration.
        expires_at (datetime.datetime | Unset): When the key expires. Absent: it never expires; only keys of the
            configuration can have no expiry.
        former_secrets (list[FormerSecret] | Unset): Secrets from before rotations that are still accepted.
        groups (list[str] | Unset): The groups that the principal is in.
        last_used_at (datetime.datetime | Unset): When the key was last used, to the minute. A use at another front door
            can be reported a minute late. Absent: it was never used, or is a key of the configuration.
        limits (APIKeyLimits | Unset):
        note (str | Unset): What the key is for.
        owner (str | Unset): The person or team behind the key.
        role (APIKeyRole | Unset): The role that the scopes come from; absent if they were listed.
        rotated_at (datetime.datetime | Unset): When the key was rotated last; absent if it never was.
        tenant (str | Unset): The tenant of the principal; absent for the default one.
        tools (list[str] | Unset): Patterns of SERVER/TOOL with * and ?. Of the tools that the scopes allow, the key can
            call only those that match. Absent: all of them.
    """

    id: str
    name: str
    origin: APIKeyOrigin
    scopes: list[str]
    changed_at: datetime.datetime | Unset = UNSET
    changed_by: str | Unset = UNSET
    created_at: datetime.datetime | Unset = UNSET
    created_by: str | Unset = UNSET
    etag: str | Unset = UNSET
    expires_at: datetime.datetime | Unset = UNSET
    former_secrets: list[FormerSecret] | Unset = UNSET
    groups: list[str] | Unset = UNSET
    last_used_at: datetime.datetime | Unset = UNSET
    limits: APIKeyLimits | Unset = UNSET
    note: str | Unset = UNSET
    owner: str | Unset = UNSET
    role: APIKeyRole | Unset = UNSET
    rotated_at: datetime.datetime | Unset = UNSET
    tenant: str | Unset = UNSET
    tools: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.api_key_limits import APIKeyLimits  # noqa: PLC0415
        from ..models.former_secret import FormerSecret  # noqa: PLC0415

        id = self.id

        name = self.name

        origin = self.origin.value

        scopes = self.scopes

        changed_at: str | Unset = UNSET
        if not isinstance(self.changed_at, Unset):
            changed_at = self.changed_at.isoformat()

        changed_by = self.changed_by

        created_at: str | Unset = UNSET
        if not isinstance(self.created_at, Unset):
            created_at = self.created_at.isoformat()

        created_by = self.created_by

        etag = self.etag

        expires_at: str | Unset = UNSET
        if not isinstance(self.expires_at, Unset):
            expires_at = self.expires_at.isoformat()

        former_secrets: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.former_secrets, Unset):
            former_secrets = []
            for former_secrets_item_data in self.former_secrets:
                former_secrets_item = former_secrets_item_data.to_dict()
                former_secrets.append(former_secrets_item)

        groups: list[str] | Unset = UNSET
        if not isinstance(self.groups, Unset):
            groups = self.groups

        last_used_at: str | Unset = UNSET
        if not isinstance(self.last_used_at, Unset):
            last_used_at = self.last_used_at.isoformat()

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        note = self.note

        owner = self.owner

        role: str | Unset = UNSET
        if not isinstance(self.role, Unset):
            role = self.role.value

        rotated_at: str | Unset = UNSET
        if not isinstance(self.rotated_at, Unset):
            rotated_at = self.rotated_at.isoformat()

        tenant = self.tenant

        tools: list[str] | Unset = UNSET
        if not isinstance(self.tools, Unset):
            tools = self.tools

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "origin": origin,
                "scopes": scopes,
            }
        )
        if changed_at is not UNSET:
            field_dict["changed_at"] = changed_at
        if changed_by is not UNSET:
            field_dict["changed_by"] = changed_by
        if created_at is not UNSET:
            field_dict["created_at"] = created_at
        if created_by is not UNSET:
            field_dict["created_by"] = created_by
        if etag is not UNSET:
            field_dict["etag"] = etag
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if former_secrets is not UNSET:
            field_dict["former_secrets"] = former_secrets
        if groups is not UNSET:
            field_dict["groups"] = groups
        if last_used_at is not UNSET:
            field_dict["last_used_at"] = last_used_at
        if limits is not UNSET:
            field_dict["limits"] = limits
        if note is not UNSET:
            field_dict["note"] = note
        if owner is not UNSET:
            field_dict["owner"] = owner
        if role is not UNSET:
            field_dict["role"] = role
        if rotated_at is not UNSET:
            field_dict["rotated_at"] = rotated_at
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if tools is not UNSET:
            field_dict["tools"] = tools

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.api_key_limits import APIKeyLimits  # noqa: PLC0415
        from ..models.former_secret import FormerSecret  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        origin = APIKeyOrigin(d.pop("origin"))

        scopes = cast(list[str], d.pop("scopes"))

        _changed_at = d.pop("changed_at", UNSET)
        changed_at: datetime.datetime | Unset
        if isinstance(_changed_at, Unset):
            changed_at = UNSET
        else:
            changed_at = datetime.datetime.fromisoformat(_changed_at)

        changed_by = d.pop("changed_by", UNSET)

        _created_at = d.pop("created_at", UNSET)
        created_at: datetime.datetime | Unset
        if isinstance(_created_at, Unset):
            created_at = UNSET
        else:
            created_at = datetime.datetime.fromisoformat(_created_at)

        created_by = d.pop("created_by", UNSET)

        etag = d.pop("etag", UNSET)

        _expires_at = d.pop("expires_at", UNSET)
        expires_at: datetime.datetime | Unset
        if isinstance(_expires_at, Unset):
            expires_at = UNSET
        else:
            expires_at = datetime.datetime.fromisoformat(_expires_at)

        _former_secrets = d.pop("former_secrets", UNSET)
        former_secrets: list[FormerSecret] | Unset = UNSET
        if _former_secrets is not UNSET:
            former_secrets = []
            for former_secrets_item_data in _former_secrets:
                former_secrets_item = FormerSecret.from_dict(former_secrets_item_data)

                former_secrets.append(former_secrets_item)

        groups = cast(list[str], d.pop("groups", UNSET))

        _last_used_at = d.pop("last_used_at", UNSET)
        last_used_at: datetime.datetime | Unset
        if isinstance(_last_used_at, Unset):
            last_used_at = UNSET
        else:
            last_used_at = datetime.datetime.fromisoformat(_last_used_at)

        _limits = d.pop("limits", UNSET)
        limits: APIKeyLimits | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = APIKeyLimits.from_dict(_limits)

        note = d.pop("note", UNSET)

        owner = d.pop("owner", UNSET)

        _role = d.pop("role", UNSET)
        role: APIKeyRole | Unset
        if isinstance(_role, Unset):
            role = UNSET
        else:
            role = APIKeyRole(_role)

        _rotated_at = d.pop("rotated_at", UNSET)
        rotated_at: datetime.datetime | Unset
        if isinstance(_rotated_at, Unset):
            rotated_at = UNSET
        else:
            rotated_at = datetime.datetime.fromisoformat(_rotated_at)

        tenant = d.pop("tenant", UNSET)

        tools = cast(list[str], d.pop("tools", UNSET))

        api_key = cls(
            id=id,
            name=name,
            origin=origin,
            scopes=scopes,
            changed_at=changed_at,
            changed_by=changed_by,
            created_at=created_at,
            created_by=created_by,
            etag=etag,
            expires_at=expires_at,
            former_secrets=former_secrets,
            groups=groups,
            last_used_at=last_used_at,
            limits=limits,
            note=note,
            owner=owner,
            role=role,
            rotated_at=rotated_at,
            tenant=tenant,
            tools=tools,
        )

        api_key.additional_properties = d
        return api_key

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
