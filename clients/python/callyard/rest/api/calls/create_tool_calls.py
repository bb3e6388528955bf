from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.create_tool_calls_format import CreateToolCallsFormat
from ...models.problem import Problem
from ...models.tool_calls_answer import ToolCallsAnswer
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    body: Any,
    format_: CreateToolCallsFormat | Unset = UNSET,
    set_: str | Unset = UNSET,
    own: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(prefer, Unset):
        headers["Prefer"] = prefer

    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(callyard_timeout_ms, Unset):
        headers["Callyard-Timeout-Ms"] = str(callyard_timeout_ms)

    if not isinstance(cache_control, Unset):
        headers["Cache-Control"] = cache_control

    if not isinstance(traceparent, Unset):
        headers["traceparent"] = traceparent

    if not isinstance(tracestate, Unset):
        headers["tracestate"] = tracestate

    params: dict[str, Any] = {}

    json_format_: str | Unset = UNSET
    if not isinstance(format_, Unset):
        json_format_ = format_.value

    params["format"] = json_format_

    params["set"] = set_

    params["own"] = own

    params["timeout_ms"] = timeout_ms

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/tool-calls",
        "params": params,
    }

    _kwargs["json"] = body

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ToolCallsAnswer:
    if response.status_code == 200:
        response_200 = ToolCallsAnswer.from_dict(response.json())

        return response_200

    if response.status_code == 202:
        response_202 = ToolCallsAnswer.from_dict(response.json())

        return response_202

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
) -> Response[Problem | ToolCallsAnswer]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: Any,
    format_: CreateToolCallsFormat | Unset = UNSET,
    set_: str | Unset = UNSET,
    own: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Response[Problem | ToolCallsAnswer]:
    """Run the tool calls of a model

     The body is the output of a model provider: its whole answer, the assistant message, the list of
    tool calls, or one of them. The calls run concurrently, each as with POST /calls, and the answer has
    the provider's tool messages in order. The message of a call that cannot run gives the reason, and
    the message of a held call says that it is held; the other calls are not affected. With {"text":"…"}
    calls are extracted from the plain text of a model, and
    {"tool_call":{"server_id":…,"tool_name":…,"parameters":{…}}} is read as such a text. A name is
    matched without regard to letter case and separators if that is unambiguous.

    Args:
        format_ (CreateToolCallsFormat | Unset):
        set_ (str | Unset):
        own (str | Unset):
        timeout_ms (int | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (Any): The tool calls as the provider sent them, or {"text":"…"}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ToolCallsAnswer]
    """

    kwargs = _get_kwargs(
        body=body,
        format_=format_,
        set_=set_,
        own=own,
        timeout_ms=timeout_ms,
        prefer=prefer,
        idempotency_key=idempotency_key,
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
    *,
    client: AuthenticatedClient | Client,
    body: Any,
    format_: CreateToolCallsFormat | Unset = UNSET,
    set_: str | Unset = UNSET,
    own: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Problem | ToolCallsAnswer | None:
    """Run the tool calls of a model

     The body is the output of a model provider: its whole answer, the assistant message, the list of
    tool calls, or one of them. The calls run concurrently, each as with POST /calls, and the answer has
    the provider's tool messages in order. The message of a call that cannot run gives the reason, and
    the message of a held call says that it is held; the other calls are not affected. With {"text":"…"}
    calls are extracted from the plain text of a model, and
    {"tool_call":{"server_id":…,"tool_name":…,"parameters":{…}}} is read as such a text. A name is
    matched without regard to letter case and separators if that is unambiguous.

    Args:
        format_ (CreateToolCallsFormat | Unset):
        set_ (str | Unset):
        own (str | Unset):
        timeout_ms (int | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (Any): The tool calls as the provider sent them, or {"text":"…"}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ToolCallsAnswer
    """

    return sync_detailed(
        client=client,
        body=body,
        format_=format_,
        set_=set_,
        own=own,
        timeout_ms=timeout_ms,
        prefer=prefer,
        idempotency_key=idempotency_key,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: Any,
    format_: CreateToolCallsFormat | Unset = UNSET,
    set_: str | Unset = UNSET,
    own: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Response[Problem | ToolCallsAnswer]:
    """Run the tool calls of a model

     The body is the output of a model provider: its whole answer, the assistant message, the list of
    tool calls, or one of them. The calls run concurrently, each as with POST /calls, and the answer has
    the provider's tool messages in order. The message of a call that cannot run gives the reason, and
    the message of a held call says that it is held; the other calls are not affected. With {"text":"…"}
    calls are extracted from the plain text of a model, and
    {"tool_call":{"server_id":…,"tool_name":…,"parameters":{…}}} is read as such a text. A name is
    matched without regard to letter case and separators if that is unambiguous.

    Args:
        format_ (CreateToolCallsFormat | Unset):
        set_ (str | Unset):
        own (str | Unset):
        timeout_ms (int | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (Any): The tool calls as the provider sent them, or {"text":"…"}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ToolCallsAnswer]
    """

    kwargs = _get_kwargs(
        body=body,
        format_=format_,
        set_=set_,
        own=own,
        timeout_ms=timeout_ms,
        prefer=prefer,
        idempotency_key=idempotency_key,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: Any,
    format_: CreateToolCallsFormat | Unset = UNSET,
    set_: str | Unset = UNSET,
    own: str | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
) -> Problem | ToolCallsAnswer | None:
    """Run the tool calls of a model

     The body is the output of a model provider: its whole answer, the assistant message, the list of
    tool calls, or one of them. The calls run concurrently, each as with POST /calls, and the answer has
    the provider's tool messages in order. The message of a call that cannot run gives the reason, and
    the message of a held call says that it is held; the other calls are not affected. With {"text":"…"}
    calls are extracted from the plain text of a model, and
    {"tool_call":{"server_id":…,"tool_name":…,"parameters":{…}}} is read as such a text. A name is
    matched without regard to letter case and separators if that is unambiguous.

    Args:
        format_ (CreateToolCallsFormat | Unset):
        set_ (str | Unset):
        own (str | Unset):
        timeout_ms (int | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        body (Any): The tool calls as the provider sent them, or {"text":"…"}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ToolCallsAnswer
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            format_=format_,
            set_=set_,
            own=own,
            timeout_ms=timeout_ms,
            prefer=prefer,
            idempotency_key=idempotency_key,
            callyard_timeout_ms=callyard_timeout_ms,
            cache_control=cache_control,
            traceparent=traceparent,
            tracestate=tracestate,
        )
    ).parsed
