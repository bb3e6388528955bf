from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.get_usage_by_item import GetUsageByItem
from ...models.get_usage_interval import GetUsageInterval
from ...models.problem import Problem
from ...models.usage_report import UsageReport
from ...types import UNSET, Unset
from typing import cast
import datetime


def _get_kwargs(
    *,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    by: list[GetUsageByItem] | Unset = UNSET,
    interval: GetUsageInterval | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.isoformat()
    params["from"] = json_from_

    json_to: str | Unset = UNSET
    if not isinstance(to, Unset):
        json_to = to.isoformat()
    params["to"] = json_to

    json_by: list[str] | Unset = UNSET
    if not isinstance(by, Unset):
        json_by = []
        for by_item_data in by:
            by_item = by_item_data.value
            json_by.append(by_item)

    params["by"] = json_by

    json_interval: str | Unset = UNSET
    if not isinstance(interval, Unset):
        json_interval = interval.value

    params["interval"] = json_interval

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/usage",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | UsageReport:
    if response.status_code == 200:
        response_200 = UsageReport.from_dict(response.json())

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
) -> Response[Problem | UsageReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    by: list[GetUsageByItem] | Unset = UNSET,
    interval: GetUsageInterval | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Response[Problem | UsageReport]:
    """Show usage by tenant, key, server and tool

     Calls per hour, counted from the call records: the counts equal the records of GET /calls, even if
    processes were killed. Hours are kept for 90 days. A call counts in the hour in which it was
    admitted. With the scope admin or calls:read:all you see your tenant, and all tenants if yours is
    the default one; with admin:tenant, your tenant; without them, your own calls.

    Args:
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        by (list[GetUsageByItem] | Unset):
        interval (GetUsageInterval | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | UsageReport]
    """

    kwargs = _get_kwargs(
        from_=from_,
        to=to,
        by=by,
        interval=interval,
        tenant=tenant,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    by: list[GetUsageByItem] | Unset = UNSET,
    interval: GetUsageInterval | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Problem | UsageReport | None:
    """Show usage by tenant, key, server and tool

     Calls per hour, counted from the call records: the counts equal the records of GET /calls, even if
    processes were killed. Hours are kept for 90 days. A call counts in the hour in which it was
    admitted. With the scope admin or calls:read:all you see your tenant, and all tenants if yours is
    the default one; with admin:tenant, your tenant; without them, your own calls.

    Args:
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        by (list[GetUsageByItem] | Unset):
        interval (GetUsageInterval | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | UsageReport
    """

    return sync_detailed(
        client=client,
        from_=from_,
        to=to,
        by=by,
        interval=interval,
        tenant=tenant,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    by: list[GetUsageByItem] | Unset = UNSET,
    interval: GetUsageInterval | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Response[Problem | UsageReport]:
    """Show usage by tenant, key, server and tool

     Calls per hour, counted from the call records: the counts equal the records of GET /calls, even if
    processes were killed. Hours are kept for 90 days. A call counts in the hour in which it was
    admitted. With the scope admin or calls:read:all you see your tenant, and all tenants if yours is
    the default one; with admin:tenant, your tenant; without them, your own calls.

    Args:
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        by (list[GetUsageByItem] | Unset):
        interval (GetUsageInterval | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | UsageReport]
    """

    kwargs = _get_kwargs(
        from_=from_,
        to=to,
        by=by,
        interval=interval,
        tenant=tenant,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    by: list[GetUsageByItem] | Unset = UNSET,
    interval: GetUsageInterval | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Problem | UsageReport | None:
    """Show usage by tenant, key, server and tool

     Calls per hour, counted from the call records: the counts equal the records of GET /calls, even if
    processes were killed. Hours are kept for 90 days. A call counts in the hour in which it was
    admitted. With the scope admin or calls:read:all you see your tenant, and all tenants if yours is
    the default one; with admin:tenant, your tenant; without them, your own calls.

    Args:
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        by (list[GetUsageByItem] | Unset):
        interval (GetUsageInterval | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | UsageReport
    """

    return (
        await asyncio_detailed(
            client=client,
            from_=from_,
            to=to,
            by=by,
            interval=interval,
            tenant=tenant,
        )
    ).parsed
