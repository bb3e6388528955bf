from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import APIKeyRequestDict
from ... import errors

from ...models.api_key_request import APIKeyRequest
from ...models.new_api_key import NewAPIKey
from ...models.problem import Problem
from typing import cast


def _get_kwargs(
    *,
    body: APIKeyRequestDict | APIKeyRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/keys",
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> NewAPIKey | Problem:
    if response.status_code == 201:
        response_201 = NewAPIKey.from_dict(response.json())

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

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[NewAPIKey | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: APIKeyRequestDict | APIKeyRequest,
) -> Response[NewAPIKey | Problem]:
    """Create an API key

     The answer has the secret, which is shown only once. Every front door accepts the key within a
    second. It cannot have scopes, tools or groups that your own credential does not have. Names are
    unique, so a request that is sent twice creates one key: if the first answer was lost, the second
    answer is 409, and POST /keys/{id}/rotate creates a new secret.

    Args:
        body (APIKeyRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewAPIKey | Problem]
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
    body: APIKeyRequestDict | APIKeyRequest,
) -> NewAPIKey | Problem | None:
    """Create an API key

     The answer has the secret, which is shown only once. Every front door accepts the key within a
    second. It cannot have scopes, tools or groups that your own credential does not have. Names are
    unique, so a request that is sent twice creates one key: if the first answer was lost, the second
    answer is 409, and POST /keys/{id}/rotate creates a new secret.

    Args:
        body (APIKeyRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewAPIKey | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: APIKeyRequestDict | APIKeyRequest,
) -> Response[NewAPIKey | Problem]:
    """Create an API key

     The answer has the secret, which is shown only once. Every front door accepts the key within a
    second. It cannot have scopes, tools or groups that your own credential does not have. Names are
    unique, so a request that is sent twice creates one key: if the first answer was lost, the second
    answer is 409, and POST /keys/{id}/rotate creates a new secret.

    Args:
        body (APIKeyRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NewAPIKey | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: APIKeyRequestDict | APIKeyRequest,
) -> NewAPIKey | Problem | None:
    """Create an API key

     The answer has the secret, which is shown only once. Every front door accepts the key within a
    second. It cannot have scopes, tools or groups that your own credential does not have. Names are
    unique, so a request that is sent twice creates one key: if the first answer was lost, the second
    answer is 409, and POST /keys/{id}/rotate creates a new secret.

    Args:
        body (APIKeyRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NewAPIKey | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
