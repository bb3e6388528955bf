from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.call import Call
from ...models.get_call_include import GetCallInclude
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    id: str,
    *,
    wait: int | Unset = UNSET,
    include: GetCallInclude | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["wait"] = wait

    json_include: str | Unset = UNSET
    if not isinstance(include, Unset):
        json_include = include.value

    params["include"] = json_include

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/calls/{id}".format(
            id=segment(id),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Call | Problem:
    if response.status_code == 200:
        response_200 = Call.from_dict(response.json())

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Call | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    wait: int | Unset = UNSET,
    include: GetCallInclude | Unset = UNSET,
) -> Response[Call | Problem]:
    """Get a call

     The state and, once it has run, the result of a held, durable or batch call. With wait the answer is
    sent when the call has ended, or after that number of seconds.

    Args:
        id (str):
        wait (int | Unset):
        include (GetCallInclude | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Call | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        wait=wait,
        include=include,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    wait: int | Unset = UNSET,
    include: GetCallInclude | Unset = UNSET,
) -> Call | Problem | None:
    """Get a call

     The state and, once it has run, the result of a held, durable or batch call. With wait the answer is
    sent when the call has ended, or after that number of seconds.

    Args:
        id (str):
        wait (int | Unset):
        include (GetCallInclude | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Call | Problem
    """

    return sync_detailed(
        id=id,
        client=client,
        wait=wait,
        include=include,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    wait: int | Unset = UNSET,
    include: GetCallInclude | Unset = UNSET,
) -> Response[Call | Problem]:
    """Get a call

     The state and, once it has run, the result of a held, durable or batch call. With wait the answer is
    sent when the call has ended, or after that number of seconds.

    Args:
        id (str):
        wait (int | Unset):
        include (GetCallInclude | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Call | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        wait=wait,
        include=include,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    wait: int | Unset = UNSET,
    include: GetCallInclude | Unset = UNSET,
) -> Call | Problem | None:
    """Get a call

     The state and, once it has run, the result of a held, durable or batch call. With wait the answer is
    sent when the call has ended, or after that number of seconds.

    Args:
        id (str):
        wait (int | Unset):
        include (GetCallInclude | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Call | Problem
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            wait=wait,
            include=include,
        )
    ).parsed
