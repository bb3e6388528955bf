from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.tool_search import ToolSearch
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    q: str,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["q"] = q

    params["server"] = server

    params["set"] = set_

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/tools/search",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ToolSearch:
    if response.status_code == 200:
        response_200 = ToolSearch.from_dict(response.json())

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

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

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
) -> Response[Problem | ToolSearch]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    q: str,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[Problem | ToolSearch]:
    """Search tools

     The tools that match a description in words, best first, with how to call each of them and what the
    policy decides for a call without arguments. Only tools that can be called are searched. If no tool
    matches, the list is empty, and unmatched has the words that no tool has.

    Args:
        q (str):
        server (str | Unset):
        set_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ToolSearch]
    """

    kwargs = _get_kwargs(
        q=q,
        server=server,
        set_=set_,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    q: str,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Problem | ToolSearch | None:
    """Search tools

     The tools that match a description in words, best first, with how to call each of them and what the
    policy decides for a call without arguments. Only tools that can be called are searched. If no tool
    matches, the list is empty, and unmatched has the words that no tool has.

    Args:
        q (str):
        server (str | Unset):
        set_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ToolSearch
    """

    return sync_detailed(
        client=client,
        q=q,
        server=server,
        set_=set_,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    q: str,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[Problem | ToolSearch]:
    """Search tools

     The tools that match a description in words, best first, with how to call each of them and what the
    policy decides for a call without arguments. Only tools that can be called are searched. If no tool
    matches, the list is empty, and unmatched has the words that no tool has.

    Args:
        q (str):
        server (str | Unset):
        set_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ToolSearch]
    """

    kwargs = _get_kwargs(
        q=q,
        server=server,
        set_=set_,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    q: str,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Problem | ToolSearch | None:
    """Search tools

     The tools that match a description in words, best first, with how to call each of them and what the
    policy decides for a call without arguments. Only tools that can be called are searched. If no tool
    matches, the list is empty, and unmatched has the words that no tool has.

    Args:
        q (str):
        server (str | Unset):
        set_ (str | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ToolSearch
    """

    return (
        await asyncio_detailed(
            client=client,
            q=q,
            server=server,
            set_=set_,
            limit=limit,
        )
    ).parsed
