from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.read_resource_result import ReadResourceResult
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    id: str,
    uri: str,
    *,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(callyard_timeout_ms, Unset):
        headers["Callyard-Timeout-Ms"] = str(callyard_timeout_ms)

    if not isinstance(cache_control, Unset):
        headers["Cache-Control"] = cache_control

    if not isinstance(traceparent, Unset):
        headers["traceparent"] = traceparent

    if not isinstance(tracestate, Unset):
        headers["tracestate"] = tracestate

    params: dict[str, Any] = {}

    params["timeout_ms"] = timeout_ms

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/servers/{id}/resources/{uri}".format(
            id=segment(id),
            uri=segment(uri),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ReadResourceResult:
    if response.status_code == 200:
        response_200 = ReadResourceResult.from_dict(response.json())

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
) -> Response[Problem | ReadResourceResult]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    uri: str,
    *,
    client: AuthenticatedClient | Client,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Response[Problem | ReadResourceResult]:
    """Read a resource

     Reads the resource from the server and returns its answer. The URI is percent-encoded; GET
    /servers/{id}/resources?uri= accepts it as a parameter.

    Args:
        id (str):
        uri (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ReadResourceResult]
    """

    kwargs = _get_kwargs(
        id=id,
        uri=uri,
        timeout_ms=timeout_ms,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    uri: str,
    *,
    client: AuthenticatedClient | Client,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Problem | ReadResourceResult | None:
    """Read a resource

     Reads the resource from the server and returns its answer. The URI is percent-encoded; GET
    /servers/{id}/resources?uri= accepts it as a parameter.

    Args:
        id (str):
        uri (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ReadResourceResult
    """

    return sync_detailed(
        id=id,
        uri=uri,
        client=client,
        timeout_ms=timeout_ms,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
    ).parsed


async def asyncio_detailed(
    id: str,
    uri: str,
    *,
    client: AuthenticatedClient | Client,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Response[Problem | ReadResourceResult]:
    """Read a resource

     Reads the resource from the server and returns its answer. The URI is percent-encoded; GET
    /servers/{id}/resources?uri= accepts it as a parameter.

    Args:
        id (str):
        uri (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ReadResourceResult]
    """

    kwargs = _get_kwargs(
        id=id,
        uri=uri,
        timeout_ms=timeout_ms,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    uri: str,
    *,
    client: AuthenticatedClient | Client,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Problem | ReadResourceResult | None:
    """Read a resource

     Reads the resource from the server and returns its answer. The URI is percent-encoded; GET
    /servers/{id}/resources?uri= accepts it as a parameter.

    Args:
        id (str):
        uri (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ReadResourceResult
    """

    return (
        await asyncio_detailed(
            id=id,
            uri=uri,
            client=client,
            timeout_ms=timeout_ms,
            callyard_timeout_ms=callyard_timeout_ms,
            cache_control=cache_control,
            traceparent=traceparent,
            tracestate=tracestate,
        )
    ).parsed
