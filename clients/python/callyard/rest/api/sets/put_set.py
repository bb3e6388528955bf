from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import ToolSetDict
from ... import errors

from ...models.problem import Problem
from ...models.put_set_if_none_match import PutSetIfNoneMatch
from ...models.set_item import SetItem
from ...models.tool_set import ToolSet
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    name: str,
    *,
    body: ToolSetDict | ToolSet,
    if_match: str | Unset = UNSET,
    if_none_match: PutSetIfNoneMatch | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["If-Match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["If-None-Match"] = str(if_none_match)

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/sets/{name}".format(
            name=segment(name),
        ),
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | SetItem:
    if response.status_code == 200:
        response_200 = SetItem.from_dict(response.json())

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

    if response.status_code == 408:
        response_408 = Problem.from_dict(response.json())

        return response_408

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

    if response.status_code == 412:
        response_412 = Problem.from_dict(response.json())

        return response_412

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = Problem.from_dict(response.json())

        return response_415

    if response.status_code == 428:
        response_428 = Problem.from_dict(response.json())

        return response_428

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | SetItem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolSetDict | ToolSet,
    if_match: str | Unset = UNSET,
    if_none_match: PutSetIfNoneMatch | Unset = UNSET,
) -> Response[Problem | SetItem]:
    """Create or change a set of tools

     The set is available at every front door within a second, and after restarts. It belongs to your
    tenant, and no other tenant sees it. A set of the default tenant belongs to the installation: other
    tenants can see it, and it requires the scope admin. To change a set, send its ETag in If-Match: if
    somebody else has changed it since, the answer is 412 and nothing changes.

    Args:
        name (str):
        if_match (str | Unset):
        if_none_match (PutSetIfNoneMatch | Unset):
        body (ToolSet):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SetItem]
    """

    kwargs = _get_kwargs(
        name=name,
        body=body,
        if_match=if_match,
        if_none_match=if_none_match,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolSetDict | ToolSet,
    if_match: str | Unset = UNSET,
    if_none_match: PutSetIfNoneMatch | Unset = UNSET,
) -> Problem | SetItem | None:
    """Create or change a set of tools

     The set is available at every front door within a second, and after restarts. It belongs to your
    tenant, and no other tenant sees it. A set of the default tenant belongs to the installation: other
    tenants can see it, and it requires the scope admin. To change a set, send its ETag in If-Match: if
    somebody else has changed it since, the answer is 412 and nothing changes.

    Args:
        name (str):
        if_match (str | Unset):
        if_none_match (PutSetIfNoneMatch | Unset):
        body (ToolSet):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SetItem
    """

    return sync_detailed(
        name=name,
        client=client,
        body=body,
        if_match=if_match,
        if_none_match=if_none_match,
    ).parsed


async def asyncio_detailed(
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolSetDict | ToolSet,
    if_match: str | Unset = UNSET,
    if_none_match: PutSetIfNoneMatch | Unset = UNSET,
) -> Response[Problem | SetItem]:
    """Create or change a set of tools

     The set is available at every front door within a second, and after restarts. It belongs to your
    tenant, and no other tenant sees it. A set of the default tenant belongs to the installation: other
    tenants can see it, and it requires the scope admin. To change a set, send its ETag in If-Match: if
    somebody else has changed it since, the answer is 412 and nothing changes.

    Args:
        name (str):
        if_match (str | Unset):
        if_none_match (PutSetIfNoneMatch | Unset):
        body (ToolSet):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SetItem]
    """

    kwargs = _get_kwargs(
        name=name,
        body=body,
        if_match=if_match,
        if_none_match=if_none_match,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolSetDict | ToolSet,
    if_match: str | Unset = UNSET,
    if_none_match: PutSetIfNoneMatch | Unset = UNSET,
) -> Problem | SetItem | None:
    """Create or change a set of tools

     The set is available at every front door within a second, and after restarts. It belongs to your
    tenant, and no other tenant sees it. A set of the default tenant belongs to the installation: other
    tenants can see it, and it requires the scope admin. To change a set, send its ETag in If-Match: if
    somebody else has changed it since, the answer is 412 and nothing changes.

    Args:
        name (str):
        if_match (str | Unset):
        if_none_match (PutSetIfNoneMatch | Unset):
        body (ToolSet):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SetItem
    """

    return (
        await asyncio_detailed(
            name=name,
            client=client,
            body=body,
            if_match=if_match,
            if_none_match=if_none_match,
        )
    ).parsed
