"""The sign-in that the Python SDK plays: login.py URL [SECONDS]

It judges nothing. It prints a line for each thing that the test does for it, "authorize URL"
and "end", and what it saw as the last line. login.mjs plays the same. With SECONDS it waits so
long for its access token to expire; else it spoils the token.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import anyio
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata


class Storage:
    def __init__(self, client):
        self.client, self.tokens, self.issued = client, None, 0

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
        self.issued += 1

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Callback(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.path = self.path
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


async def main(url, seconds="0"):
    listener = HTTPServer(("127.0.0.1", 0), Callback)
    redirect = f"http://127.0.0.1:{listener.server_port}/callback"
    report = {"asked": []}
    ended = 0.0

    async def authorize(to):
        parts = urlsplit(to)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not report["asked"]:
            query["scope"] = "tools:read"  # less than it needs, so that a call makes it ask again
        report["asked"].append(query["scope"])
        if ended:
            raise RuntimeError("nobody is at the browser any more")
        print("authorize " + urlunsplit(parts._replace(query=urlencode(query))), flush=True)

    async def returned():
        await anyio.to_thread.run_sync(listener.handle_request)
        query = parse_qs(urlsplit(listener.path).query)
        return AuthorizationCodeResult(**{name: query[name][0] for name in ("code", "state", "iss")})

    storage = Storage(OAuthClientInformationFull(client_id="app", redirect_uris=[redirect], token_endpoint_auth_method="none"))
    metadata = OAuthClientMetadata(client_name="App", redirect_uris=[redirect], token_endpoint_auth_method="none")
    provider = OAuthClientProvider(url, metadata, storage, authorize, returned)

    async def play(client):
        async def call():
            for _ in range(40):
                result = await client.call_tool("echo__echo", {"text": "hello"})
                if not result.is_error:
                    break
                await anyio.sleep(0.25)  # its server may still be starting
            return result.content[0].text

        report["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        report["said"] = await call()

        before = storage.tokens.access_token
        if float(seconds):
            await anyio.sleep(float(seconds))
        else:
            # It renews by the clock alone, and starts a new sign-in on a 401.
            provider.context.token_expiry_time = time.time() - 1
        report["again"] = await call()
        report["renewed"] = storage.tokens.access_token != before

        print("end", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        nonlocal ended
        ended = time.monotonic()
        while time.monotonic() - ended < 20:
            await client.call_tool("echo__echo", {"text": "hello"})

    try:
        async with create_mcp_http_client(auth=provider) as http, Client(streamable_http_client(url, http_client=http)) as client:
            await play(client)
    except BaseExceptionGroup as group:  # its connection ends with the flow that failed
        if not ended:
            raise
        while isinstance(group, BaseExceptionGroup):
            group = group.exceptions[0]
        report["refused"] = f"{type(group).__name__}: {group}"
    report["refused_after_ms"] = int(1000 * (time.monotonic() - ended))
    report["issued"] = storage.issued
    print(json.dumps(report))


anyio.run(main, *sys.argv[1:])
