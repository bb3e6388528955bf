from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.draining_worker import DrainingWorker
from ...models.problem import Problem
from typing import cast


def _get_kwargs(
    id: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/workers/{id}/drain".format(
            id=segment(id),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DrainingWorker | Problem:
    if response.status_code == 202:
        response_202 = DrainingWorker.from_dict(response.json())

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
) -> Response[DrainingWorker | Problem]:
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
) -> Response[DrainingWorker | Problem]:
    """Drain a worker

     The worker takes no more calls, finishes those that it runs, within worker.drain_grace, and its
    process ends, as with SIGTERM. Whatever started the process may start it again. The answer is sent
    once draining has begun; GET /workers shows its progress. A worker that is part of callyard up
    cannot be drained alone: 409.

    Args:
        id (str): The id of a worker.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DrainingWorker | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    id: str,
    *,
    client: AuthenticatedClient | Client,
) -> DrainingWorker | Problem | None:
    """Drain a worker

     The worker takes no more calls, finishes those that it runs, within worker.drain_grace, and its
    process ends, as with SIGTERM. Whatever started the process may start it again. The answer is sent
    once draining has begun; GET /workers shows its progress. A worker that is part of callyard up
    cannot be drained alone: 409.

    Args:
        id (str): The id of a worker.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DrainingWorker | Problem
    """

    return sync_detailed(
        id=id,
        client=client,
    ).parsed


async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[DrainingWorker | Problem]:
    """Drain a worker

     The worker takes no more calls, finishes those that it runs, within worker.drain_grace, and its
    process ends, as with SIGTERM. Whatever started the process may start it again. The answer is sent
    once draining has begun; GET /workers shows its progress. A worker that is part of callyard up
    cannot be drained alone: 409.

    Args:
        id (str): The id of a worker.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DrainingWorker | Problem]
    """

    kwargs = _get_kwargs(
        id=id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient | Client,
) -> DrainingWorker | Problem | None:
    """Drain a worker

     The worker takes no more calls, finishes those that it runs, within worker.drain_grace, and its
    process ends, as with SIGTERM. Whatever started the process may start it again. The answer is sent
    once draining has begun; GET /workers shows its progress. A worker that is part of callyard up
    cannot be drained alone: 409.

    Args:
        id (str): The id of a worker.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DrainingWorker | Problem
    """

    return (
        await asyncio_detailed(
            id=id,
            client=client,
        )
    ).parsed
