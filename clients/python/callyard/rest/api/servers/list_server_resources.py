from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.read_resource_result import ReadResourceResult
from ...models.server_resources import ServerResources
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    id: str,
    *,
    uri: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["uri"] = uri

    params["timeout_ms"] = timeout_ms

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/servers/{id}/resources".format(
            id=segment(id),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Problem | ReadResourceResult | ServerResources:
    if response.status_code == 200:

        def _parse_response_200(data: object) -> ReadResourceResult | ServerResources:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_0 = ServerResources.from_dict(data)

                return response_200_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            response_200_type_1 = ReadResourceResult.from_dict(data)

            return response_200_type_1

        response_200 = _parse_response_200(response.json())

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

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 502:
        response_502 = Problem.from_dict(response.json())

        return response_502

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    if response.status_code == 504:
        response_504 = Problem.from_dict(response.json())

        return response_504

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Problem | ReadResourceResult | ServerResources]:
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
    uri: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
) -> Response[Problem | ReadResourceResult | ServerResources]:
    """List the resources of a server

     Each entry is exactly as the server sent it.

    Args:
        id (str):
        uri (str | Unset):
        timeout_ms (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ReadResourceResult | ServerResources]
    """

    kwargs = _get_kwargs(
        id=id,
        uri=uri,
        timeout_ms=timeout_ms,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    uri: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
) -> Problem | ReadResourceResult | ServerResources | None:
    """List the resources of a server

     Each entry is exactly as the server sent it.

    Args:
        id (str):
        uri (str | Unset):
        timeout_ms (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ReadResourceResult | ServerResources
    """

    return sync_detailed(
        id=id,
        client=client,
        uri=uri,
        timeout_ms=timeout_ms,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    uri: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
) -> Response[Problem | ReadResourceResult | ServerResources]:
    """List the resources of a server

     Each entry is exactly as the server sent it.

    Args:
        id (str):
        uri (str | Unset):
        timeout_ms (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ReadResourceResult | ServerResources]
    """

    kwargs = _get_kwargs(
        id=id,
        uri=uri,
        timeout_ms=timeout_ms,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    uri: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
) -> Problem | ReadResourceResult | ServerResources | None:
    """List the resources of a server

     Each entry is exactly as the server sent it.

    Args:
        id (str):
        uri (str | Unset):
        timeout_ms (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ReadResourceResult | ServerResources
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            uri=uri,
            timeout_ms=timeout_ms,
        )
    ).parsed
