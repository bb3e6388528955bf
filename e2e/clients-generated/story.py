"""Runs a tool, and one that is held, with the client that openapi-generator makes for Python."""

import os

import openapi_client
from openapi_client.models import CallRequest, CompletedCall, ConfirmationRequest

with openapi_client.ApiClient(openapi_client.Configuration(host=os.environ["CALLYARD_URL"])) as client:
    calls = openapi_client.CallsApi(client)
    for request in (
        CallRequest(server="demo", tool="echo", arguments={"message": "hello"}),
        CallRequest(server="demo", tool="add", arguments={"a": 1, "b": 2}),
    ):
        answer = calls.create_call(request).actual_instance
        if isinstance(answer, CompletedCall):
            print("completed", answer.content[0].text)
        elif isinstance(answer, ConfirmationRequest):
            print("held", answer.tool_name)
        else:
            print("neither:", type(answer))
