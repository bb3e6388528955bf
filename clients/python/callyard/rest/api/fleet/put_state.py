from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import FabricStateDict
from ... import errors

from ...models.fabric_state import FabricState
from ...models.problem import Problem
from ...models.state_changes import StateChanges
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    body: FabricStateDict | FabricState,
    dry_run: bool | Unset = UNSET,
    if_match: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["If-Match"] = if_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/state",
        "params": params,
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | StateChanges:
    if response.status_code == 200:
        response_200 = StateChanges.from_dict(response.json())

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

    if response.status_code == 412:
        response_412 = Problem.from_dict(response.json())

        return response_412

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = Problem.from_dict(response.json())

        return response_415

    if response.status_code == 428:
        response_428 = Problem.from_dict(response.json())

        return response_428

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
) -> Response[Problem | StateChanges]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: FabricStateDict | FabricState,
    dry_run: bool | Unset = UNSET,
    if_match: str | Unset = UNSET,
) -> Response[Problem | StateChanges]:
    """Import a state

     Changes the sets and disabled tools to those of the file, and accepts its definitions if the servers
    offer them. Policy and keys are only compared. Send dry_run=true first: the answer has the
    differences and the ETag for If-Match. If somebody changes the state in between, the answer is 412
    and nothing changes. An import is not atomic: a change that fails has an error, and the other
    changes are made.

    Args:
        dry_run (bool | Unset):
        if_match (str | Unset):
        body (FabricState):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | StateChanges]
    """

    kwargs = _get_kwargs(
        body=body,
        dry_run=dry_run,
        if_match=if_match,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: FabricStateDict | FabricState,
    dry_run: bool | Unset = UNSET,
    if_match: str | Unset = UNSET,
) -> Problem | StateChanges | None:
    """Import a state

     Changes the sets and disabled tools to those of the file, and accepts its definitions if the servers
    offer them. Policy and keys are only compared. Send dry_run=true first: the answer has the
    differences and the ETag for If-Match. If somebody changes the state in between, the answer is 412
    and nothing changes. An import is not atomic: a change that fails has an error, and the other
    changes are made.

    Args:
        dry_run (bool | Unset):
        if_match (str | Unset):
        body (FabricState):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | StateChanges
    """

    return sync_detailed(
        client=client,
        body=body,
        dry_run=dry_run,
        if_match=if_match,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: FabricStateDict | FabricState,
    dry_run: bool | Unset = UNSET,
    if_match: str | Unset = UNSET,
) -> Response[Problem | StateChanges]:
    """Import a state

     Changes the sets and disabled tools to those of the file, and accepts its definitions if the servers
    offer them. Policy and keys are only compared. Send dry_run=true first: the answer has the
    differences and the ETag for If-Match. If somebody changes the state in between, the answer is 412
    and nothing changes. An import is not atomic: a change that fails has an error, and the other
    changes are made.

    Args:
        dry_run (bool | Unset):
        if_match (str | Unset):
        body (FabricState):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | StateChanges]
    """

    kwargs = _get_kwargs(
        body=body,
        dry_run=dry_run,
        if_match=if_match,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: FabricStateDict | FabricState,
    dry_run: bool | Unset = UNSET,
    if_match: str | Unset = UNSET,
) -> Problem | StateChanges | None:
    """Import a state

     Changes the sets and disabled tools to those of the file, and accepts its definitions if the servers
    offer them. Policy and keys are only compared. Send dry_run=true first: the answer has the
    differences and the ETag for If-Match. If somebody changes the state in between, the answer is 412
    and nothing changes. An import is not atomic: a change that fails has an error, and the other
    changes are made.

    Args:
        dry_run (bool | Unset):
        if_match (str | Unset):
        body (FabricState):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | StateChanges
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            dry_run=dry_run,
            if_match=if_match,
        )
    ).parsed
