from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import SettleRequestDict
from ... import errors

from ...models.call import Call
from ...models.problem import Problem
from ...models.settle_request import SettleRequest
from typing import cast


def _get_kwargs(
    id: str,
    *,
    body: SettleRequestDict | SettleRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/calls/{id}/settle".format(
            id=segment(id),
        ),
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
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
    body: SettleRequestDict | SettleRequest,
) -> Response[Call | Problem]:
    """Settle a call whose outcome is unknown

     Records the outcome of a call that was sent and whose outcome is unknown, or that was given up:
    done, failed, or run-again, which runs it once more for its caller. You can settle your own calls
    and those of your tenant; with the scope admin in the default tenant, those of all tenants.

    Args:
        id (str):
        body (SettleRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Call | Problem]
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
    body: SettleRequestDict | SettleRequest,
) -> Call | Problem | None:
    """Settle a call whose outcome is unknown

     Records the outcome of a call that was sent and whose outcome is unknown, or that was given up:
    done, failed, or run-again, which runs it once more for its caller. You can settle your own calls
    and those of your tenant; with the scope admin in the default tenant, those of all tenants.

    Args:
        id (str):
        body (SettleRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Call | Problem
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
    body: SettleRequestDict | SettleRequest,
) -> Response[Call | Problem]:
    """Settle a call whose outcome is unknown

     Records the outcome of a call that was sent and whose outcome is unknown, or that was given up:
    done, failed, or run-again, which runs it once more for its caller. You can settle your own calls
    and those of your tenant; with the scope admin in the default tenant, those of all tenants.

    Args:
        id (str):
        body (SettleRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Call | Problem]
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
    body: SettleRequestDict | SettleRequest,
) -> Call | Problem | None:
    """Settle a call whose outcome is unknown

     Records the outcome of a call that was sent and whose outcome is unknown, or that was given up:
    done, failed, or run-again, which runs it once more for its caller. You can settle your own calls
    and those of your tenant; with the scope admin in the default tenant, those of all tenants.

    Args:
        id (str):
        body (SettleRequest):

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
            body=body,
        )
    ).parsed
