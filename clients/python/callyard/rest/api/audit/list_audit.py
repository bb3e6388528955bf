from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.audit_record_list import AuditRecordList
from ...models.list_audit_kind_item import ListAuditKindItem
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    *,
    kind: list[ListAuditKindItem] | Unset = UNSET,
    operation: str | Unset = UNSET,
    by: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    call: str | Unset = UNSET,
    approval: str | Unset = UNSET,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_kind: list[str] | Unset = UNSET
    if not isinstance(kind, Unset):
        json_kind = []
        for kind_item_data in kind:
            kind_item = kind_item_data.value
            json_kind.append(kind_item)

    params["kind"] = json_kind

    params["operation"] = operation

    params["by"] = by

    params["tenant"] = tenant

    params["call"] = call

    params["approval"] = approval

    params["server"] = server

    params["tool"] = tool

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/audit",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AuditRecordList | Problem:
    if response.status_code == 200:
        response_200 = AuditRecordList.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = Problem.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AuditRecordList | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    kind: list[ListAuditKindItem] | Unset = UNSET,
    operation: str | Unset = UNSET,
    by: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    call: str | Unset = UNSET,
    approval: str | Unset = UNSET,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> Response[AuditRecordList | Problem]:
    """List audit records

     The records of requests, decisions and runs of calls, and of the actions of operators, newest first.
    Each record has the digest of the previous record in its chain, and digests instead of arguments,
    results and reasons. Only the default tenant sees the records of other tenants. A page can be short
    or empty and still have a next cursor.

    Args:
        kind (list[ListAuditKindItem] | Unset):
        operation (str | Unset):
        by (str | Unset):
        tenant (str | Unset):
        call (str | Unset):
        approval (str | Unset):
        server (str | Unset):
        tool (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditRecordList | Problem]
    """

    kwargs = _get_kwargs(
        kind=kind,
        operation=operation,
        by=by,
        tenant=tenant,
        call=call,
        approval=approval,
        server=server,
        tool=tool,
        since=since,
        until=until,
        limit=limit,
        cursor=cursor,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    kind: list[ListAuditKindItem] | Unset = UNSET,
    operation: str | Unset = UNSET,
    by: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    call: str | Unset = UNSET,
    approval: str | Unset = UNSET,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> AuditRecordList | Problem | None:
    """List audit records

     The records of requests, decisions and runs of calls, and of the actions of operators, newest first.
    Each record has the digest of the previous record in its chain, and digests instead of arguments,
    results and reasons. Only the default tenant sees the records of other tenants. A page can be short
    or empty and still have a next cursor.

    Args:
        kind (list[ListAuditKindItem] | Unset):
        operation (str | Unset):
        by (str | Unset):
        tenant (str | Unset):
        call (str | Unset):
        approval (str | Unset):
        server (str | Unset):
        tool (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditRecordList | Problem
    """

    return sync_detailed(
        client=client,
        kind=kind,
        operation=operation,
        by=by,
        tenant=tenant,
        call=call,
        approval=approval,
        server=server,
        tool=tool,
        since=since,
        until=until,
        limit=limit,
        cursor=cursor,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    kind: list[ListAuditKindItem] | Unset = UNSET,
    operation: str | Unset = UNSET,
    by: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    call: str | Unset = UNSET,
    approval: str | Unset = UNSET,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> Response[AuditRecordList | Problem]:
    """List audit records

     The records of requests, decisions and runs of calls, and of the actions of operators, newest first.
    Each record has the digest of the previous record in its chain, and digests instead of arguments,
    results and reasons. Only the default tenant sees the records of other tenants. A page can be short
    or empty and still have a next cursor.

    Args:
        kind (list[ListAuditKindItem] | Unset):
        operation (str | Unset):
        by (str | Unset):
        tenant (str | Unset):
        call (str | Unset):
        approval (str | Unset):
        server (str | Unset):
        tool (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditRecordList | Problem]
    """

    kwargs = _get_kwargs(
        kind=kind,
        operation=operation,
        by=by,
        tenant=tenant,
        call=call,
        approval=approval,
        server=server,
        tool=tool,
        since=since,
        until=until,
        limit=limit,
        cursor=cursor,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    kind: list[ListAuditKindItem] | Unset = UNSET,
    operation: str | Unset = UNSET,
    by: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    call: str | Unset = UNSET,
    approval: str | Unset = UNSET,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> AuditRecordList | Problem | None:
    """List audit records

     The records of requests, decisions and runs of calls, and of the actions of operators, newest first.
    Each record has the digest of the previous record in its chain, and digests instead of arguments,
    results and reasons. Only the default tenant sees the records of other tenants. A page can be short
    or empty and still have a next cursor.

    Args:
        kind (list[ListAuditKindItem] | Unset):
        operation (str | Unset):
        by (str | Unset):
        tenant (str | Unset):
        call (str | Unset):
        approval (str | Unset):
        server (str | Unset):
        tool (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditRecordList | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            kind=kind,
            operation=operation,
            by=by,
            tenant=tenant,
            call=call,
            approval=approval,
            server=server,
            tool=tool,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
        )
    ).parsed
