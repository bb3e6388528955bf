from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.list_webhook_deliveries_state import ListWebhookDeliveriesState
from ...models.problem import Problem
from ...models.webhook_delivery_list import WebhookDeliveryList
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    state: ListWebhookDeliveriesState | Unset = ListWebhookDeliveriesState.DEAD,
    receiver: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state.value

    params["state"] = json_state

    params["receiver"] = receiver

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/webhooks/deliveries",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | WebhookDeliveryList:
    if response.status_code == 200:
        response_200 = WebhookDeliveryList.from_dict(response.json())

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


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Problem | WebhookDeliveryList]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    state: ListWebhookDeliveriesState | Unset = ListWebhookDeliveriesState.DEAD,
    receiver: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Response[Problem | WebhookDeliveryList]:
    """List webhook deliveries

     The deliveries of webhooks for calls and batches that were given up, or that wait for an attempt,
    oldest first. With the scope admin of the default tenant you see those of all tenants, otherwise
    those of your own. A delivery that was given up is kept until ten days after it was accepted.

    Args:
        state (ListWebhookDeliveriesState | Unset): dead: deliveries that were given up. waiting:
            deliveries whose attempts continue. Default: ListWebhookDeliveriesState.DEAD.
        receiver (str | Unset): Only deliveries to this host and port.
        limit (int | Unset): The maximum number of deliveries in the answer. Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WebhookDeliveryList]
    """

    kwargs = _get_kwargs(
        state=state,
        receiver=receiver,
        limit=limit,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    state: ListWebhookDeliveriesState | Unset = ListWebhookDeliveriesState.DEAD,
    receiver: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Problem | WebhookDeliveryList | None:
    """List webhook deliveries

     The deliveries of webhooks for calls and batches that were given up, or that wait for an attempt,
    oldest first. With the scope admin of the default tenant you see those of all tenants, otherwise
    those of your own. A delivery that was given up is kept until ten days after it was accepted.

    Args:
        state (ListWebhookDeliveriesState | Unset): dead: deliveries that were given up. waiting:
            deliveries whose attempts continue. Default: ListWebhookDeliveriesState.DEAD.
        receiver (str | Unset): Only deliveries to this host and port.
        limit (int | Unset): The maximum number of deliveries in the answer. Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WebhookDeliveryList
    """

    return sync_detailed(
        client=client,
        state=state,
        receiver=receiver,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    state: ListWebhookDeliveriesState | Unset = ListWebhookDeliveriesState.DEAD,
    receiver: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Response[Problem | WebhookDeliveryList]:
    """List webhook deliveries

     The deliveries of webhooks for calls and batches that were given up, or that wait for an attempt,
    oldest first. With the scope admin of the default tenant you see those of all tenants, otherwise
    those of your own. A delivery that was given up is kept until ten days after it was accepted.

    Args:
        state (ListWebhookDeliveriesState | Unset): dead: deliveries that were given up. waiting:
            deliveries whose attempts continue. Default: ListWebhookDeliveriesState.DEAD.
        receiver (str | Unset): Only deliveries to this host and port.
        limit (int | Unset): The maximum number of deliveries in the answer. Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WebhookDeliveryList]
    """

    kwargs = _get_kwargs(
        state=state,
        receiver=receiver,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    state: ListWebhookDeliveriesState | Unset = ListWebhookDeliveriesState.DEAD,
    receiver: str | Unset = UNSET,
    limit: int | Unset = 100,
) -> Problem | WebhookDeliveryList | None:
    """List webhook deliveries

     The deliveries of webhooks for calls and batches that were given up, or that wait for an attempt,
    oldest first. With the scope admin of the default tenant you see those of all tenants, otherwise
    those of your own. A delivery that was given up is kept until ten days after it was accepted.

    Args:
        state (ListWebhookDeliveriesState | Unset): dead: deliveries that were given up. waiting:
            deliveries whose attempts continue. Default: ListWebhookDeliveriesState.DEAD.
        receiver (str | Unset): Only deliveries to this host and port.
        limit (int | Unset): The maximum number of deliveries in the answer. Default: 100.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WebhookDeliveryList
    """

    return (
        await asyncio_detailed(
            client=client,
            state=state,
            receiver=receiver,
            limit=limit,
        )
    ).parsed
