from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import ConversionRequestDict
from ... import errors

from ...models.conversion import Conversion
from ...models.conversion_request import ConversionRequest
from ...models.problem import Problem
from typing import cast


def _get_kwargs(
    *,
    body: ConversionRequestDict | ConversionRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/convert",
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Conversion | Problem:
    if response.status_code == 200:
        response_200 = Conversion.from_dict(response.json())

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
) -> Response[Conversion | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ConversionRequestDict | ConversionRequest,
) -> Response[Conversion | Problem]:
    """Convert tool definitions and tool calls

     Converts tool definitions and tool calls between the formats of model providers and MCP. Nothing
    runs, and Callyard does not need to have the tools. Each part that cannot be converted, or that
    differs in the answer, has a note with a JSON pointer into the request.

    Args:
        body (ConversionRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Conversion | Problem]
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
    body: ConversionRequestDict | ConversionRequest,
) -> Conversion | Problem | None:
    """Convert tool definitions and tool calls

     Converts tool definitions and tool calls between the formats of model providers and MCP. Nothing
    runs, and Callyard does not need to have the tools. Each part that cannot be converted, or that
    differs in the answer, has a note with a JSON pointer into the request.

    Args:
        body (ConversionRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Conversion | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ConversionRequestDict | ConversionRequest,
) -> Response[Conversion | Problem]:
    """Convert tool definitions and tool calls

     Converts tool definitions and tool calls between the formats of model providers and MCP. Nothing
    runs, and Callyard does not need to have the tools. Each part that cannot be converted, or that
    differs in the answer, has a note with a JSON pointer into the request.

    Args:
        body (ConversionRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Conversion | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: ConversionRequestDict | ConversionRequest,
) -> Conversion | Problem | None:
    """Convert tool definitions and tool calls

     Converts tool definitions and tool calls between the formats of model providers and MCP. Nothing
    runs, and Callyard does not need to have the tools. Each part that cannot be converted, or that
    differs in the answer, has a note with a JSON pointer into the request.

    Args:
        body (ConversionRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Conversion | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
