from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.restarted_server import RestartedServer
from typing import cast


def _get_kwargs(
    id: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/servers/{id}/restart".format(
            id=segment(id),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | RestartedServer:
    if response.status_code == 202:
        response_202 = RestartedServer.from_dict(response.json())

        return response_202

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
) -> Response[Problem | RestartedServer]:
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
) -> Response[Problem | RestartedServer]:
    """Restart a server

     Every worker that runs the server replaces it with a new instance of the same entry. Calls do not
    fail: the old instance accepts calls until the new one is ready, and finishes its running calls. The
    answer is sent once the restarts have begun; GET /servers/{id} shows their progress. If a new
    instance fails to start, the old one stays.

    Args:
        id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | RestartedServer]
    """

    kwargs = _get_kwargs(
        id=id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Problem | RestartedServer | None:
    """Restart a server

     Every worker that runs the server replaces it with a new instance of the same entry. Calls do not
    fail: the old instance accepts calls until the new one is ready, and finishes its running calls. The
    answer is sent once the restarts have begun; GET /servers/{id} shows their progress. If a new
    instance fails to start, the old one stays.

    Args:
        id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | RestartedServer
    """

    return sync_detailed(
        id=id,
        client=client,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[Problem | RestartedServer]:
    """Restart a server

     Every worker that runs the server replaces it with a new instance of the same entry. Calls do not
    fail: the old instance accepts calls until the new one is ready, and finishes its running calls. The
    answer is sent once the restarts have begun; GET /servers/{id} shows their progress. If a new
    instance fails to start, the old one stays.

    Args:
        id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | RestartedServer]
    """

    kwargs = _get_kwargs(
        id=id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Problem | RestartedServer | None:
    """Restart a server

     Every worker that runs the server replaces it with a new instance of the same entry. Calls do not
    fail: the old instance accepts calls until the new one is ready, and finishes its running calls. The
    answer is sent once the restarts have begun; GET /servers/{id} shows their progress. If a new
    instance fails to start, the old one stays.

    Args:
        id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | RestartedServer
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
        )
    ).parsed
