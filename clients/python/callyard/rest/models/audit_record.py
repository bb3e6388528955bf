from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="AuditRecord")


@_attrs_define
class AuditRecord:
    """
    Attributes:
        at (datetime.datetime): The time of the event.
        hash_ (str): The SHA-256 of this record.
        kind (str): The event: act-begun and act-ended for actions of operators; asked, held, decided, ran, ended and
            others for calls.
        prev (str): The SHA-256 of the record before it in the chain.
        seq (int): The position in the chain, from 1.
        writer (str): The process that wrote it; each writes a chain of its own.
        after_digest (str | Unset): The digest of the changed resource after the action; absent if it was removed.
        approval_id (str | Unset): The id of the approval.
        arguments_digest (str | Unset): The SHA-256 digest of the arguments.
        attempt (str | Unset): The attempt for which the confirmation token was spent.
        batch_id (str | Unset): The batch of the call; absent if it is in none.
        before_digest (str | Unset): The digest of the changed resource before the action; absent if it did not exist.
        binding_digest (str | Unset): The SHA-256 digest of what the approval is for: the caller, the tool and its
            definition, the arguments, the policy, the level, the deadline, the call and the approval.
        by (str | Unset): The principal or person that acted.
        call_id (str | Unset): The id of the call.
        channel (str | Unset): How the person or program acted, such as web, api or slack.
        client (str | Unset): The program.
        credential (str | Unset): How the operator was authenticated.
        definition_digest (str | Unset): The SHA-256 digest of the definition of the tool.
        error (str | Unset): The kind of the error.
        grant_id (str | Unset): The id of the access that a person gave to a program.
        level (int | Unset): The risk level.
        operation (str | Unset): The operation of an operator.
        outcome (str | Unset): The outcome of the event, such as approve, deny or succeeded.
        owner (str | Unset): The person or team behind the name in by.
        path (str | Unset): The path of the request of an operator.
        permission_id (str | Unset): The permission under which the call ran without an approval.
        person (str | Unset): The person whose access it is, if somebody else acted on it.
        policy_version (str | Unset): The version of the policy that decided.
        reason (str | Unset): The reason that the policy gives.
        reason_digest (str | Unset): The digest of a person's reason, which is stored with the approval.
        repaired (bool | Unset): Whether the record was written later, from the record of the approval.
        request_id (str | Unset): The id of the request of an operator, as in the header X-Request-ID of its answer.
        resource (str | Unset): The resource for which its tokens are valid.
        result_digest (str | Unset): The SHA-256 digest of the result.
        rule (str | Unset): The rule of the policy that decided; absent if none did.
        scopes (str | Unset): The scopes of the access, separated by spaces.
        server (str | Unset): The id of the server.
        status (int | Unset): The HTTP status of the answer to an operator.
        tenant (str | Unset): The tenant of the call or the acting principal; absent for the default one.
        tool (str | Unset): The name of the tool.
        worker (str | Unset): The worker to which the call was sent.
    """

    at: datetime.datetime
    hash_: str
    kind: str
    prev: str
    seq: int
    writer: str
    after_digest: str | Unset = UNSET
    approval_id: str | Unset = UNSET
    arguments_digest: str | Unset = UNSET
    attempt: str | Unset = UNSET
    batch_id: str | Unset = UNSET
    before_digest: str | Unset = UNSET
    binding_digest: str | Unset = UNSET
    by: str | Unset = UNSET
    call_id: str | Unset = UNSET
    channel: str | Unset = UNSET
    client: str | Unset = UNSET
    credential: str | Unset = UNSET
    definition_digest: str | Unset = UNSET
    error: str | Unset = UNSET
    grant_id: str | Unset = UNSET
    level: int | Unset = UNSET
    operation: str | Unset = UNSET
    outcome: str | Unset = UNSET
    owner: str | Unset = UNSET
    path: str | Unset = UNSET
    permission_id: str | Unset = UNSET
    person: str | Unset = UNSET
    policy_version: str | Unset = UNSET
    reason: str | Unset = UNSET
    reason_digest: str | Unset = UNSET
    repaired: bool | Unset = UNSET
    request_id: str | Unset = UNSET
    resource: str | Unset = UNSET
    result_digest: str | Unset = UNSET
    rule: str | Unset = UNSET
    scopes: str | Unset = UNSET
    server: str | Unset = UNSET
    status: int | Unset = UNSET
    tenant: str | Unset = UNSET
    tool: str | Unset = UNSET
    worker: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        hash_ = self.hash_

        kind = self.kind

        prev = self.prev

        seq = self.seq

        writer = self.writer

        after_digest = self.after_digest

        approval_id = self.approval_id

        arguments_digest = self.arguments_digest

        attempt = self.attempt

        batch_id = self.batch_id

        before_digest = self.before_digest

        binding_digest = self.binding_digest

        by = self.by

        call_id = self.call_id

        channel = self.channel

        client = self.client

        credential = self.credential

        definition_digest = self.definition_digest

        error = self.error

        grant_id = self.grant_id

        level = self.level

        operation = self.operation

        outcome = self.outcome

        owner = self.owner

        path = self.path

        permission_id = self.permission_id

        person = self.person

        policy_version = self.policy_version

        reason = self.reason

        reason_digest = self.reason_digest

        repaired = self.repaired

        request_id = self.request_id

        resource = self.resource

        result_digest = self.result_digest

        rule = self.rule

        scopes = self.scopes

        server = self.server

        status = self.status

        tenant = self.tenant

        tool = self.tool

        worker = self.worker

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "hash": hash_,
                "kind": kind,
                "prev": prev,
                "seq": seq,
                "writer": writer,
            }
        )
        if after_digest is not UNSET:
            field_dict["after_digest"] = after_digest
        if approval_id is not UNSET:
            field_dict["approval_id"] = approval_id
        if arguments_digest is not UNSET:
            field_dict["arguments_digest"] = arguments_digest
        if attempt is not UNSET:
            field_dict["attempt"] = attempt
        if batch_id is not UNSET:
            field_dict["batch_id"] = batch_id
        if before_digest is not UNSET:
            field_dict["before_digest"] = before_digest
        if binding_digest is not UNSET:
            field_dict["binding_digest"] = binding_digest
        if by is not UNSET:
            field_dict["by"] = by
        if call_id is not UNSET:
            field_dict["call_id"] = call_id
        if channel is not UNSET:
            field_dict["channel"] = channel
        if client is not UNSET:
            field_dict["client"] = client
        if credential is not UNSET:
            field_dict["credential"] = credential
        if definition_digest is not UNSET:
            field_dict["definition_digest"] = definition_digest
        if error is not UNSET:
            field_dict["error"] = error
        if grant_id is not UNSET:
            field_dict["grant_id"] = grant_id
        if level is not UNSET:
            field_dict["level"] = level
        if operation is not UNSET:
            field_dict["operation"] = operation
        if outcome is not UNSET:
            field_dict["outcome"] = outcome
        if owner is not UNSET:
            field_dict["owner"] = owner
        if path is not UNSET:
            field_dict["path"] = path
        if permission_id is not UNSET:
            field_dict["permission_id"] = permission_id
        if person is not UNSET:
            field_dict["person"] = person
        if policy_version is not UNSET:
            field_dict["policy_version"] = policy_version
        if reason is not UNSET:
            field_dict["reason"] = reason
        if reason_digest is not UNSET:
            field_dict["reason_digest"] = reason_digest
        if repaired is not UNSET:
            field_dict["repaired"] = repaired
        if request_id is not UNSET:
            field_dict["request_id"] = request_id
        if resource is not UNSET:
            field_dict["resource"] = resource
        if result_digest is not UNSET:
            field_dict["result_digest"] = result_digest
        if rule is not UNSET:
            field_dict["rule"] = rule
        if scopes is not UNSET:
            field_dict["scopes"] = scopes
        if server is not UNSET:
            field_dict["server"] = server
        if status is not UNSET:
            field_dict["status"] = status
        if tenant is not UNSET:
            field_dict["tenant"] = tenant
        if tool is not UNSET:
            field_dict["tool"] = tool
        if worker is not UNSET:
            field_dict["worker"] = worker

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        hash_ = d.pop("hash")

        kind = d.pop("kind")

        prev = d.pop("prev")

        seq = d.pop("seq")

        writer = d.pop("writer")

        after_digest = d.pop("after_digest", UNSET)

        approval_id = d.pop("approval_id", UNSET)

        arguments_digest = d.pop("arguments_digest", UNSET)

        attempt = d.pop("attempt", UNSET)

        batch_id = d.pop("batch_id", UNSET)

        before_digest = d.pop("before_digest", UNSET)

        binding_digest = d.pop("binding_digest", UNSET)

        by = d.pop("by", UNSET)

        call_id = d.pop("call_id", UNSET)

        channel = d.pop("channel", UNSET)

        client = d.pop("client", UNSET)

        credential = d.pop("credential", UNSET)

        definition_digest = d.pop("definition_digest", UNSET)

        error = d.pop("error", UNSET)

        grant_id = d.pop("grant_id", UNSET)

        level = d.pop("level", UNSET)

        operation = d.pop("operation", UNSET)

        outcome = d.pop("outcome", UNSET)

        owner = d.pop("owner", UNSET)

        path = d.pop("path", UNSET)

        permission_id = d.pop("permission_id", UNSET)

        person = d.pop("person", UNSET)

        policy_version = d.pop("policy_version", UNSET)

        reason = d.pop("reason", UNSET)

        reason_digest = d.pop("reason_digest", UNSET)

        repaired = d.pop("repaired", UNSET)

        request_id = d.pop("request_id", UNSET)

        resource = d.pop("resource", UNSET)

        result_digest = d.pop("result_digest", UNSET)

        rule = d.pop("rule", UNSET)

        scopes = d.pop("scopes", UNSET)

        server = d.pop("server", UNSET)

        status = d.pop("status", UNSET)

        tenant = d.pop("tenant", UNSET)

        tool = d.pop("tool", UNSET)

        worker = d.pop("worker", UNSET)

        audit_record = cls(
            at=at,
            hash_=hash_,
            kind=kind,
            prev=prev,
            seq=seq,
            writer=writer,
            after_digest=after_digest,
            approval_id=approval_id,
            arguments_digest=arguments_digest,
            attempt=attempt,
            batch_id=batch_id,
            before_digest=before_digest,
            binding_digest=binding_digest,
            by=by,
            call_id=call_id,
            channel=channel,
            client=client,
            credential=credential,
            definition_digest=definition_digest,
            error=error,
            grant_id=grant_id,
            level=level,
            operation=operation,
            outcome=outcome,
            owner=owner,
            path=path,
            permission_id=permission_id,
            person=person,
            policy_version=policy_version,
            reason=reason,
            reason_digest=reason_digest,
            repaired=repaired,
            request_id=request_id,
            resource=resource,
            result_digest=result_digest,
            rule=rule,
            scopes=scopes,
            server=server,
            status=status,
            tenant=tenant,
            tool=tool,
            worker=worker,
        )

        audit_record.additional_properties = d
        return audit_record

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
