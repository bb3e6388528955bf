from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.call_list import CallList
from ...models.list_calls_state_item import ListCallsStateItem
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    *,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    state: list[ListCallsStateItem] | Unset = UNSET,
    principal: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    batch: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["server"] = server

    params["tool"] = tool

    json_state: list[str] | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = []
        for state_item_data in state:
            state_item = state_item_data.value
            json_state.append(state_item)

    params["state"] = json_state

    params["principal"] = principal

    params["tenant"] = tenant

    params["batch"] = batch

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
        "url": "/calls",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> CallList | Problem:
    if response.status_code == 200:
        response_200 = CallList.from_dict(response.json())

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[CallList | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    state: list[ListCallsStateItem] | Unset = UNSET,
    principal: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    batch: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> Response[CallList | Problem]:
    """List your calls

     The records of your calls, newest first: caller, tool, times and outcome, with digests of arguments
    and results. Call records are kept for 7 days, or as the operator configured. A page can be short or
    empty and still have a next cursor.

    Args:
        server (str | Unset):
        tool (str | Unset):
        state (list[ListCallsStateItem] | Unset):
        principal (str | Unset):
        tenant (str | Unset):
        batch (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CallList | Problem]
    """

    kwargs = _get_kwargs(
        server=server,
        tool=tool,
        state=state,
        principal=principal,
        tenant=tenant,
        batch=batch,
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
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    state: list[ListCallsStateItem] | Unset = UNSET,
    principal: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    batch: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> CallList | Problem | None:
    """List your calls

     The records of your calls, newest first: caller, tool, times and outcome, with digests of arguments
    and results. Call records are kept for 7 days, or as the operator configured. A page can be short or
    empty and still have a next cursor.

    Args:
        server (str | Unset):
        tool (str | Unset):
        state (list[ListCallsStateItem] | Unset):
        principal (str | Unset):
        tenant (str | Unset):
        batch (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CallList | Problem
    """

    return sync_detailed(
        client=client,
        server=server,
        tool=tool,
        state=state,
        principal=principal,
        tenant=tenant,
        batch=batch,
        since=since,
        until=until,
        limit=limit,
        cursor=cursor,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    state: list[ListCallsStateItem] | Unset = UNSET,
    principal: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    batch: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> Response[CallList | Problem]:
    """List your calls

     The records of your calls, newest first: caller, tool, times and outcome, with digests of arguments
    and results. Call records are kept for 7 days, or as the operator configured. A page can be short or
    empty and still have a next cursor.

    Args:
        server (str | Unset):
        tool (str | Unset):
        state (list[ListCallsStateItem] | Unset):
        principal (str | Unset):
        tenant (str | Unset):
        batch (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CallList | Problem]
    """

    kwargs = _get_kwargs(
        server=server,
        tool=tool,
        state=state,
        principal=principal,
        tenant=tenant,
        batch=batch,
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
    server: str | Unset = UNSET,
    tool: str | Unset = UNSET,
    state: list[ListCallsStateItem] | Unset = UNSET,
    principal: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
    batch: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> CallList | Problem | None:
    """List your calls

     The records of your calls, newest first: caller, tool, times and outcome, with digests of arguments
    and results. Call records are kept for 7 days, or as the operator configured. A page can be short or
    empty and still have a next cursor.

    Args:
        server (str | Unset):
        tool (str | Unset):
        state (list[ListCallsStateItem] | Unset):
        principal (str | Unset):
        tenant (str | Unset):
        batch (str | Unset):
        since (datetime.datetime | Unset):
        until (datetime.datetime | Unset):
        limit (int | Unset):
        cursor (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CallList | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            server=server,
            tool=tool,
            state=state,
            principal=principal,
            tenant=tenant,
            batch=batch,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
        )
    ).parsed
