from http import HTTPStatus
from typing import Any, cast
from ....paths import segment

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.list_tools_format import ListToolsFormat
from ...models.list_tools_include import ListToolsInclude
from ...models.problem import Problem
from ...models.provider_tool_list import ProviderToolList
from ...models.tool_list import ToolList
from ...types import UNSET, Unset
from typing import cast


def _get_kwargs(
    *,
    format_: ListToolsFormat | Unset = ListToolsFormat.MCP,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    include: ListToolsInclude | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    query: str | Unset = UNSET,
    max_tools: int | Unset = UNSET,
    budget_tokens: int | Unset = UNSET,
    defer_loading: bool | Unset = UNSET,
    strict: bool | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_format_: str | Unset = UNSET
    if not isinstance(format_, Unset):
        json_format_ = format_.value

    params["format"] = json_format_

    params["server"] = server

    params["set"] = set_

    json_include: str | Unset = UNSET
    if not isinstance(include, Unset):
        json_include = include.value

    params["include"] = json_include

    params["limit"] = limit

    params["cursor"] = cursor

    params["query"] = query

    params["max_tools"] = max_tools

    params["budget_tokens"] = budget_tokens

    params["defer_loading"] = defer_loading

    params["strict"] = strict

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/tools",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Problem | ProviderToolList | ToolList:
    if response.status_code == 200:

        def _parse_response_200(data: object) -> ProviderToolList | ToolList:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_0 = ProviderToolList.from_dict(data)

                return response_200_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            response_200_type_1 = ToolList.from_dict(data)

            return response_200_type_1

        response_200 = _parse_response_200(response.json())

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
) -> Response[Problem | ProviderToolList | ToolList]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    format_: ListToolsFormat | Unset = ListToolsFormat.MCP,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    include: ListToolsInclude | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    query: str | Unset = UNSET,
    max_tools: int | Unset = UNSET,
    budget_tokens: int | Unset = UNSET,
    defer_loading: bool | Unset = UNSET,
    strict: bool | Unset = UNSET,
) -> Response[Problem | ProviderToolList | ToolList]:
    """List all tools

     All tools of all servers, sorted by server and name, in pages (a ToolList). With the format of a
    model provider, all callable tools in that provider's format, under names that it accepts (a
    ProviderToolList); POST /tool-calls runs the model's tool calls.

    Args:
        format_ (ListToolsFormat | Unset): The format of the tools. mcp returns the servers'
            definitions in pages; the others return all callable tools in the format of a model
            provider in one answer. Default: ListToolsFormat.MCP.
        server (str | Unset): Only the tools of this server.
        set_ (str | Unset): Only the tools of this set, in its order and under its names, in one
            answer.
        include (ListToolsInclude | Unset): With the value offline, a list in the format of a
            model provider, of a set or for a query also has tools that no worker can run now.
        limit (int | Unset): The maximum number of tools on a page, if the list has pages.
            Default: 100.
        cursor (str | Unset): The next_cursor of the previous page.
        query (str | Unset): Only tools that match these words, best match first.
        max_tools (int | Unset): The maximum number of tools in the answer; 0 means no limit.
        budget_tokens (int | Unset): The maximum estimated number of tokens of all tools; 0 means
            no limit.
        defer_loading (bool | Unset): For Anthropic's tool search: mark each tool with
            defer_loading, so that it is loaded once the model finds it. Add Anthropic's search tool
            to the request yourself.
        strict (bool | Unset): Use OpenAI's strict mode for each tool whose schema supports it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ProviderToolList | ToolList]
    """

    kwargs = _get_kwargs(
        format_=format_,
        server=server,
        set_=set_,
        include=include,
        limit=limit,
        cursor=cursor,
        query=query,
        max_tools=max_tools,
        budget_tokens=budget_tokens,
        defer_loading=defer_loading,
        strict=strict,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    format_: ListToolsFormat | Unset = ListToolsFormat.MCP,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    include: ListToolsInclude | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    query: str | Unset = UNSET,
    max_tools: int | Unset = UNSET,
    budget_tokens: int | Unset = UNSET,
    defer_loading: bool | Unset = UNSET,
    strict: bool | Unset = UNSET,
) -> Problem | ProviderToolList | ToolList | None:
    """List all tools

     All tools of all servers, sorted by server and name, in pages (a ToolList). With the format of a
    model provider, all callable tools in that provider's format, under names that it accepts (a
    ProviderToolList); POST /tool-calls runs the model's tool calls.

    Args:
        format_ (ListToolsFormat | Unset): The format of the tools. mcp returns the servers'
            definitions in pages; the others return all callable tools in the format of a model
            provider in one answer. Default: ListToolsFormat.MCP.
        server (str | Unset): Only the tools of this server.
        set_ (str | Unset): Only the tools of this set, in its order and under its names, in one
            answer.
        include (ListToolsInclude | Unset): With the value offline, a list in the format of a
            model provider, of a set or for a query also has tools that no worker can run now.
        limit (int | Unset): The maximum number of tools on a page, if the list has pages.
            Default: 100.
        cursor (str | Unset): The next_cursor of the previous page.
        query (str | Unset): Only tools that match these words, best match first.
        max_tools (int | Unset): The maximum number of tools in the answer; 0 means no limit.
        budget_tokens (int | Unset): The maximum estimated number of tokens of all tools; 0 means
            no limit.
        defer_loading (bool | Unset): For Anthropic's tool search: mark each tool with
            defer_loading, so that it is loaded once the model finds it. Add Anthropic's search tool
            to the request yourself.
        strict (bool | Unset): Use OpenAI's strict mode for each tool whose schema supports it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ProviderToolList | ToolList
    """

    return sync_detailed(
        client=client,
        format_=format_,
        server=server,
        set_=set_,
        include=include,
        limit=limit,
        cursor=cursor,
        query=query,
        max_tools=max_tools,
        budget_tokens=budget_tokens,
        defer_loading=defer_loading,
        strict=strict,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    format_: ListToolsFormat | Unset = ListToolsFormat.MCP,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    include: ListToolsInclude | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    query: str | Unset = UNSET,
    max_tools: int | Unset = UNSET,
    budget_tokens: int | Unset = UNSET,
    defer_loading: bool | Unset = UNSET,
    strict: bool | Unset = UNSET,
) -> Response[Problem | ProviderToolList | ToolList]:
    """List all tools

     All tools of all servers, sorted by server and name, in pages (a ToolList). With the format of a
    model provider, all callable tools in that provider's format, under names that it accepts (a
    ProviderToolList); POST /tool-calls runs the model's tool calls.

    Args:
        format_ (ListToolsFormat | Unset): The format of the tools. mcp returns the servers'
            definitions in pages; the others return all callable tools in the format of a model
            provider in one answer. Default: ListToolsFormat.MCP.
        server (str | Unset): Only the tools of this server.
        set_ (str | Unset): Only the tools of this set, in its order and under its names, in one
            answer.
        include (ListToolsInclude | Unset): With the value offline, a list in the format of a
            model provider, of a set or for a query also has tools that no worker can run now.
        limit (int | Unset): The maximum number of tools on a page, if the list has pages.
            Default: 100.
        cursor (str | Unset): The next_cursor of the previous page.
        query (str | Unset): Only tools that match these words, best match first.
        max_tools (int | Unset): The maximum number of tools in the answer; 0 means no limit.
        budget_tokens (int | Unset): The maximum estimated number of tokens of all tools; 0 means
            no limit.
        defer_loading (bool | Unset): For Anthropic's tool search: mark each tool with
            defer_loading, so that it is loaded once the model finds it. Add Anthropic's search tool
            to the request yourself.
        strict (bool | Unset): Use OpenAI's strict mode for each tool whose schema supports it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ProviderToolList | ToolList]
    """

    kwargs = _get_kwargs(
        format_=format_,
        server=server,
        set_=set_,
        include=include,
        limit=limit,
        cursor=cursor,
        query=query,
        max_tools=max_tools,
        budget_tokens=budget_tokens,
        defer_loading=defer_loading,
        strict=strict,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    format_: ListToolsFormat | Unset = ListToolsFormat.MCP,
    server: str | Unset = UNSET,
    set_: str | Unset = UNSET,
    include: ListToolsInclude | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = UNSET,
    query: str | Unset = UNSET,
    max_tools: int | Unset = UNSET,
    budget_tokens: int | Unset = UNSET,
    defer_loading: bool | Unset = UNSET,
    strict: bool | Unset = UNSET,
) -> Problem | ProviderToolList | ToolList | None:
    """List all tools

     All tools of all servers, sorted by server and name, in pages (a ToolList). With the format of a
    model provider, all callable tools in that provider's format, under names that it accepts (a
    ProviderToolList); POST /tool-calls runs the model's tool calls.

    Args:
        format_ (ListToolsFormat | Unset): The format of the tools. mcp returns the servers'
            definitions in pages; the others return all callable tools in the format of a model
            provider in one answer. Default: ListToolsFormat.MCP.
        server (str | Unset): Only the tools of this server.
        set_ (str | Unset): Only the tools of this set, in its order and under its names, in one
            answer.
        include (ListToolsInclude | Unset): With the value offline, a list in the format of a
            model provider, of a set or for a query also has tools that no worker can run now.
        limit (int | Unset): The maximum number of tools on a page, if the list has pages.
            Default: 100.
        cursor (str | Unset): The next_cursor of the previous page.
        query (str | Unset): Only tools that match these words, best match first.
        max_tools (int | Unset): The maximum number of tools in the answer; 0 means no limit.
        budget_tokens (int | Unset): The maximum estimated number of tokens of all tools; 0 means
            no limit.
        defer_loading (bool | Unset): For Anthropic's tool search: mark each tool with
            defer_loading, so that it is loaded once the model finds it. Add Anthropic's search tool
            to the request yourself.
        strict (bool | Unset): Use OpenAI's strict mode for each tool whose schema supports it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ProviderToolList | ToolList
    """

    return (
        await asyncio_detailed(
            client=client,
            format_=format_,
            server=server,
            set_=set_,
            include=include,
            limit=limit,
            cursor=cursor,
            query=query,
            max_tools=max_tools,
            budget_tokens=budget_tokens,
            defer_loading=defer_loading,
            strict=strict,
        )
    ).parsed
