from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import ServerEntryDict
from ... import errors

from ...models.added_server import AddedServer
from ...models.problem import Problem
from ...models.server_entry import ServerEntry
from typing import cast


def _get_kwargs(
    *,
    body: ServerEntryDict | ServerEntry,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/servers",
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AddedServer | Problem:
    if response.status_code == 201:
        response_201 = AddedServer.from_dict(response.json())

        return response_201

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

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = Problem.from_dict(response.json())

        return response_415

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 502:
        response_502 = Problem.from_dict(response.json())

        return response_502

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AddedServer | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ServerEntryDict | ServerEntry,
) -> Response[AddedServer | Problem]:
    """Add a server

     Adds a server to the workers, which also run it after restarts, and waits until it is initialized.
    Disabled unless the operator enables front_door.add_servers, because a caller that can start
    commands controls the machine.

    Args:
        body (ServerEntry): A server: its id and its entry as in a servers file.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AddedServer | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: ServerEntryDict | ServerEntry,
) -> AddedServer | Problem | None:
    """Add a server

     Adds a server to the workers, which also run it after restarts, and waits until it is initialized.
    Disabled unless the operator enables front_door.add_servers, because a caller that can start
    commands controls the machine.

    Args:
        body (ServerEntry): A server: its id and its entry as in a servers file.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AddedServer | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ServerEntryDict | ServerEntry,
) -> Response[AddedServer | Problem]:
    """Add a server

     Adds a server to the workers, which also run it after restarts, and waits until it is initialized.
    Disabled unless the operator enables front_door.add_servers, because a caller that can start
    commands controls the machine.

    Args:
        body (ServerEntry): A server: its id and its entry as in a servers file.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AddedServer | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: ServerEntryDict | ServerEntry,
) -> AddedServer | Problem | None:
    """Add a server

     Adds a server to the workers, which also run it after restarts, and waits until it is initialized.
    Disabled unless the operator enables front_door.add_servers, because a caller that can start
    commands controls the machine.

    Args:
        body (ServerEntry): A server: its id and its entry as in a servers file.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AddedServer | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
