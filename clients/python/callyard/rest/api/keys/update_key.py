from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import APIKeyChangeDict
from ... import errors

from ...models.api_key import APIKey
from ...models.api_key_change import APIKeyChange
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    id: str,
    *,
    body: APIKeyChangeDict | APIKeyChange,
    if_match: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["If-Match"] = if_match

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/keys/{id}".format(
            id=segment(id),
        ),
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> APIKey | Problem:
    if response.status_code == 200:
        response_200 = APIKey.from_dict(response.json())

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[APIKey | Problem]:
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
    body: APIKeyChangeDict | APIKeyChange,
    if_match: str | Unset = UNSET,
) -> Response[APIKey | Problem]:
    """Change an API key

     Changes the members in the body; the others keep their values. The name and the secret cannot be
    changed here. Send the ETag of the key in If-Match: if somebody else has changed it since, the
    answer is 412 and nothing changes.

    Args:
        id (str):
        if_match (str | Unset):
        body (APIKeyChange):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[APIKey | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        if_match=if_match,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: APIKeyChangeDict | APIKeyChange,
    if_match: str | Unset = UNSET,
) -> APIKey | Problem | None:
    """Change an API key

     Changes the members in the body; the others keep their values. The name and the secret cannot be
    changed here. Send the ETag of the key in If-Match: if somebody else has changed it since, the
    answer is 412 and nothing changes.

    Args:
        id (str):
        if_match (str | Unset):
        body (APIKeyChange):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        APIKey | Problem
    """

    return sync_detailed(
        id=id,
        client=client,
        body=body,
        if_match=if_match,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: APIKeyChangeDict | APIKeyChange,
    if_match: str | Unset = UNSET,
) -> Response[APIKey | Problem]:
    """Change an API key

     Changes the members in the body; the others keep their values. The name and the secret cannot be
    changed here. Send the ETag of the key in If-Match: if somebody else has changed it since, the
    answer is 412 and nothing changes.

    Args:
        id (str):
        if_match (str | Unset):
        body (APIKeyChange):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[APIKey | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        body=body,
        if_match=if_match,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    body: APIKeyChangeDict | APIKeyChange,
    if_match: str | Unset = UNSET,
) -> APIKey | Problem | None:
    """Change an API key

     Changes the members in the body; the others keep their values. The name and the secret cannot be
    changed here. Send the ETag of the key in If-Match: if somebody else has changed it since, the
    answer is 412 and nothing changes.

    Args:
        id (str):
        if_match (str | Unset):
        body (APIKeyChange):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        APIKey | Problem
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            body=body,
            if_match=if_match,
        )
    ).parsed
