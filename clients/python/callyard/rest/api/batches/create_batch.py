from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import BatchRequestDict
from ... import errors

from ...models.batch import Batch
from ...models.batch_request import BatchRequest
from ...models.problem import Problem
from ...types import File, FileTypes
from ...types import UNSET, Unset
from io import BytesIO
from typing import cast


def _get_kwargs(
    *,
    body: BatchRequestDict | BatchRequest | File | Unset = UNSET,
    stream: bool | Unset = UNSET,
    open_: bool | Unset = UNSET,
    priority: int | Unset = UNSET,
    expires_in: int | Unset = UNSET,
    callback_url: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["stream"] = stream

    params["open"] = open_

    params["priority"] = priority

    params["expires_in"] = expires_in

    params["callback_url"] = callback_url

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/batches",
        "params": params,
    }

    if isinstance(body, (BatchRequest, Mapping)):
        _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

        headers["Content-Type"] = "application/json"
    if isinstance(body, File):
        _kwargs["content"] = body.payload
        headers["Content-Type"] = "application/x-ndjson"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Batch | File | Problem:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    if response.status_code == 201:
        response_201 = Batch.from_dict(response.json())

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

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Batch | File | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: BatchRequestDict | BatchRequest | File | Unset = UNSET,
    stream: bool | Unset = UNSET,
    open_: bool | Unset = UNSET,
    priority: int | Unset = UNSET,
    expires_in: int | Unset = UNSET,
    callback_url: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[Batch | File | Problem]:
    """Run many calls as a batch

     Accepts calls as a JSON document, or as a stream of any length with one call on each line (NDJSON).
    The stream is read as fast as the calls are stored, so its size is not limited by memory. The answer
    is the batch; with stream=true it is the results, one on each line, as the calls end. A line that is
    not a valid call, or that repeats a custom_id, is refused on its own and listed in the results. With
    an Idempotency-Key, a repeated request continues where the previous one ended.

    Args:
        stream (bool | Unset):
        open_ (bool | Unset):
        priority (int | Unset):
        expires_in (int | Unset):
        callback_url (str | Unset):
        idempotency_key (str | Unset):
        body (BatchRequest): A batch in one document.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Batch | File | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
        stream=stream,
        open_=open_,
        priority=priority,
        expires_in=expires_in,
        callback_url=callback_url,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: BatchRequestDict | BatchRequest | File | Unset = UNSET,
    stream: bool | Unset = UNSET,
    open_: bool | Unset = UNSET,
    priority: int | Unset = UNSET,
    expires_in: int | Unset = UNSET,
    callback_url: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Batch | File | Problem | None:
    """Run many calls as a batch

     Accepts calls as a JSON document, or as a stream of any length with one call on each line (NDJSON).
    The stream is read as fast as the calls are stored, so its size is not limited by memory. The answer
    is the batch; with stream=true it is the results, one on each line, as the calls end. A line that is
    not a valid call, or that repeats a custom_id, is refused on its own and listed in the results. With
    an Idempotency-Key, a repeated request continues where the previous one ended.

    Args:
        stream (bool | Unset):
        open_ (bool | Unset):
        priority (int | Unset):
        expires_in (int | Unset):
        callback_url (str | Unset):
        idempotency_key (str | Unset):
        body (BatchRequest): A batch in one document.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Batch | File | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
        stream=stream,
        open_=open_,
        priority=priority,
        expires_in=expires_in,
        callback_url=callback_url,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: BatchRequestDict | BatchRequest | File | Unset = UNSET,
    stream: bool | Unset = UNSET,
    open_: bool | Unset = UNSET,
    priority: int | Unset = UNSET,
    expires_in: int | Unset = UNSET,
    callback_url: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Response[Batch | File | Problem]:
    """Run many calls as a batch

     Accepts calls as a JSON document, or as a stream of any length with one call on each line (NDJSON).
    The stream is read as fast as the calls are stored, so its size is not limited by memory. The answer
    is the batch; with stream=true it is the results, one on each line, as the calls end. A line that is
    not a valid call, or that repeats a custom_id, is refused on its own and listed in the results. With
    an Idempotency-Key, a repeated request continues where the previous one ended.

    Args:
        stream (bool | Unset):
        open_ (bool | Unset):
        priority (int | Unset):
        expires_in (int | Unset):
        callback_url (str | Unset):
        idempotency_key (str | Unset):
        body (BatchRequest): A batch in one document.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Batch | File | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
        stream=stream,
        open_=open_,
        priority=priority,
        expires_in=expires_in,
        callback_url=callback_url,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: BatchRequestDict | BatchRequest | File | Unset = UNSET,
    stream: bool | Unset = UNSET,
    open_: bool | Unset = UNSET,
    priority: int | Unset = UNSET,
    expires_in: int | Unset = UNSET,
    callback_url: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> Batch | File | Problem | None:
    """Run many calls as a batch

     Accepts calls as a JSON document, or as a stream of any length with one call on each line (NDJSON).
    The stream is read as fast as the calls are stored, so its size is not limited by memory. The answer
    is the batch; with stream=true it is the results, one on each line, as the calls end. A line that is
    not a valid call, or that repeats a custom_id, is refused on its own and listed in the results. With
    an Idempotency-Key, a repeated request continues where the previous one ended.

    Args:
        stream (bool | Unset):
        open_ (bool | Unset):
        priority (int | Unset):
        expires_in (int | Unset):
        callback_url (str | Unset):
        idempotency_key (str | Unset):
        body (BatchRequest): A batch in one document.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Batch | File | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            stream=stream,
            open_=open_,
            priority=priority,
            expires_in=expires_in,
            callback_url=callback_url,
            idempotency_key=idempotency_key,
        )
    ).parsed
