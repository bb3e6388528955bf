from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import AcceptRequestDict
from ... import errors

from ...models.accept_request import AcceptRequest
from ...models.problem import Problem
from ...models.server_pins import ServerPins
from typing import cast


def _get_kwargs(
    id: str,
    *,
    body: AcceptRequestDict | AcceptRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/servers/{id}/pins".format(
            id=segment(id),
        ),
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ServerPins:
    if response.status_code == 200:
        response_200 = ServerPins.from_dict(response.json())

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

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Problem | ServerPins]:
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
    body: AcceptRequestDict | AcceptRequest,
) -> Response[Problem | ServerPins]:
    """Accept tool definitions

     Accepts definitions by their digest, all of them or none, for every front door; the audit record
    names the caller. If a tool has another definition by now, the answer is 409 and nothing is
    accepted. With front_door.accept_groups only keys in one of these groups can accept definitions.

    Args:
        id (str):
        body (AcceptRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ServerPins]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: AcceptRequestDict | AcceptRequest,
) -> Problem | ServerPins | None:
    """Accept tool definitions

     Accepts definitions by their digest, all of them or none, for every front door; the audit record
    names the caller. If a tool has another definition by now, the answer is 409 and nothing is
    accepted. With front_door.accept_groups only keys in one of these groups can accept definitions.

    Args:
        id (str):
        body (AcceptRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ServerPins
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: AcceptRequestDict | AcceptRequest,
) -> Response[Problem | ServerPins]:
    """Accept tool definitions

     Accepts definitions by their digest, all of them or none, for every front door; the audit record
    names the caller. If a tool has another definition by now, the answer is 409 and nothing is
    accepted. With front_door.accept_groups only keys in one of these groups can accept definitions.

    Args:
        id (str):
        body (AcceptRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ServerPins]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: AcceptRequestDict | AcceptRequest,
) -> Problem | ServerPins | None:
    """Accept tool definitions

     Accepts definitions by their digest, all of them or none, for every front door; the audit record
    names the caller. If a tool has another definition by now, the answer is 409 and nothing is
    accepted. With front_door.accept_groups only keys in one of these groups can accept definitions.

    Args:
        id (str):
        body (AcceptRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ServerPins
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
        )
    ).parsed
