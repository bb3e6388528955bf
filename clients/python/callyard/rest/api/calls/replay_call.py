from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.accepted_call import AcceptedCall
from ...models.completed_call import CompletedCall
from ...models.confirmation_request import ConfirmationRequest
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    id: str,
    *,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_callback_url: str | Unset = UNSET,
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

    if not isinstance(prefer, Unset):
        headers["Prefer"] = prefer

    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(callyard_callback_url, Unset):
        headers["Callyard-Callback-Url"] = callyard_callback_url

    params: dict[str, Any] = {}

    params["timeout_ms"] = timeout_ms

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/calls/{id}/replay".format(
            id=segment(id),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AcceptedCall | CompletedCall | ConfirmationRequest | Problem:
    if response.status_code == 200:

        def _parse_response_200(data: object) -> AcceptedCall | CompletedCall | ConfirmationRequest:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_call_answer_type_0 = CompletedCall.from_dict(data)

                return componentsschemas_call_answer_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_call_answer_type_1 = ConfirmationRequest.from_dict(data)

                return componentsschemas_call_answer_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_call_answer_type_2 = AcceptedCall.from_dict(data)

            return componentsschemas_call_answer_type_2

        response_200 = _parse_response_200(response.json())

        return response_200

    if response.status_code == 202:

        def _parse_response_202(data: object) -> AcceptedCall | CompletedCall | ConfirmationRequest:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_call_answer_type_0 = CompletedCall.from_dict(data)

                return componentsschemas_call_answer_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_call_answer_type_1 = ConfirmationRequest.from_dict(data)

                return componentsschemas_call_answer_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_call_answer_type_2 = AcceptedCall.from_dict(data)

            return componentsschemas_call_answer_type_2

        response_202 = _parse_response_202(response.json())

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

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

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
) -> Response[AcceptedCall | CompletedCall | ConfirmationRequest | Problem]:
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
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_callback_url: str | Unset = UNSET,
) -> Response[AcceptedCall | CompletedCall | ConfirmationRequest | Problem]:
    """Replay a call

     Makes a new call of the same tool with exactly the same arguments. It has an id of its own, with
    replay_of in its state and record, and goes through the policy, quotas and approvals like any other
    call. Arguments are stored for durable calls, calls of batches and held calls; for other calls the
    answer is 409. An edit by an approver is not repeated.

    Args:
        id (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_callback_url (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AcceptedCall | CompletedCall | ConfirmationRequest | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        timeout_ms=timeout_ms,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
        prefer=prefer,
        idempotency_key=idempotency_key,
        callyard_callback_url=callyard_callback_url,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_callback_url: str | Unset = UNSET,
) -> AcceptedCall | CompletedCall | ConfirmationRequest | Problem | None:
    """Replay a call

     Makes a new call of the same tool with exactly the same arguments. It has an id of its own, with
    replay_of in its state and record, and goes through the policy, quotas and approvals like any other
    call. Arguments are stored for durable calls, calls of batches and held calls; for other calls the
    answer is 409. An edit by an approver is not repeated.

    Args:
        id (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_callback_url (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AcceptedCall | CompletedCall | ConfirmationRequest | Problem
    """

    return sync_detailed(
        id=id,
        client=client,
        timeout_ms=timeout_ms,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
        prefer=prefer,
        idempotency_key=idempotency_key,
        callyard_callback_url=callyard_callback_url,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_callback_url: str | Unset = UNSET,
) -> Response[AcceptedCall | CompletedCall | ConfirmationRequest | Problem]:
    """Replay a call

     Makes a new call of the same tool with exactly the same arguments. It has an id of its own, with
    replay_of in its state and record, and goes through the policy, quotas and approvals like any other
    call. Arguments are stored for durable calls, calls of batches and held calls; for other calls the
    answer is 409. An edit by an approver is not repeated.

    Args:
        id (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_callback_url (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AcceptedCall | CompletedCall | ConfirmationRequest | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
        timeout_ms=timeout_ms,
        callyard_timeout_ms=callyard_timeout_ms,
        cache_control=cache_control,
        traceparent=traceparent,
        tracestate=tracestate,
        prefer=prefer,
        idempotency_key=idempotency_key,
        callyard_callback_url=callyard_callback_url,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
    timeout_ms: int | Unset = UNSET,
    callyard_timeout_ms: int | Unset = UNSET,
    cache_control: str | Unset = UNSET,
    traceparent: str | Unset = UNSET,
    tracestate: str | Unset = UNSET,
    prefer: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    callyard_callback_url: str | Unset = UNSET,
) -> AcceptedCall | CompletedCall | ConfirmationRequest | Problem | None:
    """Replay a call

     Makes a new call of the same tool with exactly the same arguments. It has an id of its own, with
    replay_of in its state and record, and goes through the policy, quotas and approvals like any other
    call. Arguments are stored for durable calls, calls of batches and held calls; for other calls the
    answer is 409. An edit by an approver is not repeated.

    Args:
        id (str):
        timeout_ms (int | Unset):
        callyard_timeout_ms (int | Unset):
        cache_control (str | Unset):
        traceparent (str | Unset):
        tracestate (str | Unset):
        prefer (str | Unset):
        idempotency_key (str | Unset):
        callyard_callback_url (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AcceptedCall | CompletedCall | ConfirmationRequest | Problem
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
            timeout_ms=timeout_ms,
            callyard_timeout_ms=callyard_timeout_ms,
            cache_control=cache_control,
            traceparent=traceparent,
            tracestate=tracestate,
            prefer=prefer,
            idempotency_key=idempotency_key,
            callyard_callback_url=callyard_callback_url,
        )
    ).parsed
