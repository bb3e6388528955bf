from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.get_prompt_body import GetPromptBody
from ...models.get_prompt_result import GetPromptResult
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    id: str,
    name: str,
    *,
    body: Mapping[str, str] | GetPromptBody | Unset = UNSET,
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
        "method": "post",
        "url": "/servers/{id}/prompts/{name}".format(
            id=segment(id),
            name=segment(name),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> GetPromptResult | Problem:
    if response.status_code == 200:
        response_200 = GetPromptResult.from_dict(response.json())

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

    if response.status_code == 422:
        response_422 = Problem.from_dict(response.json())

        return response_422

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
) -> Response[GetPromptResult | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: Mapping[str, str] | GetPromptBody | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Response[GetPromptResult | Problem]:
    """Get a prompt

     Gets the prompt from the server and returns its answer. The body is an object with the arguments of
    the prompt, which are all strings.

    Args:
        id (str):
        name (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (GetPromptBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[GetPromptResult | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        name=name,
        body=body,
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
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: Mapping[str, str] | GetPromptBody | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> GetPromptResult | Problem | None:
    """Get a prompt

     Gets the prompt from the server and returns its answer. The body is an object with the arguments of
    the prompt, which are all strings.

    Args:
        id (str):
        name (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (GetPromptBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        GetPromptResult | Problem
    """

    return sync_detailed(
        id=id,
        name=name,
        client=client,
        body=body,
        timeout_ms=timeout_ms,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
    ).parsed


async def asyncio_detailed(
    id: str,
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: Mapping[str, str] | GetPromptBody | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Response[GetPromptResult | Problem]:
    """Get a prompt

     Gets the prompt from the server and returns its answer. The body is an object with the arguments of
    the prompt, which are all strings.

    Args:
        id (str):
        name (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (GetPromptBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[GetPromptResult | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        name=name,
        body=body,
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
    name: str,
    *,
    client: AuthenticatedClient | Client,
    body: Mapping[str, str] | GetPromptBody | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> GetPromptResult | Problem | None:
    """Get a prompt

     Gets the prompt from the server and returns its answer. The body is an object with the arguments of
    the prompt, which are all strings.

    Args:
        id (str):
        name (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (GetPromptBody | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        GetPromptResult | Problem
    """

    return (
        await asyncio_detailed(
            id=id,
            name=name,
            client=client,
            body=body,
            timeout_ms=timeout_ms,
            callyard_timeout_ms=callyard_timeout_ms,
            cache_control=cache_control,
            traceparent=traceparent,
            tracestate=tracestate,
        )
    ).parsed
