from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.tenant_erasure import TenantErasure
from typing import cast


def _get_kwargs(
    tenant: str,
    *,
    confirm: str,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["confirm"] = confirm

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/tenants/{tenant}".format(
            tenant=segment(tenant),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | TenantErasure:
    if response.status_code == 200:
        response_200 = TenantErasure.from_dict(response.json())

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

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Problem | TenantErasure]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    confirm: str,
) -> Response[Problem | TenantErasure]:
    """Erase a tenant

     Removes the data of a tenant and destroys its data key, so that nobody can read its stored arguments
    and results any more. Remove the tenant from the section tenants first, and its keys from the
    configuration. Its API keys are revoked, its held calls withdrawn, its batches canceled and deleted,
    and its sets of tools, its standing permissions and the credentials of its people at MCP servers
    removed. Access that its people gave to programs at the authorization server ends when an approver
    runs. Records of calls without their payloads, usage and the audit record stay. It can be repeated.
    If calls still run, the answer is 409 and the data key stays.

    Args:
        tenant (str): The id of a tenant.
        confirm (str): The id of the tenant, repeated as a confirmation.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | TenantErasure]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        confirm=confirm,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    confirm: str,
) -> Problem | TenantErasure | None:
    """Erase a tenant

     Removes the data of a tenant and destroys its data key, so that nobody can read its stored arguments
    and results any more. Remove the tenant from the section tenants first, and its keys from the
    configuration. Its API keys are revoked, its held calls withdrawn, its batches canceled and deleted,
    and its sets of tools, its standing permissions and the credentials of its people at MCP servers
    removed. Access that its people gave to programs at the authorization server ends when an approver
    runs. Records of calls without their payloads, usage and the audit record stay. It can be repeated.
    If calls still run, the answer is 409 and the data key stays.

    Args:
        tenant (str): The id of a tenant.
        confirm (str): The id of the tenant, repeated as a confirmation.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | TenantErasure
    """

    return sync_detailed(
        tenant=tenant,
        client=client,
        confirm=confirm,
    ).parsed


async def asyncio_detailed(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    confirm: str,
) -> Response[Problem | TenantErasure]:
    """Erase a tenant

     Removes the data of a tenant and destroys its data key, so that nobody can read its stored arguments
    and results any more. Remove the tenant from the section tenants first, and its keys from the
    configuration. Its API keys are revoked, its held calls withdrawn, its batches canceled and deleted,
    and its sets of tools, its standing permissions and the credentials of its people at MCP servers
    removed. Access that its people gave to programs at the authorization server ends when an approver
    runs. Records of calls without their payloads, usage and the audit record stay. It can be repeated.
    If calls still run, the answer is 409 and the data key stays.

    Args:
        tenant (str): The id of a tenant.
        confirm (str): The id of the tenant, repeated as a confirmation.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | TenantErasure]
    """

    kwargs = _get_kwargs(
        tenant=tenant,
        confirm=confirm,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    tenant: str,
    *,
    client: AuthenticatedClient | Client,
    confirm: str,
) -> Problem | TenantErasure | None:
    """Erase a tenant

     Removes the data of a tenant and destroys its data key, so that nobody can read its stored arguments
    and results any more. Remove the tenant from the section tenants first, and its keys from the
    configuration. Its API keys are revoked, its held calls withdrawn, its batches canceled and deleted,
    and its sets of tools, its standing permissions and the credentials of its people at MCP servers
    removed. Access that its people gave to programs at the authorization server ends when an approver
    runs. Records of calls without their payloads, usage and the audit record stay. It can be repeated.
    If calls still run, the answer is 409 and the data key stays.

    Args:
        tenant (str): The id of a tenant.
        confirm (str): The id of the tenant, repeated as a confirmation.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | TenantErasure
    """

    return (
        await asyncio_detailed(
            tenant=tenant,
            client=client,
            confirm=confirm,
        )
    ).parsed
