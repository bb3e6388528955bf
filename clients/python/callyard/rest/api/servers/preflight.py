from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.preflight import Preflight
from ...models.problem import Problem
from typing import cast


def _get_kwargs(
    *,
    tool: list[str],
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_tool = tool

    params["tool"] = json_tool

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/preflight",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Preflight | Problem:
    if response.status_code == 200:
        response_200 = Preflight.from_dict(response.json())

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

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Preflight | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    tool: list[str],
) -> Response[Preflight | Problem]:
    """Check that tools are ready

     Checks whether the tools that a program needs exist and are enabled, accepted, online and not denied
    to you by the policy. The policy is evaluated for a call without arguments. No tool runs.

    Args:
        tool (list[str]):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Preflight | Problem]
    """

    kwargs = _get_kwargs(
        tool=tool,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    tool: list[str],
) -> Preflight | Problem | None:
    """Check that tools are ready

     Checks whether the tools that a program needs exist and are enabled, accepted, online and not denied
    to you by the policy. The policy is evaluated for a call without arguments. No tool runs.

    Args:
        tool (list[str]):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Preflight | Problem
    """

    return sync_detailed(
        client=client,
        tool=tool,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    tool: list[str],
) -> Response[Preflight | Problem]:
    """Check that tools are ready

     Checks whether the tools that a program needs exist and are enabled, accepted, online and not denied
    to you by the policy. The policy is evaluated for a call without arguments. No tool runs.

    Args:
        tool (list[str]):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Preflight | Problem]
    """

    kwargs = _get_kwargs(
        tool=tool,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    tool: list[str],
) -> Preflight | Problem | None:
    """Check that tools are ready

     Checks whether the tools that a program needs exist and are enabled, accepted, online and not denied
    to you by the policy. The policy is evaluated for a call without arguments. No tool runs.

    Args:
        tool (list[str]):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Preflight | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            tool=tool,
        )
    ).parsed
