from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ...bodies import PolicyDryRunRequestDict
from ... import errors

from ...models.policy_dry_run import PolicyDryRun
from ...models.policy_dry_run_request import PolicyDryRunRequest
from ...models.problem import Problem
from typing import cast


def _get_kwargs(
    *,
    body: PolicyDryRunRequestDict | PolicyDryRunRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/policy/dry-run",
    }

    _kwargs["json"] = body if isinstance(body, Mapping) else body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> PolicyDryRun | Problem:
    if response.status_code == 200:
        response_200 = PolicyDryRun.from_dict(response.json())

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
) -> Response[PolicyDryRun | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: PolicyDryRunRequestDict | PolicyDryRunRequest,
) -> Response[PolicyDryRun | Problem]:
    """Dry-run a draft policy

     Applies a draft of a policy to the recorded calls of all callers, and compares its decisions with
    the recorded ones: counts for each rule, and the calls whose decision changes. The policy in force
    does not change. The draft is evaluated as for real calls, with the current definitions of the
    tools. If a rule needs arguments that are not stored, the decision is counted as unknown.

    Args:
        body (PolicyDryRunRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PolicyDryRun | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: PolicyDryRunRequestDict | PolicyDryRunRequest,
) -> PolicyDryRun | Problem | None:
    """Dry-run a draft policy

     Applies a draft of a policy to the recorded calls of all callers, and compares its decisions with
    the recorded ones: counts for each rule, and the calls whose decision changes. The policy in force
    does not change. The draft is evaluated as for real calls, with the current definitions of the
    tools. If a rule needs arguments that are not stored, the decision is counted as unknown.

    Args:
        body (PolicyDryRunRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PolicyDryRun | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: PolicyDryRunRequestDict | PolicyDryRunRequest,
) -> Response[PolicyDryRun | Problem]:
    """Dry-run a draft policy

     Applies a draft of a policy to the recorded calls of all callers, and compares its decisions with
    the recorded ones: counts for each rule, and the calls whose decision changes. The policy in force
    does not change. The draft is evaluated as for real calls, with the current definitions of the
    tools. If a rule needs arguments that are not stored, the decision is counted as unknown.

    Args:
        body (PolicyDryRunRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PolicyDryRun | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: PolicyDryRunRequestDict | PolicyDryRunRequest,
) -> PolicyDryRun | Problem | None:
    """Dry-run a draft policy

     Applies a draft of a policy to the recorded calls of all callers, and compares its decisions with
    the recorded ones: counts for each rule, and the calls whose decision changes. The policy in force
    does not change. The draft is evaluated as for real calls, with the current definitions of the
    tools. If a rule needs arguments that are not stored, the decision is counted as unknown.

    Args:
        body (PolicyDryRunRequest):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PolicyDryRun | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
